//go:build unix

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/cli"
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

// TestRecoverEndsAsVerify: what recovery reads to its end, and verify finds an error in, is reported by both, with
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

// harmedFiles writes what change makes of each file below dir, and reports whether one became another. nil: it goes.
func harmedFiles(t *testing.T, dir string, change func(name string, b []byte) []byte) (hit bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		other := change(name, b)
		hit = hit || !bytes.Equal(b, other)
		if other == nil {
			return os.Remove(name)
		}
		return os.WriteFile(name, other, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return hit
}

// TestNamesThatAreNoText: of a table, in any format, of which a name is no UTF-8, every verb says so that opens it,
// with the same status.
func TestNamesThatAreNoText(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"nameqqqq":"x"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, f := range catalogue.Formats() {
		if f.Create == nil || f.Name == "jsonl" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "d")
		place := filepath.Join(dir, "t") + map[bool]string{true: "/"}[f.Name == "cfile"]
		if len(f.Extensions) > 0 && f.Name != "cfile" {
			place += f.Extensions[0]
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if st, out := runOver(t, "convert --to "+f.Name+" -o "+place, rows); st != cli.StatusFine {
			t.Logf("%s: %s", f.Name, out)
			continue
		}
		harmedFiles(t, dir, func(_ string, b []byte) []byte {
			// Parquet's checksum, told before names
			b = bytes.ReplaceAll(b, []byte("stoa.footer"), []byte("else.footer"))
			return bytes.ReplaceAll(b, []byte("nameqqqq"), []byte("nameqqq\xf8"))
		})
		if _, out := runOver(t, "cat", place); !strings.Contains(out, "file.name.utf8") {
			continue // the name is kept elsewhere, too, or told in the words of the format
		}
		told++
		for _, verb := range []string{"cat", "count", "verify", "verify --quick", "verify --deep", "ls", "schema",
			"meta",
			"stats", "recover -o OUT.arrow"} {
			if st, out := runOver(t, verb, place); st != cli.StatusDamage {
				t.Errorf("%s, %s: status %d: %s", f.Name, verb, st, out)
			}
		}
	}
	if told < 4 {
		t.Errorf("only %d formats were looked at", told)
	}
}

// TestDataFileIsGone: of a CarbonData table of which an index names a data file that is not there, every verb that
// looks for files says so, also beside tables that are whole.
func TestDataFileIsGone(t *testing.T) {
	for _, table := range []string{"1.0.0/v2_b2000", "2.3.0/managed/managed_del", "2.3.0/managed/managed_part",
		"2.3.0/v3/dates_ts/table"} {
		store := t.TempDir()
		place := filepath.Join(store, "a")
		for _, to := range []string{place, filepath.Join(store, "b")} {
			if err := os.CopyFS(to, os.DirFS(filepath.Join("../../corpus/carbon", table))); err != nil {
				t.Fatal(err)
			}
		}
		gone := false
		if !harmedFiles(t, place, func(name string, b []byte) []byte {
			if is := filepath.Ext(name) == ".carbondata"; is && !gone {
				gone = true
				return nil
			}
			return b
		}) {
			t.Fatalf("%s has no data files", table)
		}
		for _, verb := range []string{"cat", "count", "verify", "verify --quick", "ls", "meta",
			"recover -o OUT.jsonl"} {
			if st, out := runOver(t, verb, place); st != cli.StatusDamage || !strings.Contains(out, ".carbondata") {
				t.Errorf("%s, %s: status %d: %s", table, verb, st, out)
			}
		}
		if st, out := runOver(t, "ls", store); st != cli.StatusDamage || !strings.Contains(out, ".carbondata") {
			t.Errorf("%s, ls of the store: status %d: %s", table, st, out)
		}
	}
}
