package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/format"
)

// place has tables that real programs wrote.
func place() string {
	if dir := os.Getenv("STOA_CORPUS"); dir != "" {
		return dir
	}
	return "../../corpus"
}

// run runs the command in this process.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := verbs.NewApp(strings.NewReader(""), &out, &errs)
	status, _ = verbs.RunWith(stoa.Session(context.Background()), a, verbs.SQLWords(args), Run)
	return status, out.String(), errs.String()
}

// asked is a session that a test asks several things of.
type asked struct {
	*Session
	out, errs bytes.Buffer
}

func newAsked(t *testing.T, f *verbs.SQLFlags) *asked {
	t.Helper()
	q := &asked{}
	if f.Damaged == "" {
		f.Damaged = "fail"
	}
	s, err := Open(context.Background(), verbs.NewApp(strings.NewReader(""), &q.out, &q.errs), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	q.Session = s
	return q
}

// to writes the rows of a statement to a file.
func (q *asked) to(file, statement string) error {
	q.flags.File, q.shown = file, false
	defer q.forget()
	return q.Statement(context.Background(), statement)
}

// forget closes the tables of the session.
func (q *asked) forget() {
	for ask, t := range q.opened {
		t.Close()
		delete(q.opened, ask)
	}
}

// TestEveryTableOfTheCorpus: what a query gives of a table is what the library reads of it, cell by cell, in its order;
// where that is an error it is the same one. Of the blocks of Kudu, which are thousands, STOA_CORPUS_EVERY says which
// part (one in 25).
func TestEveryTableOfTheCorpus(t *testing.T) {
	ctx := stoa.Session(context.Background())
	o := stoa.OpenOptions{Formats: verbs.Formats()}
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	equal, failed, n := 0, 0, 0
	for e, err := range stoa.List(ctx, place(), o) {
		if err != nil {
			continue // what no verb opens
		}
		if n++; strings.Contains(e.Place, "kudu/blocks") && n%25 != 0 {
			continue
		}
		if q.same(t, ctx, e, o) {
			equal++
		} else {
			failed++
		}
	}
	t.Logf("%d tables equal, %d with the same error", equal, failed)
	if equal < 20 {
		t.Errorf("expected 20 tables or more, found %d", equal)
	}
}

// same reports whether a table is the same through SQL; false: opening or reading it is the same error.
func (q *asked) same(t *testing.T, ctx context.Context, e format.Entry, o stoa.OpenOptions) bool {
	t.Helper()
	uri, opts := stoa.Named(e, o)
	statement := "FROM stoa(" + quote(uri) + ", format := " + quote(opts.From) + ")"
	out := filepath.Join(t.TempDir(), "out.arrow")
	found := q.to(out, statement)
	want, err := stoa.Open(ctx, uri, opts)
	if err == nil {
		defer want.Close()
		for _, err = range want.Scan(ctx, stoa.ScanSpec{}) {
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		if found == nil || errors.Is(err, fault.Corrupt) != errors.Is(found, fault.Corrupt) {
			t.Errorf("%s: expected %v, found %v", uri, err, found)
		}
		return false
	}
	if found != nil {
		t.Errorf("%s: %v", uri, found)
		return false
	}
	alike(t, uri, want, out)
	return true
}

// alike compares a table with a file.
func alike(t *testing.T, what string, want *stoa.Table, file string) {
	t.Helper()
	got, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	d, err := stoa.Diff(context.Background(), want, got, stoa.DiffOptions{})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, c := range d.Schema {
		if c.Incomparable || c.Kind != "type" && c.Differs() {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if d.Changed+d.Only[0]+d.Only[1] > 0 {
		t.Errorf("%s: %d rows differ: %+v", what, d.Changed+d.Only[0]+d.Only[1], d.Examples)
	}
}

func flagsFor(t *testing.T) *verbs.SQLFlags {
	t.Helper()
	return &verbs.SQLFlags{Threads: 2}
}
