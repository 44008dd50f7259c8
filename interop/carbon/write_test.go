//go:build interop

package carbon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWritten has the SDK's row reader read what stoa wrote: format/carbon has the grid and the comparison.
func TestWritten(t *testing.T) { written(t, "^TestJudged$", "30m") }

// TestFuzz has it read random tables, for as long as STOA_FUZZ says.
func TestFuzz(t *testing.T) { written(t, "^TestFuzzed$", "0") }

func written(t *testing.T, test, limit string) {
	script, err := filepath.Abs("read.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout", limit, "-run", test, "stoa/format/carbon")
	cmd.Env = append(os.Environ(), "STOA_CARBON_READ="+script)
	out, err := cmd.CombinedOutput()
	for line := range strings.SplitSeq(string(out), "\n") {
		if _, count, ok := strings.Cut(line, "COUNT "); ok {
			t.Logf("COUNT %s", count)
		} else if strings.Contains(line, ": noticed: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
