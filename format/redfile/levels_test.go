package redfile_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// TestDamagedLevels: in a repeated column without checksums, a wrong level would shift the rows after it; no list is
// returned in a wrong row, except in the damaged page.
func TestDamagedLevels(t *testing.T) {
	data := writeSample(t, 150, map[string]string{"crc": "false", "page-size": "100", "index": "false",
		"compression": "none"})
	pages := listPages(t, data, "row_groups[0].columns[2]")
	maxRows := 100/4 + 2 // rows of a page, and the row before
	for _, page := range pages[:len(pages)-1] {
		for at := page.At.Off + 8; at < page.At.Off+40; at++ {
			for bit := range 8 {
				data[at] ^= 1 << bit
				if n := foreignLists(t, data); n > maxRows {
					t.Errorf("byte %d, bit %d: %d rows have another list", at, bit, n)
				}
				data[at] ^= 1 << bit
			}
		}
	}
}

// foreignLists returns the number of rows with lists from another row.
func foreignLists(t *testing.T, data []byte) (n int) {
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

// TestRecoverFirstColumnsLost: only the last column of the first row group is left, and the last row group has fewer
// rows: a row group begins where the number of rows changes.
func TestRecoverFirstColumnsLost(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}, {Name: "c", Type: arrow.PrimitiveTypes.Int64},
		{Name: "d", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for row := range int64(63) {
		for k := range 4 {
			b.Field(k).(*array.Int64Builder).Append(row)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	data := writeTable(t, map[string]string{"row-group-rows": "50", "sync": "0", "index": "false",
		"arrow-schema": "false"}, rec)
	metas := columnMetadata(t, data)
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
