//go:build unix

package main

import (
	"os"
	"path/filepath"
	"stoa/cmd/stoa/internal/cli"
	"strings"
	"syscall"
	"testing"
)

// TestSetThatIsNoFile: of a directory of CFiles whose table.json is gone, damaged, someone else's or no file at
// all, every verb says that it is damaged, none waits for a pipe or reads a device for ever, and recovery gives
// all rows.
func TestSetThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	rows := filepath.Join(dir, "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"b":"x"}`+"\n"+`{"a":2,"b":"y"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, harm := range map[string]func(name string) error{
		"gone":             func(string) error { return nil },
		"a pipe":           func(name string) error { return syscall.Mkfifo(name, 0o644) },
		"a device":         func(name string) error { return os.Symlink("/dev/zero", name) },
		"a loop":           func(name string) error { return os.Symlink("table.json", name) },
		"a dangling link":  func(name string) error { return os.Symlink("nowhere", name) },
		"a directory":      func(name string) error { return os.Mkdir(name, 0o755) },
		"empty":            func(name string) error { return os.WriteFile(name, nil, 0o644) },
		"zeros":            func(name string) error { return os.WriteFile(name, make([]byte, 512), 0o644) },
		"someone else's":   func(name string) error { return os.WriteFile(name, []byte(`{"x":1}`), 0o644) },
		"a table of lists": func(name string) error { return os.WriteFile(name, []byte(`[1,2]`), 0o644) },
	} {
		set := filepath.Join(t.TempDir(), "t.cfile")
		if st, out := runOver(t, "convert --to cfile -o "+set+"/", rows); st != cli.StatusFine {
			t.Fatal(out)
		}
		if err := os.Remove(filepath.Join(set, "table.json")); err != nil {
			t.Fatal(err)
		}
		if err := harm(filepath.Join(set, "table.json")); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"cat", "count", "verify", "verify --quick", "verify --deep", "ls",
			"recover -o OUT.jsonl", "convert -o OUT.jsonl", "convert --all -o OUT/"} {
			if st, out := runOver(t, verb, set); st != cli.StatusDamage || verb != "ls" &&
				!strings.Contains(out, "table.json") {
				t.Errorf("%s, %s: status %d: %s", what, verb, st, out)
			}
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		runOver(t, "recover -o "+out, set)
		if got, _ := os.ReadFile(out); strings.Count(string(got), "\n") != 2 {
			t.Errorf("%s: recover gives %q", what, got)
		}
	}
}

// TestRecoverEndsAsVerify: what recovery reads to its end, and verify finds an error in, is told by both, with
// status 3.
func TestRecoverEndsAsVerify(t *testing.T) {
	for name, change := range map[string]struct{ at, to string }{
		// the last copy of the value is in the footer's statistics: all rows are read without these
		"bounds.parquet": {"1000000001", "1000000009"},
	} {
		place := filepath.Join(t.TempDir(), name)
		rows := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(rows, []byte(`{"a":"`+change.at+`"}`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if st, out := runOver(t, "convert --opt compression=none -o "+place, rows); st != cli.StatusFine {
			t.Fatal(out)
		}
		b, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		i := strings.LastIndex(string(b), change.at)
		copy(b[i:], change.to)
		if err := os.WriteFile(place, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "recover -o OUT.jsonl"} {
			if st, out := runOver(t, verb, place); st != cli.StatusDamage || !strings.Contains(out, "error parquet.") {
				t.Errorf("%s: status %d: %s", verb, st, out)
			}
		}
	}
}
