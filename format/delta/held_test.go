package delta_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/delta"
	"stoa/region"
)

// verified returns the errors that verify reports of a Delta Lake table.
func verified(t *testing.T, dir string, deep format.Depth) (out []string) {
	t.Helper()
	o := stoa.OpenOptions{Formats: append([]format.Format{delta.Format}, stoa.Formats...), Depth: deep}
	for f, err := range stoa.Verify(t.Context(), dir, o) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Severity == region.Error {
			out = append(out, f.Message)
		}
	}
	return out
}

// counted opens a table and reads all of it.
func counted(t *testing.T, dir string) error {
	t.Helper()
	table, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{
		Formats: append([]format.Format{delta.Format}, stoa.Formats...)})
	if err != nil {
		return err
	}
	defer table.Close()
	for _, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// changed returns a golden table whose log has the first text of each pair replaced by the second.
func changed(t *testing.T, table string, pairs ...string) string {
	t.Helper()
	dir := extended(t, table, 0)
	logs, err := filepath.Glob(filepath.Join(dir, "_delta_log", "*.json"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	did := false
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		after := strings.NewReplacer(pairs...).Replace(string(b))
		did = did || after != string(b)
		if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !did {
		t.Fatalf("%s: no log has any of %q", table, pairs)
	}
	return dir
}

// TestHeld: a file that contradicts the log is not read; tables of another writer are intact.
func TestHeld(t *testing.T) {
	for _, table := range []string{"parted", "evolved"} {
		if got := verified(t, "testdata/"+table, format.Deep); len(got) > 0 {
			t.Errorf("%s: %q", table, got)
		}
	}
	for _, c := range []struct {
		table, want string
		pairs       []string
	}{
		{"evolved", "bytes as the log says", []string{`"size":`, `"size":1`}},
		{"evolved", "as the log says", []string{`\"id\":19`, `\"id\":9`}},
		{"evolved", "nulls as the log says", []string{`\"s\":3`, `\"s\":4`}},
	} {
		dir := changed(t, c.table, c.pairs...)
		if got := verified(t, dir, format.Sums); len(got) == 0 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s, %q: verify says %q", c.table, c.pairs, got)
		}
		if err := counted(t, dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: reading says %v", c.table, c.pairs, err)
		}
	}
}

// TestLooseNulls: a number of nulls that the log does not mark as exact contradicts nothing.
func TestLooseNulls(t *testing.T) {
	loose := `\"tightBounds\":false,\"nullCount\"`
	dir := changed(t, "evolved", `\"s\":3`, `\"s\":4`, `\"nullCount\"`, loose)
	if err := counted(t, dir); err != nil {
		t.Errorf("reading says %v", err)
	}
	if got := verified(t, dir, format.Deep); len(got) > 0 {
		t.Errorf("verify says %q", got)
	}
}

// TestDamagedPage: verify reads the files of a table, and reports the same of a damaged page as reading does.
func TestDamagedPage(t *testing.T) {
	dir := extended(t, "evolved", 0)
	files, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[4:], bytes.Repeat([]byte{0xff}, 24)) // the header of the first page
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := counted(t, dir); err == nil {
		t.Error("reading finds nothing")
	}
	if got := verified(t, dir, format.Sums); len(got) == 0 {
		t.Error("verify finds nothing")
	}
}

// TestLostLog: a table that has lost its log is an unreadable table, not a directory of files.
func TestLostLog(t *testing.T) {
	dir := extended(t, "evolved", 0)
	logs, _ := filepath.Glob(filepath.Join(dir, "_delta_log", "*"))
	for _, name := range logs {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := verified(t, dir, format.Sums); len(got) != 1 || !strings.Contains(got[0], "the versions of a log") {
		t.Errorf("verify says %q", got)
	}
	if err := counted(t, dir); err == nil || !strings.Contains(err.Error(), "the versions of a log") {
		t.Errorf("reading says %v", err)
	}
}

// TestEmptyVersion: a version without an action is damage: what it changed is lost.
func TestEmptyVersion(t *testing.T) {
	for _, text := range []string{"", "\n"} {
		dir := extended(t, "evolved", 0)
		logs, err := filepath.Glob(filepath.Join(dir, "_delta_log", "*.json"))
		if err != nil || len(logs) == 0 {
			t.Fatal(logs, err)
		}
		newest := logs[len(logs)-1]
		if err := os.WriteFile(newest, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := verified(t, dir, format.Sums); len(got) == 0 {
			t.Errorf("%q: verify finds nothing", text)
		}
		if err := counted(t, dir); err == nil || !strings.Contains(err.Error(), filepath.Base(newest)) {
			t.Errorf("%q: reading says %v", text, err)
		}
	}
}
