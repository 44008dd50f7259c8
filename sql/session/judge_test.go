package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/cells"
	"stoa/sql/duck"
)

// place returns the directory of tables that real programs wrote.
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

// asked is a session in which a test runs several queries.
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
	return q.end(context.Background(), q.Statement(context.Background(), statement))
}

// forget closes the tables of the session.
func (q *asked) forget() {
	for ask, t := range q.opened {
		t.Close()
		delete(q.opened, ask)
	}
}

// TestEveryTableOfTheCorpus: a query over a table returns what the library reads, cell by cell, in its order; where
// that is an error it is the same one. Of the thousands of Kudu blocks, one in STOA_CORPUS_EVERY (25) is tested.
func TestEveryTableOfTheCorpus(t *testing.T) {
	ctx := stoa.Session(context.Background())
	o := stoa.OpenOptions{Formats: verbs.Formats()}
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	equal, failed, n := 0, 0, 0
	for e, err := range stoa.List(ctx, place(), o) {
		if err != nil {
			continue // not opened by any verb
		}
		if n++; strings.Contains(e.Place, "kudu/blocks") && n%25 != 0 || testing.Short() && n%4 != 0 {
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
	if err == nil && want.Schema().NumFields() == 0 {
		err = fault.Unsupportedf(fault.Span{}, "", "no columns")
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

// alike compares a table with a file, whose columns may have other names, and may be text where DuckDB has no type.
func alike(t *testing.T, what string, want *stoa.Table, file string) {
	t.Helper()
	got, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if !renamed(want.Schema().Fields()) && !texts(want, got) {
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
		return
	}
	a, b := values(t, want), values(t, got)
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			t.Errorf("%s: value %d: expected %s, found %q", what, i, a[i], b[i:min(i+1, len(b))])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: %d values, expected %d", what, len(b), len(a))
	}
}

// texts reports whether a column is text that was of another type.
func texts(want, got *stoa.Table) bool {
	for i, f := range want.Schema().Fields() {
		if g := got.Schema().Field(i).Type.ID(); g == arrow.STRING && !arrow.IsBaseBinary(f.Type.ID()) &&
			f.Type.ID() != arrow.DICTIONARY {
			return true
		}
	}
	return false
}

// renamed reports whether a field, at any depth, has another name in DuckDB.
func renamed(fields []arrow.Field) bool {
	for i, name := range duck.Names(fields) {
		nested, ok := fields[i].Type.(arrow.NestedType)
		if name != fields[i].Name || ok && renamed(nested.Fields()) {
			return true
		}
	}
	return false
}

// names are the keys of objects in JSON.
var objectNames = regexp.MustCompile(`"[^"]*":`)

// values returns the values of a table as text, without the names of fields.
func values(t *testing.T, table *stoa.Table) (out []string) {
	t.Helper()
	for b, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			for _, c := range b.Columns() {
				v := "null"
				if !c.IsNull(i) {
					v = objectNames.ReplaceAllString(string(cells.AppendCSV(nil, c, i)), "")
				}
				out = append(out, v)
			}
		}
	}
	return out
}

func flagsFor(t *testing.T) *verbs.SQLFlags {
	t.Helper()
	return &verbs.SQLFlags{Threads: 2}
}

// TestOrder: rows come in the table's order, even where several threads could take them.
func TestOrder(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 4})
	file := filepath.Join(t.TempDir(), "x.trv")
	q.must(t, "COPY (SELECT i::BIGINT AS i, 'text of row ' || i AS s FROM range(300000) r(i)) TO "+quote(file))
	for _, query := range []string{"SELECT i FROM %s", "SELECT i, s FROM %s WHERE i %% 3 = 0 AND i > 1000",
		"SELECT i FROM %s WHERE i BETWEEN 70000 AND 290000 LIMIT 150000 OFFSET 10"} {
		out, err := q.Texts(context.Background(), fmt.Sprintf(query, quote(file)))
		if err != nil || len(out) < 90_000 {
			t.Fatalf("%s: %d rows, %v", query, len(out), err)
		}
		last := -1
		for _, v := range out {
			n, err := strconv.Atoi(v)
			if err != nil || n <= last {
				t.Fatalf("%s: %s after %d", query, v, last)
			}
			last = n
		}
	}
}

// TestStatuses: a query has the same exit statuses as the other verbs.
func TestStatuses(t *testing.T) {
	dir := t.TempDir()
	if status, err := verbs.Run(context.Background(), []string{"demo", dir + "/try", "--damage"}, strings.NewReader(""),
		&bytes.Buffer{}, &bytes.Buffer{}); status != 0 {
		t.Fatal(err)
	}
	good, bad := quote(dir+"/try/key.cfile"), quote(dir+"/try/damaged/key.cfile")
	for _, c := range []struct {
		status int
		out    string // in standard output
		err    string // in standard error
		args   []string
	}{
		{0, `{"n":400}`, "", []string{"SELECT count(*) AS n FROM " + good}},
		{0, `{"n":400}`, "", []string{"--table", "k=" + dir + "/try/key.cfile", "SELECT count(*) AS n FROM k"}},
		{0, `{"n":60}`, "", []string{"-q", "--attach", "p=" + dir + "/try/primitives.trv",
			"SELECT count(*) AS n FROM p.primitives"}},
		{0, "| n |\n| ---: |\n| 400 |", "", []string{"-f", "markdown", "SELECT count(*) AS n FROM " + good}},
		{3, "", "[539+525]: corrupt", []string{"SELECT sum(value) AS n FROM " + bad}},
		{3, `{"n":272}`, "lost: rows 128:256", []string{"--damaged", "skip-rows", "SELECT count(*) AS n FROM " + bad}},
		{3, `{"n":272}`, "lost: rows 128:256", []string{
			"SELECT count(*) AS n FROM stoa(" + bad + ", damaged := 'skip-rows')"}},
		{3, `{"n":400}`, "lost: rows 128:256", []string{"--damaged", "null-cells", "SELECT count(*) AS n FROM " + bad}},
		{2, "", "Parser Error", []string{"SELEKT"}}, {2, "", "Catalog Error", []string{"FROM nonsens"}},
		{2, "", "Binder Error", []string{"SELECT nobody FROM " + good}},
		{2, "", "damaged: expected", []string{"FROM stoa(" + good + ", damaged := 'x')"}},
		{2, "", "no statement", []string{" ; "}}, {2, "", "one query", []string{"a", "b"}},
		{2, "", "--threads", []string{"--threads", "-1", "SELECT 1"}},
		{2, "", "--threads", []string{"--threads", "0", "SELECT 1"}},
		{2, "", "no policy", []string{"--damaged", "foo", "SELECT 1"}},
		{2, "", "not a form", []string{"-f", "foo", "CREATE TABLE x AS SELECT 1"}},
		{1, "", "no such file", []string{"FROM " + quote(dir+"/absent.cfile")}},
		{1, "", "Conversion Error", []string{"SELECT 'x'::INTEGER FROM " + good}},
		{2, "", "also a source", []string{"COPY (FROM " + good + ") TO " + good}},
		{0, "", "400 rows", []string{"CREATE TABLE " + quote(dir+"/new.cfile") + " AS FROM " + good}},
		{0, `{"n":400}`, "", []string{"SELECT count(*) AS n FROM " + quote(dir+"/new.cfile")}},
		{0, `{"n":1}`, "", []string{"CREATE TABLE x AS SELECT 1 AS n; FROM x"}},
	} {
		status, out, errs := run(c.args...)
		if status != c.status || strings.TrimSpace(out) != c.out || !strings.Contains(errs, c.err) {
			t.Errorf("%q: status %d, %q, %q; expected %d, %q, %q", c.args, status, out, errs, c.status, c.out, c.err)
		}
	}
}
