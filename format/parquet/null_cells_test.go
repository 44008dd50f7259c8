package parquet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

var nullColumns = []string{"full", "s", "l"}

// TestNullCells damages pages of a file by pyarrow one by one: under NullCells all rows are returned, and exactly the
// cells reported as lost are null, in the damaged column only. A filter over a lost cell is unknown, so that such rows
// are left out.
func TestNullCells(t *testing.T) {
	want := pyarrowsRows(t)
	intact, err := os.ReadFile("testdata/enc-delta.v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, column := range nullColumns {
		for _, at := range pagesOf(t, intact, column) {
			b := bytes.Clone(intact)
			b[at.At.Off+at.At.Len/2] ^= 0x10
			name := fmt.Sprintf("%s damaged at %d", column, at.At.Off)
			tab := openNull(t, map[string][]byte{"t": b}, stoa.OpenOptions{})
			got, lost := scanNull(t, tab, nil)
			n := checkNull(t, name, want, got, lost, column)
			if n == 0 || n > 70 {
				t.Errorf("%s: got %d cells lost, want 1 to 70", name, n)
			}
			filter, err := pred.Parse(column + " is not null or " + column + " is null")
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := scanNull(t, tab, filter); len(got) != len(want)-n {
				t.Errorf("%s: a filter over the column: got %d rows, want %d", name, len(got), len(want)-n)
			}
			tab.Close()
			pages++
		}
	}
	if pages < 9 {
		t.Errorf("got %d pages, want 9 or more", pages)
	}
}

// TestNullCellsOfCutFile truncates the file in its second row group, after column s: the cells of s and of the columns
// before it are returned.
func TestNullCellsOfCutFile(t *testing.T) {
	want := pyarrowsRows(t)
	intact, err := os.ReadFile("testdata/enc-delta.v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	var second []region.Node
	for _, n := range pagesOf(t, intact, "s") {
		if strings.HasPrefix(n.Name, "row_groups[1]") {
			second = append(second, n)
		}
	}
	tab := openNull(t, map[string][]byte{"t": intact[:second[len(second)-1].At.End()+40], "intact": intact},
		stoa.OpenOptions{Recover: true, Opts: map[string]string{"schema": "intact"}})
	defer tab.Close()
	got, lost := scanNull(t, tab, nil)
	if n := checkNull(t, "cut", want[:140], got, lost, "l"); n != 70 {
		t.Errorf("got %d cells lost, want 70", n)
	}
}

func pyarrowsRows(t *testing.T) (rows []map[string]any) {
	t.Helper()
	text, err := os.ReadFile("testdata/enc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// pagesOf returns the bodies of a column's pages, under the name of their chunk.
func pagesOf(t *testing.T, b []byte, column string) (out []region.Node) {
	t.Helper()
	chunk := ""
	tree := store.NewMemory(map[string][]byte{"t": b})
	for n, err := range parquet.Format.Describe(context.Background(), format.Target{Tree: tree, Name: "t"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "row_groups[") {
			chunk = n.Name
		}
		_, path, _ := strings.Cut(chunk, ".")
		if top, _, _ := strings.Cut(path, "."); n.Name == "body" &&
			strings.TrimSuffix(strings.Fields(top)[0], ":") == column {
			n.Name = chunk
			out = append(out, n)
		}
	}
	return out
}

func openNull(t *testing.T, files map[string][]byte, o stoa.OpenOptions) *stoa.Table {
	t.Helper()
	o.Formats, o.Tree = []format.Format{parquet.Format}, store.NewMemory(files)
	tab, err := stoa.Open(context.Background(), "t", o)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func scanNull(t *testing.T, tab *stoa.Table, filter *pred.Expr) (rows []map[string]any, lost []region.Loss) {
	t.Helper()
	spec := stoa.ScanSpec{Columns: nullColumns, Filter: filter, Damaged: stoa.NullCells,
		Lost: func(l region.Loss) { lost = append(lost, l) }}
	for b, err := range tab.Scan(context.Background(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := b.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var part []map[string]any
		if err := json.Unmarshal(text, &part); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, part...)
	}
	return rows, lost
}

// checkNull compares rows with those written, except cells of column that are reported as lost, and counts these. Row
// groups have 70 rows.
func checkNull(t *testing.T, name string, want, got []map[string]any, lost []region.Loss, column string) (cells int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d rows, want %d", name, len(got), len(want))
	}
	gone := map[int]bool{}
	for _, l := range lost {
		if l.Column != column || !l.Exact {
			t.Errorf("%s: got loss %+v, want exact ones in column %s", name, l, column)
		}
		for r := l.Rows[0]; r < l.Rows[1]; r++ {
			gone[l.Group*70+int(r)] = true
		}
	}
	for i := range want {
		for _, c := range nullColumns {
			expected := want[i][c]
			if c == column && gone[i] {
				expected = nil
			}
			if !reflect.DeepEqual(got[i][c], expected) {
				t.Fatalf("%s: row %d, column %s: got %v, want %v", name, i, c, got[i][c], expected)
			}
		}
	}
	return len(gone)
}
