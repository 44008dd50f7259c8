package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// recorded opens a state in dir and records n tables from the given one on, none of them to the end of a run.
func recorded(t *testing.T, dir string, from, n int, each func()) *allState {
	t.Helper()
	var errs bytes.Buffer
	a := cli.NewApp(strings.NewReader(""), &errs, &errs)
	st, err := openState(dir, from > 0, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.journal.close)
	for i := range n {
		d := doneTable{Source: fmt.Sprintf("place#%06d", from+i), Output: fmt.Sprintf("%06d.jsonl", from+i), Rows: 1}
		if err := st.record(t.Context(), a, dir, d); err != nil {
			t.Fatal(err, errs.String())
		}
		if each != nil {
			each()
		}
	}
	return st
}

// sources are those that a run which goes on finds done.
func sources(t *testing.T, dir string) (out []string) {
	t.Helper()
	st, err := openState(dir, true, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range st.Done {
		out = append(out, d.Source)
		if st.find(oneTable{source: d.Source}).Output != d.Output {
			t.Errorf("%s is found as another", d.Source)
		}
	}
	return out
}

// stateBytes counts what recording n tables writes: a state file whole whenever it is another file than before, of the
// journal what it grew by.
func stateBytes(t *testing.T, n int) (written int64) {
	dir := t.TempDir()
	var last *os.File // held open, so that no other file can have its number
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
		t.Errorf("%d tables are done, want %d", got, n)
	}
	return written
}

// TestStateIsLinear: twice as many tables are twice as many bytes of state, and not four times.
func TestStateIsLinear(t *testing.T) {
	one, two := stateBytes(t, 100), stateBytes(t, 200)
	if two < one*3/2 || two > one*5/2 {
		t.Errorf("100 tables write %d bytes of state, 200 write %d", one, two)
	}
}

// TestJournalIsCut: wherever a killed run has stopped writing, each table of which the whole line is there is done,
// in the order in which they were, and a run that goes on from there loses none of them.
func TestJournalIsCut(t *testing.T) {
	dir := t.TempDir()
	recorded(t, dir, 0, 5, nil)
	journal := filepath.Join(dir, journalFile)
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(journal, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		// that of the state file, and the lines but the head
		want := 1 + max(0, bytes.Count(whole[:cut], []byte("\n"))-1)
		got := sources(t, dir)
		if len(got) != want || got[want-1] != fmt.Sprintf("place#%06d", want-1) {
			t.Fatalf("cut at %d of %d: %q, want %d tables", cut, len(whole), got, want)
		}
	}
	if err := os.WriteFile(journal, whole[:len(whole)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	recorded(t, dir, 4, 3, nil) // the last of them again
	if got := strings.Join(sources(t, dir), " "); got != "place#000000 place#000001 place#000002 place#000003 "+
		"place#000004 place#000005 place#000006" {
		t.Errorf("after another run: %s", got)
	}
}

// TestJournalOfAnother: a journal that belongs to another state file says nothing, a state file without one is what
// it was, and a line that leads out of the directory is refused.
func TestJournalOfAnother(t *testing.T) {
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
		t.Errorf("with the journal of another: %q", got)
	}
	put(state, old)
	if got := sources(t, dir); len(got) != 3 {
		t.Errorf("with its own: %q", got)
	}
	put(journal, bytes.Replace(lines, []byte(`"000001.jsonl"`), []byte(`"../000001.jsonl"`), 1))
	if _, err := openState(dir, true, []string{"to=jsonl"}); err == nil {
		t.Error("an output outside of the directory is believed")
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	if got := sources(t, dir); len(got) != 1 {
		t.Errorf("without a journal: %q", got)
	}
}
