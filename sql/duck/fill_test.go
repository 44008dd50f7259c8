package duck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFill: fill.c copies random arrays of all kinds value by value, and reads and writes nothing out of bounds,
// checked by the sanitizers of the C compiler. STOA_FILLS is the number of arrays (20,000).
func TestFill(t *testing.T) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	program := filepath.Join(t.TempDir(), "fill")
	build := exec.Command(cc, "-g", "-O1", "-Wall", "-Werror", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=undefined", "-o", program, "filltest/main.c", "fill.c")
	if out, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "san") && strings.Contains(string(out), "cannot find") {
			t.Skipf("the C compiler has no sanitizers here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	n := os.Getenv("STOA_FILLS")
	if n == "" {
		n = "20000"
	}
	out, err := exec.Command(program, "1", n).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
