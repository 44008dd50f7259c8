package parquet_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"stoa"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/store"
)

// writeOptions draws options of the writer.
func writeOptions(r *rand.Rand) map[string]string {
	opts := map[string]string{}
	for _, o := range [][]string{{"compression", "", "none", "zstd", "gzip", "lz4", "brotli"},
		{"page-version", "", "1", "2"}, {"dictionary", "", "false"},
		{"page-size", "", "1", "100", "1000"}, {"row-group-rows", "", "1", "7", "20"}, {"page-index", "", "false"},
		{"crc", "", "false"}, {"encoding", "", "plain"}, {"version", "", "2.6"}} {
		if v := o[1+r.IntN(len(o)-1)]; v != "" {
			opts[o[0]] = v
		}
	}
	return opts
}

// TestNestedTables: random tables of all types and nulls are written to files that pass verify --deep and have the same
// values and the right null counts.
func TestNestedTables(t *testing.T) {
	tables := 300
	if testing.Short() {
		tables = 60
	}
	for seed := range uint64(tables) {
		r := rand.New(rand.NewPCG(seed, 19))
		table := formattest.RandomTable(r,
			formattest.TableOptions{Rows: 40, Columns: 4, Depth: 6, Leaves: formattest.LeafTypes(),
				NullableFixed: true, EmptyStructs: seed%2 == 1})
		if text := table.Schema.String(); strings.Contains(text, "fixed_size_list") &&
			strings.Contains(text, "dictionary") {
			continue // arrow-go cannot put null lists of a fixed size between others if dictionaries are in them
		}
		opts := writeOptions(r)
		tree := store.NewMemory(nil)
		w, err := parquet.Format.Create(t.Context(), tree.Sink("t"), table.Schema,
			format.WriteOptions{Rows: -1, Opts: opts})
		if err != nil {
			t.Fatalf("seed %d, %v: %v", seed, table, err)
		}
		for from := int64(0); from < table.Batch.NumRows(); {
			to := min(table.Batch.NumRows(), from+1+r.Int64N(30))
			if err := w.Write(t.Context(), table.Batch.NewSlice(from, to)); err != nil {
				t.Fatalf("seed %d, %v: %v", seed, table, err)
			}
			from = to
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := format.OpenOptions{Depth: format.Deep, Limits: format.Limits{}.WithDefaults()}
		for f := range parquet.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, o) {
			t.Errorf("seed %d, %v: %s %s: %s\n%v", seed, opts, f.Code, f.Path, f.Message, table)
		}
		sameCells(t, seed, tree, table)
		sameNulls(t, seed, tree.Bytes("t"), table)
		if t.Failed() {
			t.Fatalf("seed %d, %v: %v", seed, opts, table)
		}
	}
}

func sameCells(t *testing.T, seed uint64, tree store.Tree, table formattest.Table) {
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer tab.Close()
	got := make([][]any, table.Schema.NumFields())
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, c := range b.Columns() {
			got[i] = append(got[i], formattest.CellsOf(c)...)
		}
	}
	for i := range got {
		if len(got[i]) != len(table.Cells[i]) {
			t.Errorf("seed %d: got %d rows, want %d", seed, len(got[i]), len(table.Cells[i]))
			continue
		}
		for k := range got[i] {
			if !reflect.DeepEqual(got[i][k], table.Cells[i][k]) {
				t.Errorf("seed %d: column %d, row %d: got %q, want %q", seed, i, k, got[i][k], table.Cells[i][k])
				break
			}
		}
	}
}

// sameNulls compares the null counts of all row groups with the table's.
func sameNulls(t *testing.T, seed uint64, b []byte, table formattest.Table) {
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	var want []int64
	for i, f := range table.Schema.Fields() {
		want = append(want, nullsOf(f.Type, table.Cells[i])...)
	}
	for leaf := range want {
		if r.MetaData().Schema.Column(leaf).SortOrder() == schema.SortUNKNOWN {
			continue // arrow-go does not read statistics of types that it cannot compare
		}
		n := int64(0)
		for g := range r.NumRowGroups() {
			c, err := r.MetaData().RowGroup(g).ColumnChunk(leaf)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s, err := c.Statistics(); err != nil || s == nil || !s.HasNullCount() {
				t.Errorf("seed %d: leaf %d: got no null count, %v", seed, leaf, err)
			} else {
				n += s.NullCount()
			}
		}
		if n != want[leaf] {
			t.Errorf("seed %d: leaf %s: got %d nulls, want %d", seed, r.MetaData().Schema.Column(leaf).Path(),
				n, want[leaf])
		}
	}
}

// nullsOf returns the number of entries without a value for every leaf of a type; an empty or null list is one entry.
func nullsOf(t arrow.DataType, cells []any) []int64 {
	switch t := t.(type) {
	case *arrow.StructType:
		if t.NumFields() == 0 { // the field that represents a struct without fields
			return []int64{int64(len(cells))}
		}
		var out []int64
		for i, f := range t.Fields() {
			below := make([]any, len(cells))
			for k, c := range cells {
				if s, ok := c.([]any); ok {
					below[k] = s[i]
				}
			}
			out = append(out, nullsOf(f.Type, below)...)
		}
		return out
	case *arrow.MapType:
		var pairs []any
		for _, c := range cells {
			p, _ := c.(formattest.Pairs)
			for _, kv := range p {
				pairs = append(pairs, []any{kv[0], kv[1]})
			}
			if len(p) == 0 {
				pairs = append(pairs, nil)
			}
		}
		return nullsOf(arrow.StructOf(t.KeyField(), t.ItemField()), pairs)
	case arrow.ListLikeType:
		var items []any
		for _, c := range cells {
			l, _ := c.([]any)
			if items = append(items, l...); len(l) == 0 {
				items = append(items, nil)
			}
		}
		return nullsOf(t.Elem(), items)
	}
	n := int64(0)
	for _, c := range cells {
		if c == nil {
			n++
		}
	}
	return []int64{n}
}
