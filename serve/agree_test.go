package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
)

// saysOf runs a command line, and returns what it prints.
func saysOf(t *testing.T, args ...string) (out, notes string, status int) {
	t.Helper()
	var b, errs bytes.Buffer
	status, _ = verbs.RunApp(t.Context(), verbs.NewApp(nil, &b, &errs), args)
	return b.String(), errs.String(), status
}

// seedOf is STOA_SEED, or a preset.
func seedOf(preset uint64) uint64 {
	if text := os.Getenv("STOA_SEED"); text != "" {
		fmt.Sscan(text, &preset)
	}
	return preset
}

// TestPageAndCommandAgree damages real files of every format: the page shows the rows that stoa cat prints, cell by
// cell, and says that something is lost exactly if cat does (in its manifest). STOA_SEED=n damages others.
func TestPageAndCommandAgree(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, dir)
	r := rand.New(rand.NewPCG(27, seedOf(8)))
	files := corpusFiles(t)
	r.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	rows, lost, same := 0, 0, 0
	for i := range rounds(24, 300) {
		from := files[i%len(files)]
		b, err := os.ReadFile(from)
		if err != nil || len(b) > 1<<20 {
			continue
		}
		name := filepath.Join(dir, filepath.Base(from))
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		damage(t, r, name)
		n, gone := agree(t, s, from, name)
		rows += n
		if gone {
			lost++
		} else if n > 0 {
			same++
		}
		os.Remove(name)
	}
	if rows < 100 || lost == 0 || same == 0 {
		t.Errorf("%d rows, %d damaged tables, %d others: the test shows little", rows, lost, same)
	}
	t.Logf("%d rows of %d damaged tables and %d others", rows, lost, same)
}

// TestPageAndCommandAgreeOnDirectories is TestPageAndCommandAgree for tables that are directories: bytes of a file of
// them are damaged, or the file is gone.
func TestPageAndCommandAgreeOnDirectories(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, dir)
	r := rand.New(rand.NewPCG(27, seedOf(9)))
	tables, err := filepath.Glob("../corpus/carbon/2.3.0/managed/managed*[a-z0-9]/Metadata")
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	for i, m := range tables {
		tables[i] = filepath.Dir(m)
	}
	demo := filepath.Join(t.TempDir(), "demo")
	if _, notes, status := saysOf(t, "demo", demo); status != 0 {
		t.Fatal(notes)
	}
	tables = append(tables, filepath.Join(demo, "kudu"), filepath.Join(demo, "kudu"))
	rows, lost := 0, 0
	for i := range rounds(27, 200) {
		from := tables[i%len(tables)]
		name := filepath.Join(dir, fmt.Sprintf("t%d", i))
		if err := os.CopyFS(name, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if file := damage(t, r, name); r.IntN(4) == 0 {
			os.Remove(file)
		}
		n, gone := agree(t, s, fmt.Sprintf("%s, %d", from, i), name)
		if rows += n; gone {
			lost++
		}
		os.RemoveAll(name)
	}
	if rows < 1000 || lost == 0 {
		t.Errorf("%d rows, %d damaged tables: the test shows little", rows, lost)
	}
	t.Logf("%d rows, %d damaged tables", rows, lost)
}

// TestStringsThatAreNotUTF8: the page says which columns have some and how many, wherever it shows them; what is saved
// as text says so, too.
func TestStringsThatAreNotUTF8(t *testing.T) {
	dir := t.TempDir()
	texts := []string{"plain", "caf\xe9", "\xff\xfe", "\uFFFD", "na\u00efve", "\x80"} // three of six are none
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	for k := range int64(600) {
		b.Field(0).(*array.Int64Builder).Append(k)
		b.Field(1).(*array.StringBuilder).Append(texts[k%6])
	}
	var file bytes.Buffer
	w, err := pqarrow.NewFileWriter(b.Schema(), &file, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b.NewRecordBatch()), w.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "t.parquet")
	if err := os.WriteFile(name, file.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, nil, dir)
	for q, want := range map[string]string{"": "[{s 300}]", "k < 12": "[{s 6}]", "k % 6 = 3": "[]"} {
		got, ok := asked[windowOf](t, s, api("rows", "name", name, "n", "1000", "where", q))
		if !ok || fmt.Sprint(got.Altered) != want {
			t.Errorf("rows where %q: altered is %v, want %s", q, got.Altered, want)
		}
		reads, ok := asked[struct{ Altered []alteredOf }](t, s, api("reads", "name", name, "where", q))
		if !ok || fmt.Sprint(reads.Altered) != want {
			t.Errorf("reads where %q: altered is %v, want %s", q, reads.Altered, want)
		}
	}
	v, ok := asked[struct {
		Altered  int64
		Distinct int
	}](t, s, api("values", "name", name, "column", "s"))
	if !ok || v.Altered != 300 || v.Distinct != 6 {
		t.Errorf("values: %+v", v)
	}
	for form, want := range map[string]int{"csv": 422, "jsonl": 422, "arrow": 422} {
		got := get(s, api("export", "name", name, "form", form))
		if got.Code != want || want == 422 && !strings.Contains(got.Body.String(), "output.values.utf8") {
			t.Errorf("export as %s: status %d, want %d: %.200s", form, got.Code, want, got.Body)
		}
	}
}

// agree compares the rows of a table on the page with those of stoa cat.
func agree(t *testing.T, s *serve.Server, from, name string) (n int, gone bool) {
	t.Helper()
	manifest := name + ".lost.json"
	defer os.Remove(manifest)
	out, notes, status := saysOf(t, "cat", "--damaged", "null-cells", "-f", "jsonl", "--manifest", manifest, "--", name)
	lost := status == 3 && !lostNothing(t, manifest)
	var want [][]string
	for line := range strings.Lines(out) {
		want = append(want, rawCells(t, line))
	}
	said, altered := false, false
	for next, end := int64(0), false; !end; {
		w, ok := asked[windowOf](t, s, api("rows", "name", name, "raw", "true", "from", fmt.Sprint(next), "n", "1000"))
		if !ok || w.Recovered {
			if status == 0 {
				t.Errorf("%s: cat reads it, and the page does not: recovered %t", from, w.Recovered)
			}
			return n, true
		}
		gone = gone || len(w.Lost) > 0 || w.LostMore
		said, altered = said || len(w.Noticed) > 0, altered || len(w.Altered) > 0
		if w.Next <= next && !w.End {
			t.Fatalf("%s: the window after row %d is empty", from, next)
		}
		for _, row := range w.Rows {
			if n >= len(want) {
				t.Fatalf("%s: more rows than the %d of cat (status %d)", from, len(want), status)
			}
			for c := range row {
				got := "null"
				if row[c] != nil {
					got = *row[c]
				}
				if got != want[n][c] && len(want[n][c]) < 2000 {
					t.Fatalf("%s: row %d, %s: %s, and cat has %s", from, n, w.Columns[c].Name, got, want[n][c])
				}
			}
			n++
		}
		next, end = w.Next, w.End
	}
	if n != len(want) && status != 1 {
		t.Fatalf("%s: %d rows, and cat has %d (status %d)", from, n, len(want), status)
	}
	if status == 1 {
		return n, gone
	}
	if not8 := strings.Contains(notes, "output.values.utf8"); altered != not8 {
		t.Errorf("%s: the page says that strings are not UTF-8: %t, and cat ends with %d: %s", from, altered, status,
			notes)
	}
	switch { // what was noticed when the table was opened may or may not have rows
	case lost && !gone && !said && !altered, gone && !lost:
		t.Errorf("%s: lost on the page: %t, noticed: %t, and cat ends with %d: %s", from, gone, said,
			status, notes)
	case said && status == 0:
		t.Errorf("%s: the page notices damage, and cat none", from)
	}
	return n, gone || said
}

// lostNothing reports whether a manifest has no losses: cat also ends with 3 for damage that costs no row, such as that
// of an index.
func lostNothing(t *testing.T, manifest string) bool {
	t.Helper()
	var m struct{ Losses []json.RawMessage }
	b, err := os.ReadFile(manifest)
	if err != nil {
		return false // nothing was read
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Losses == nil {
		t.Fatalf("%s: %v: %s", manifest, err, b)
	}
	return len(m.Losses) == 0
}

// rawCells are the cells of a row of JSON lines, in order.
func rawCells(t *testing.T, line string) (row []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	for d.More() {
		var cell json.RawMessage
		_, err := d.Token()
		if err == nil {
			err = d.Decode(&cell)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		row = append(row, string(cell))
	}
	return row
}
