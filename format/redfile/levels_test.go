package redfile_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/store"
)

// TestLevelsOfOthers: where the pages of a column that repeats have no checksums, a level that is another would give
// the rows after it another's values: no list comes out that was in another row, but in the page that is damaged.
func TestLevelsOfOthers(t *testing.T) {
	data := writeKill(t, 150, map[string]string{"crc": "false", "page-size": "100", "index": "false",
		"compression": "none"})
	nodes, err := describeAll(target(data))
	if err != nil {
		t.Fatal(err)
	}
	var pages []fault.Span // of the lists, the third column
	chunk := 0
	for _, n := range nodes {
		if n.Name == "page[0]" {
			chunk++
		}
		if chunk == 3 && len(n.Name) > 5 && n.Name[:5] == "page[" {
			pages = append(pages, n.At)
		}
	}
	if len(pages) < 6 {
		t.Fatalf("%d pages", len(pages))
	}
	most := 100/4 + 2 // rows in a page, and the one before
	for _, page := range pages[:len(pages)-1] {
		for at := page.Off + 8; at < page.Off+40; at++ {
			for bit := range 8 {
				data[at] ^= 1 << bit
				if n := strangeLists(t, data); n > most {
					t.Errorf("byte %d, bit %d: %d rows have another list", at, bit, n)
				}
				data[at] ^= 1 << bit
			}
		}
	}
}

// strangeLists is how many rows have lists that were in another row.
func strangeLists(t *testing.T, data []byte) (n int) {
	tab, err := stoa.Open(t.Context(), "f.red", stoa.OpenOptions{Tree: target(data).Tree})
	if err != nil {
		return 0
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			return n
		}
		ids, lists := b.Column(0).(*array.Int64), b.Column(2).(*array.List)
		for i := range ids.Len() {
			row := int((ids.Value(i) + 7) / 1000003)
			from, to := lists.ValueOffsets(i)
			if lists.IsValid(i) && (row%7 == 0 || to-from != int64(row%4)) {
				n++
			}
		}
	}
	return n
}

// TestRecoverFirstColumnsLost: of the first row group only the last column is left, and the last row group has fewer
// rows: where the number of rows is another, a row group begins.
func TestRecoverFirstColumnsLost(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}, {Name: "c", Type: arrow.PrimitiveTypes.Int64},
		{Name: "d", Type: arrow.PrimitiveTypes.Int64}}, nil)
	mem := store.NewMemory(nil)
	w, err := redfile.Format.Create(ctx, mem.Sink("f.red"), sc, format.WriteOptions{Rows: -1,
		Opts: map[string]string{"row-group-rows": "50", "sync": "0", "index": "false", "arrow-schema": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for row := range int64(63) {
		for k := range 4 {
			b.Field(k).(*array.Int64Builder).Append(row)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	if err := w.Write(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	data := mem.Bytes("f.red")
	nodes, err := describeAll(target(data))
	if err != nil {
		t.Fatal(err)
	}
	var metas []fault.Span
	for _, n := range nodes {
		if n.Name == "column_metadata" {
			metas = append(metas, n.At)
		}
	}
	clear(data[4:metas[2].End()])
	clear(data[metas[7].End():])
	for policy, want := range map[stoa.Damaged]int64{stoa.SkipRows: 13, stoa.NullCells: 63} {
		rows := int64(0)
		tab, err := stoa.Open(t.Context(), "f.red", stoa.OpenOptions{Tree: target(data).Tree, Recover: true})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: policy}) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.NumRows()
			for i := range int(b.NumRows()) {
				for k := range 3 {
					x, y := b.Column(k).(*array.Int64), b.Column(3).(*array.Int64)
					if x.IsValid(i) && y.IsValid(i) && x.Value(i) != y.Value(i) {
						t.Errorf("policy %v: columns %d and 3 of a row are of %d and %d", policy, k, x.Value(i),
							y.Value(i))
					}
				}
			}
		}
		tab.Close()
		if rows != want {
			t.Errorf("%d rows came out under policy %v, want %d", rows, policy, want)
		}
	}
}
