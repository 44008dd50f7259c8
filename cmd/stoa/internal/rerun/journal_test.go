package rerun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// recorded opens a state in dir and records n tables from the given one on, without finishing the run.
func recorded(t *testing.T, dir string, from, n int, each func()) *State {
	t.Helper()
	var errs bytes.Buffer
	a := cli.NewApp(strings.NewReader(""), &errs, &errs)
	st, err := OpenState(t.Context(), a, dir, from > 0, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.journal.close)
	for i := range n {
		d := Table{Source: fmt.Sprintf("place#%06d", from+i), Output: fmt.Sprintf("%06d.jsonl", from+i), Rows: 1}
		if err := st.Record(t.Context(), a, dir, d); err != nil {
			t.Fatal(err, errs.String())
		}
		if each != nil {
			each()
		}
	}
	return st
}

// quiet returns the command without input, whose output is discarded.
func quiet() *cli.App { return cli.NewApp(strings.NewReader(""), io.Discard, io.Discard) }

// sources returns the sources of the tables that a resumed run finds done.
func sources(t *testing.T, dir string) (out []string) {
	t.Helper()
	st, err := OpenState(t.Context(), quiet(), dir, true, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range st.Done {
		out = append(out, d.Source)
		if st.Find(d.Source).Output != d.Output {
			t.Errorf("%s: find returns a different table", d.Source)
		}
	}
	return out
}

// stateBytes returns the number of bytes that recording n tables writes: the size of each new state file, and the
// growth of the journal.
func stateBytes(t *testing.T, n int) (written int64) {
	dir := t.TempDir()
	var last *os.File // stays open, so that no new file gets its inode
	var grown int64
	recorded(t, dir, 0, n, func() {
		f, err := os.Open(filepath.Join(dir, stateFile))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		now, _ := f.Stat()
		same := false
		if last != nil {
			before, _ := last.Stat()
			same = os.SameFile(before, now)
		}
		if !same {
			written += now.Size()
		}
		last = f
		if j, err := os.Stat(filepath.Join(dir, journalFile)); err == nil {
			written, grown = written+j.Size()-grown, j.Size()
		}
	})
	if got := len(sources(t, dir)); got != n {
		t.Errorf("got %d tables done, want %d", got, n)
	}
	return written
}

// TestStateIsLinear: twice as many tables write twice as many bytes of state, not four times as many.
func TestStateIsLinear(t *testing.T) {
	one, two := stateBytes(t, 100), stateBytes(t, 200)
	if two < one*3/2 || two > one*5/2 {
		t.Errorf("100 tables write %d bytes of state, 200 write %d, want twice as many", one, two)
	}
}

// TestCutJournal: wherever a killed run stopped writing, all tables with a complete line are done, in their order, and
// a resumed run loses none of them.
func TestCutJournal(t *testing.T) {
	dir := t.TempDir()
	recorded(t, dir, 0, 5, nil)
	journal := filepath.Join(dir, journalFile)
	complete, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(complete) + 1 {
		if err := os.WriteFile(journal, complete[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		// the table in the state file, and a table for each line but the header
		want := 1 + max(0, bytes.Count(complete[:cut], []byte("\n"))-1)
		got := sources(t, dir)
		if len(got) != want || got[want-1] != fmt.Sprintf("place#%06d", want-1) {
			t.Fatalf("cut at %d of %d: got %q, want %d tables", cut, len(complete), got, want)
		}
	}
	if err := os.WriteFile(journal, complete[:len(complete)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	recorded(t, dir, 4, 3, nil) // the last of them again
	if got := strings.Join(sources(t, dir), " "); got != "place#000000 place#000001 place#000002 place#000003 "+
		"place#000004 place#000005 place#000006" {
		t.Errorf("after another run: got %s", got)
	}
}

// TestForeignJournal: a journal of a different state file is ignored, a state file without a journal is read alone, and
// an output outside the directory is refused.
func TestForeignJournal(t *testing.T) {
	dir := t.TempDir()
	recorded(t, dir, 0, 3, nil)
	state, journal := filepath.Join(dir, stateFile), filepath.Join(dir, journalFile)
	old, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(state, append(bytes.Clone(old), '\n'))
	if got := sources(t, dir); len(got) != 1 {
		t.Errorf("with a foreign journal: got %q, want 1 table", got)
	}
	put(state, old)
	if got := sources(t, dir); len(got) != 3 {
		t.Errorf("with its own journal: got %q, want 3 tables", got)
	}
	put(journal, bytes.Replace(lines, []byte(`"000001.jsonl"`), []byte(`"../000001.jsonl"`), 1))
	if _, err := OpenState(t.Context(), quiet(), dir, true, []string{"to=jsonl"}); err == nil {
		t.Error("an output outside the directory: got no error, want one")
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	if got := sources(t, dir); len(got) != 1 {
		t.Errorf("without a journal: got %q, want 1 table", got)
	}
}
