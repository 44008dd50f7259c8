package scan_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/internal/scan"
	"stoa/region"
)

// TestWrongLengths: a list declares 2³¹-1 items, on a page that cannot be decoded. As many placeholders would take too
// much memory: the rows are lost instead.
func TestWrongLengths(t *testing.T) {
	n := &nested{schema: arrow.NewSchema(
		[]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true}}, nil), rows: 2,
		columns: []nestedColumn{
			{Column: format.Column{Name: "l", Path: []int{0}, Parent: -1, Has: format.Lengths,
				Type: arrow.PrimitiveTypes.Int32}, values: []any{int64(1<<31 - 1), int64(1)}, first: []int64{0, 1, 2},
				cuts: []int{0}, bad: -1},
			{Column: format.Column{Name: "item", Path: []int{0, 0}, Parent: 0, Has: format.Values,
				Type: arrow.PrimitiveTypes.Int64}, values: []any{int64(1), int64(2)}, first: []int64{0, 1, 2},
				cuts: []int{0}, bad: 0},
		}}
	src, _ := n.source()
	before, lost, rows := formattest.Allocated(), int64(0), int64(0)
	spec := scan.Spec{Damaged: scan.NullCells, Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }}
	for b, err := range scan.Run(context.Background(), src, spec, nil) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
		if b.Column(0).NullN() != int(b.NumRows()) {
			t.Errorf("got %v, want nulls", b.Column(0))
		}
	}
	if rows != 2 || lost != 2 {
		t.Errorf("got %d rows, %d lost, want 2, 2", rows, lost)
	}
	if grown := formattest.Allocated() - before; grown > 64<<20 {
		t.Errorf("%d bytes allocated, want at most 64 MiB", grown)
	}
}

// TestHugeRowCount: a row group that declares 2⁶⁰ rows is not divided into tasks for all of them: the scan ends, and
// reports that rows are missing.
func TestHugeRowCount(t *testing.T) {
	f := &toy{rows: 90, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 90),
		cuts: []int{0, 50}, coded: make([]bool, 2), bad: map[int]bool{}}}}
	rows, lost, last := int64(0), 0, error(nil)
	for b, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), miscounted{f, 1 << 60}),
		scan.Spec{Parallel: 2, Damaged: scan.SkipRows, Lost: func(region.Loss) { lost++ }}, nil) {
		if last = err; err == nil {
			rows += b.NumRows()
		}
	}
	if rows > 90 || lost == 0 && last == nil {
		t.Errorf("got %d rows of 90, %d losses, %v, want a loss or an error for the missing rows", rows, lost, last)
	}
}
