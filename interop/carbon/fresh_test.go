//go:build interop

package carbon

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestFresh has the SDK write tables from a seed (STOA_SEED, by default one from the clock), and compares what stoa
// reads with what the SDK's row reader reads: format/carbon has the comparison.
func TestFresh(t *testing.T) {
	seed := os.Getenv("STOA_SEED")
	if seed == "" {
		seed = fmt.Sprint(time.Now().UnixNano() % 1e6)
	}
	dir := t.TempDir()
	t.Logf("seed %s", seed)
	if out, err := exec.Command("./gen.sh", dir, seed).CombinedOutput(); err != nil {
		t.Fatalf("gen.sh: %v\n%s", err, out)
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", "-run", "^TestFresh$", "stoa/format/carbon")
	cmd.Env = append(os.Environ(), "STOA_CARBON_FRESH="+dir)
	out, err := cmd.CombinedOutput()
	for line := range strings.SplitSeq(string(out), "\n") {
		if _, count, ok := strings.Cut(line, "COUNT "); ok {
			t.Logf("COUNT %s", count)
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
