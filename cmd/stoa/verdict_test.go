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

// TestDamagedTableFile: if table.json of a directory of CFiles is missing, damaged, foreign or not a regular file,
// every verb reports damage, none blocks on a pipe or reads a device forever, and recovery yields all rows.
func TestDamagedTableFile(t *testing.T) {
	dir := t.TempDir()
	rows := filepath.Join(dir, "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"b":"x"}`+"\n"+`{"a":2,"b":"y"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, harm := range map[string]func(name string) error{
		"missing":          func(string) error { return nil },
		"a pipe":           func(name string) error { return syscall.Mkfifo(name, 0o644) },
		"a device":         func(name string) error { return os.Symlink("/dev/zero", name) },
		"a loop":           func(name string) error { return os.Symlink("table.json", name) },
		"a dangling link":  func(name string) error { return os.Symlink("nowhere", name) },
		"a directory":      func(name string) error { return os.Mkdir(name, 0o755) },
		"empty":            func(name string) error { return os.WriteFile(name, nil, 0o644) },
		"zeros":            func(name string) error { return os.WriteFile(name, make([]byte, 512), 0o644) },
		"another's":        func(name string) error { return os.WriteFile(name, []byte(`{"x":1}`), 0o644) },
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
				t.Errorf("%s, %s: got status %d, want %d and the name: %s", what, verb, st, cli.StatusDamage, out)
			}
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		runOver(t, "recover -o "+out, set)
		if got, _ := os.ReadFile(out); strings.Count(string(got), "\n") != 2 {
			t.Errorf("%s: recover wrote %q, want 2 rows", what, got)
		}
	}
}

// TestRecoverEndsAsVerify: if verify finds an error in a file that recovery reads completely, both report it, with
// status 3.
func TestRecoverEndsAsVerify(t *testing.T) {
	for name, change := range map[string]struct{ at, to string }{
		// the last copy of the value is in the footer's statistics, which reading all rows does not use
		"bounds.parquet": {"1000000001", "1000000009"},
	} {
		file := filepath.Join(t.TempDir(), name)
		rows := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(rows, []byte(`{"a":"`+change.at+`"}`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if st, out := runOver(t, "convert --opt compression=none -o "+file, rows); st != cli.StatusFine {
			t.Fatal(out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		i := strings.LastIndex(string(b), change.at)
		copy(b[i:], change.to)
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "recover -o OUT.jsonl"} {
			if st, out := runOver(t, verb, file); st != cli.StatusDamage || !strings.Contains(out, "error parquet.") {
				t.Errorf("%s: got status %d, want %d and an error: %s", verb, st, cli.StatusDamage, out)
			}
		}
	}
}

// changedFiles rewrites each file below dir with the result of change, and reports whether one changed. If the result
// is nil the file is removed.
func changedFiles(t *testing.T, dir string, change func(name string, b []byte) []byte) (hit bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		changed := change(name, b)
		hit = hit || !bytes.Equal(b, changed)
		if changed == nil {
			return os.Remove(name)
		}
		return os.WriteFile(name, changed, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return hit
}

// TestInvalidNames: every verb that opens a table with a column name that is not UTF-8 reports it, with the same status
// in all formats.
func TestInvalidNames(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"nameqqqq":"x"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, f := range catalogue.Formats() {
		if f.Create == nil || f.Name == "jsonl" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "d")
		file := filepath.Join(dir, "t") + map[bool]string{true: "/"}[f.Name == "cfile"]
		if len(f.Extensions) > 0 && f.Name != "cfile" {
			file += f.Extensions[0]
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if st, out := runOver(t, "convert --to "+f.Name+" -o "+file, rows); st != cli.StatusFine {
			t.Logf("%s: %s", f.Name, out)
			continue
		}
		changedFiles(t, dir, func(_ string, b []byte) []byte {
			// disables Parquet's checksum of the footer, which is checked before names
			b = bytes.ReplaceAll(b, []byte("stoa.footer"), []byte("else.footer"))
			return bytes.ReplaceAll(b, []byte("nameqqqq"), []byte("nameqqq\xf8"))
		})
		if _, out := runOver(t, "cat", file); !strings.Contains(out, "file.name.utf8") {
			continue // another copy of the name is intact, or the format has a code of its own
		}
		tried++
		for _, verb := range []string{"cat", "count", "verify", "verify --quick", "verify --deep", "ls", "schema",
			"meta",
			"stats", "recover -o OUT.arrow"} {
			if st, out := runOver(t, verb, file); st != cli.StatusDamage {
				t.Errorf("%s, %s: got status %d, want %d: %s", f.Name, verb, st, cli.StatusDamage, out)
			}
		}
	}
	if tried < 4 {
		t.Errorf("got %d formats tried, want 4 or more", tried)
	}
}

// TestInvalidStrings: every verb that writes rows to a format that cannot store a string that is not UTF-8 reports with
// status 3 that the bytes changed, even into a pipe, where only the status shows it. Verbs that display rows for
// people, and formats that store the bytes, do not.
func TestInvalidStrings(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":"first"}`+"\n"+`{"a":"valueqqqq"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "t.cfile")
	st, out := runOver(t, "convert --opt checksums=false --opt compression=none -o "+file, rows)
	if st != cli.StatusFine {
		t.Fatal(out)
	}
	if !changedFiles(t, dir, func(_ string, b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("valueqqqq"), []byte("valueqqq\xf8"))
	}) {
		t.Fatal("the value is not in the file as it is")
	}
	for _, verb := range []string{"cat -f jsonl", "cat -f csv", "cat -f tsv", "cat -f arrow", "cat -o OUT.jsonl",
		"head -f jsonl", "tail -f csv", "get --row 1 -f jsonl", "convert -o OUT.jsonl", "convert -o OUT.arrow",
		"recover -o OUT.jsonl"} {
		st, out := runOver(t, verb, file)
		if st != cli.StatusDamage || !strings.Contains(out, "output.values.utf8") {
			t.Errorf("%s: got status %d, want %d and output.values.utf8: %s", verb, st, cli.StatusDamage, out)
		}
	}
	for _, verb := range []string{"cat -f table", "head -n 1 -f jsonl", "get --row 0 -f jsonl",
		"convert -o OUT.parquet", "count", "verify", "verify --deep"} {
		if st, out := runOver(t, verb, file); st != cli.StatusFine {
			t.Errorf("%s: got status %d, want %d: %s", verb, st, cli.StatusFine, out)
		}
	}
}

// TestSealOfUnreadable: sealing a place with an unreadable table reports it with status 3, however the table is broken,
// like ls does; and an empty path is not a place.
func TestSealOfUnreadable(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"b":"x"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func(b []byte) []byte{
		"cut.parquet":   func(b []byte) []byte { return b[:len(b)-20] },
		"cut.trv":       func(b []byte) []byte { return b[:len(b)/2] },
		"cut.red":       func(b []byte) []byte { return b[:len(b)-20] },
		"empty.parquet": func([]byte) []byte { return []byte{} },
		"empty.trv":     func([]byte) []byte { return []byte{} },
	} {
		dir := t.TempDir()
		if st, out := runOver(t, "convert -o "+filepath.Join(dir, "good.parquet"), rows); st != cli.StatusFine {
			t.Fatal(out)
		}
		seal := filepath.Join(t.TempDir(), "s.seal")
		if st, out := runOver(t, "seal -o "+seal, dir); st != cli.StatusFine {
			t.Errorf("%s: intact: got status %d: %s", name, st, out)
		}
		file := filepath.Join(dir, name)
		if st, out := runOver(t, "convert -o "+file, rows); st != cli.StatusFine {
			t.Fatal(out)
		}
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, harm(b), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		seal = filepath.Join(t.TempDir(), "s.seal")
		if st, out := runOver(t, "seal -o "+seal, dir); st != cli.StatusDamage || !strings.Contains(out, name) {
			t.Errorf("%s: got status %d, want %d and its name: %s", name, st, cli.StatusDamage, out)
		}
		if st, out := runOver(t, "verify --deep --seal "+seal, dir); st != cli.StatusFine {
			t.Errorf("%s: verify --seal: got status %d, want no difference: %s", name, st, out)
		}
		if st, out := runOver(t, "seal -o "+seal+".2", ""); st != cli.StatusUse {
			t.Errorf("no path: got status %d, want %d: %s", st, cli.StatusUse, out)
		}
	}
}

// TestHiddenTables: a table whose name begins with a dot is reported as left out, like one that begins with _: verify
// examines it, and no verb for all tables of a place omits it silently.
func TestHiddenTables(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"b":"x"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".h.trv", "_h.trv", ".h.parquet"} {
		dir := t.TempDir()
		for _, n := range []string{"a" + filepath.Ext(name), name} {
			if st, out := runOver(t, "convert -o "+filepath.Join(dir, n), rows); st != cli.StatusFine {
				t.Fatal(out)
			}
		}
		for _, verb := range []string{"ls", "convert --all -o OUT --to parquet", "recover --all -o OUT --to parquet"} {
			if st, out := runOver(t, verb, dir); st != cli.StatusFine || !strings.Contains(out, name) {
				t.Errorf("%s, %s: got status %d, want %d and its name: %s", name, verb, st, cli.StatusFine, out)
			}
		}
	}
}

// TestColumnFileTaken: if a directory has the name of a column's file, its cells are lost, like those of a missing
// file, and the other columns are returned; every verb reports damage.
func TestColumnFileTaken(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a":1,"b":"x"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []string{"", " --opt plain-metadata=true"} {
		dir := filepath.Join(t.TempDir(), "t")
		st, out := runOver(t, "convert --to cfile --opt layout=dir"+opt+" -o "+dir, rows)
		if st != cli.StatusFine {
			t.Fatal(out)
		}
		file := filepath.Join(dir, "b.cfile")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(file, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"cat", "count", "verify", "verify --deep", "ls", "describe",
			"cat --damaged null-cells -f jsonl", "recover --damaged null-cells -o OUT.jsonl"} {
			st, out := runOver(t, verb, dir)
			if st != cli.StatusDamage || !strings.Contains(out, "missing") {
				t.Errorf("%s%s: got status %d, want %d: %s", verb, opt, st, cli.StatusDamage, out)
			}
			if strings.Contains(verb, "jsonl") && strings.Contains(verb, "cat") &&
				!strings.Contains(out, `{"a":1,"b":null}`) {
				t.Errorf("%s%s: the other column did not come out: %s", verb, opt, out)
			}
		}
	}
}

// TestMissingDataFile: if an index of a CarbonData table names a missing data file, every verb that looks for files
// reports it, even if an intact table is in the same store.
func TestMissingDataFile(t *testing.T) {
	for _, table := range []string{"1.0.0/v2_b2000", "2.3.0/managed/managed_del", "2.3.0/managed/managed_part",
		"2.3.0/v3/dates_ts/table"} {
		store := t.TempDir()
		dir := filepath.Join(store, "a")
		for _, to := range []string{dir, filepath.Join(store, "b")} {
			if err := os.CopyFS(to, os.DirFS(filepath.Join("../../corpus/carbon", table))); err != nil {
				t.Fatal(err)
			}
		}
		removed := false
		if !changedFiles(t, dir, func(name string, b []byte) []byte {
			if is := filepath.Ext(name) == ".carbondata"; is && !removed {
				removed = true
				return nil
			}
			return b
		}) {
			t.Fatalf("%s has no data files", table)
		}
		for _, verb := range []string{"cat", "count", "verify", "verify --quick", "ls", "meta",
			"recover -o OUT.jsonl"} {
			if st, out := runOver(t, verb, dir); st != cli.StatusDamage || !strings.Contains(out, ".carbondata") {
				t.Errorf("%s, %s: got status %d, want %d and the file: %s", table, verb, st, cli.StatusDamage, out)
			}
		}
		if st, out := runOver(t, "ls", store); st != cli.StatusDamage || !strings.Contains(out, ".carbondata") {
			t.Errorf("%s, ls of the store: got status %d, want %d and the file: %s", table, st, cli.StatusDamage, out)
		}
	}
}

// TestFilesBesideTables: in a store of CarbonData, a file that no table owns has a line from every verb for all
// tables, at the depth of tables and of databases. What the tables own has none, and the tables are converted.
func TestFilesBesideTables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"s.txt": "id int\n", "in.csv": "id\n1\n2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"store/a", "store/db/b"} {
		must(t, "create", dir, "--schema", "s.txt")
		must(t, "load", dir, "in.csv")
	}
	quiet := map[string]string{}
	verbs := []string{"ls", "verify", "convert --all -o OUT", "recover --all -o OUT --to parquet"}
	for _, verb := range verbs {
		st, out := runOver(t, verb, "store")
		if quiet[verb] = out; st != cli.StatusFine || strings.Contains(out, "left out") {
			t.Errorf("%s: got status %d, want %d and nothing left out: %s", verb, st, cli.StatusFine, out)
		}
	}
	for _, name := range []string{"store/notes.txt", "store/db/notes.txt", "store/db/notes"} {
		if err := os.WriteFile(name, []byte("hello"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, verb := range verbs {
			if strings.Contains(quiet[verb], name) {
				t.Fatalf("%s names %s, which is not there", verb, name)
			}
			st, out := runOver(t, verb, "store")
			if st != cli.StatusFine || strings.Count(out, name) != 1 {
				t.Errorf("%s: got status %d, want %d and one line with %s: %s", verb, st, cli.StatusFine, name, out)
			}
			if strings.Contains(out, "tablestatus") {
				t.Errorf("%s names a table's own file: %s", verb, out)
			}
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedFilesBesideTables: a data file in a store's directory, healthy or damaged, has a line of its own from
// every verb for all tables. A damaged one makes the status 3, and hides neither the tables nor the healthy file.
func TestDamagedFilesBesideTables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"s.txt": "id int\n", "in.csv": "id\n1\n2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"store/a", "store/z"} {
		must(t, "create", dir, "--schema", "s.txt")
		must(t, "load", dir, "in.csv")
	}
	names, err := filepath.Glob("store/a/Fact/Part0/Segment_0/*.carbondata")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	good, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	for i := len(flipped) - 60; i < len(flipped)-9; i++ {
		flipped[i] ^= 0xFF
	}
	for what, b := range map[string][]byte{"whole": good, "cut": good[:len(good)/2], "flipped": flipped, "empty": {},
		"zeros": make([]byte, len(good))} {
		want := cli.StatusDamage
		if what == "whole" {
			want = cli.StatusFine
		}
		if err := os.WriteFile("store/m.carbondata", b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"ls", "verify", "convert --all -o OUT --to jsonl",
			"ls store/m.carbondata store/a", "convert --all store/m.carbondata store/a -o OUT --to jsonl"} {
			last, lines := "store", []string{"store#a ", "store#z ", "store/m.carbondata"}
			if strings.Contains(verb, "store/m") {
				last, lines = "store/z", []string{"store/a ", "store/z ", "store/m.carbondata"}
			} else if verb == "verify" {
				lines = lines[2:]
			}
			st, out := runOver(t, verb, last)
			if st != want {
				t.Errorf("%s, %s: got status %d, want %d: %s", what, verb, st, want, out)
			}
			for _, line := range lines {
				if !strings.Contains(out, line) {
					t.Errorf("%s, %s: expected %q in: %s", what, verb, line, out)
				}
			}
		}
	}
}

// TestLostTablets: if the superblock of a Kudu server's only table is missing, cut or empty, alone or with all other
// signs of its tablet but the blocks, every verb over the directory reports it.
func TestLostTablets(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"missing": func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func([]byte) []byte { return []byte{} },
	} {
		for _, place := range []string{"file", "history"} {
			checkLostTablet(t, place, "superblock "+name, harm, false)
			checkLostTablet(t, place, "only blocks, superblock "+name, harm, true)
		}
	}
}

func checkLostTablet(t *testing.T, place, what string, harm func([]byte) []byte, onlyBlocks bool) {
	t.Helper()
	dir := t.TempDir()
	copyDir(t, filepath.Join("../../format/kudu/testdata", place), dir)
	if !changedFiles(t, dir, func(name string, b []byte) []byte {
		above := filepath.Dir(name)
		if filepath.Base(above) == "tablet-meta" {
			return harm(b)
		}
		if onlyBlocks && (filepath.Base(above) == "consensus-meta" || filepath.Base(filepath.Dir(above)) == "wals") {
			return nil
		}
		return b
	}) {
		t.Fatal("no superblock")
	}
	for _, verb := range []string{"ls", "verify", "verify --quick", "convert --all -o OUT --to parquet",
		"recover --all -o OUT --to parquet"} {
		if st, out := runOver(t, verb, dir); st != cli.StatusDamage && st != cli.StatusCannot {
			t.Errorf("%s, %s, %s: got status %d: %s", place, what, verb, st, out)
		}
	}
}
