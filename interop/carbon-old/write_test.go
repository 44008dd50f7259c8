//go:build interop

package carbonold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrittenOld has the column chunk readers and the dictionary cache of 1.6.1 read what stoa wrote:
// format/carbon has the grid and the comparison.
func TestWrittenOld(t *testing.T) {
	script, err := filepath.Abs("read.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout", "30m", "-run", "^TestJudgedV1V2$",
		"stoa/format/carbon")
	cmd.Env = append(os.Environ(), "STOA_CARBON_OLD_READ="+script)
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
