//go:build interop

package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa/interop/fuzz"
)

// judge runs a test of judge.py: on a number of tables from STOA_SEED on, or for as long as STOA_FUZZ says.
func judge(t *testing.T, game string, tables int) {
	t.Helper()
	home, err := exec.Command("./get.sh").Output()
	if err != nil {
		t.Fatalf("get.sh: %v", err)
	}
	dir := t.TempDir()
	if keep := os.Getenv("STOA_INTEROP_KEEP"); keep != "" {
		dir = keep
	}
	stoa := filepath.Join(t.TempDir(), "stoa")
	if out, err := exec.Command("go", "build", "-o", stoa, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if s := os.Getenv("STOA_TABLES"); s != "" {
		if tables, err = strconv.Atoi(s); err != nil {
			t.Fatalf("STOA_TABLES: %v", err)
		}
	}
	python := filepath.Join(strings.TrimSpace(string(home)), "venv/bin/python")
	seconds := fuzz.For(t).Seconds()
	if game == "self" || game == "corpus" {
		seconds = 0
	}
	cmd := exec.Command(python, "judge.py", stoa, dir, game, fmt.Sprint(fuzz.Seed(t)), fmt.Sprint(tables),
		fmt.Sprint(seconds))
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "COUNT ") || strings.Contains(line, ": noticed: ") {
			t.Log(strings.TrimSpace(line))
		} else {
			t.Error(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("%s: %v", game, err)
	}
	if !strings.Contains(string(out), "COUNT "+game) {
		t.Errorf("%s: the judge did not finish", game)
	}
}

// TestSelf: a changed value, level and byte are noticed.
func TestSelf(t *testing.T) { judge(t, "self", 20) }

// TestCorpus tests the decoder on files that redelm wrote in 2013, and on the worked examples.
func TestCorpus(t *testing.T) { judge(t, "corpus", 1) }

// stoa reads files made from the documents.
func TestFuzzWikiRead(t *testing.T) { judge(t, "wiki-read", 150) }
func TestFuzzRed1Read(t *testing.T) { judge(t, "red1-read", 150) }

// What stoa writes is what the documents specify, byte for byte.
func TestFuzzWikiWrite(t *testing.T) { judge(t, "wiki-write", 150) }
func TestFuzzRed1Write(t *testing.T) { judge(t, "red1-write", 150) }
