package scan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/scan"
)

// lists returns a column of lists of the given sizes, stored by levels in pages that hold parts of rows, or by lengths
// with one page per row.
func lists(levels bool, sizes ...int) *nested {
	f := arrow.Field{Name: "l", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)}
	b := array.NewListBuilderWithField(memory.DefaultAllocator, f.Type.(*arrow.ListType).ElemField())
	starts := []int64{0}
	for i, n := range sizes {
		b.Append(true)
		for k := range n {
			b.ValueBuilder().(*array.Int64Builder).Append(int64(k))
		}
		starts = append(starts, int64(i+1))
	}
	n := &nested{schema: arrow.NewSchema([]arrow.Field{f}, nil), rows: len(sizes)}
	if levels {
		n.addLevels(nil, 0, f, b.NewArray())
		for at := 0; at < len(n.columns[0].values); at += 1000 {
			n.columns[0].cuts = append(n.columns[0].cuts, at)
		}
		return n
	}
	n.addLengths(0, []int{0}, f, b.NewArray(), -1, starts)
	for i := range n.columns {
		for _, at := range n.columns[i].first[:len(sizes)] {
			n.columns[i].cuts = append(n.columns[i].cuts, int(at))
		}
	}
	return n
}

// TestLargeRowsKeepToTheBudget: a nested row is returned if it takes at most an eighth of the memory, otherwise refused
// with class Limit before it is assembled, whatever the damage policy; rows that are too large together are returned in
// several batches.
func TestLargeRowsKeepToTheBudget(t *testing.T) {
	const budget = 1 << 20
	fits, tooMany := make([]int, 60), []int{3, 40_000, 3}
	for i := range fits {
		fits[i] = 5000
	}
	read := func(levels bool, memory int64, damaged scan.Damaged, sizes []int) (rows, peak int, err error) {
		src, _ := lists(levels, sizes...).source()
		for b, err := range scan.Run(context.Background(), src, scan.Spec{Memory: memory, Damaged: damaged}, nil) {
			if err != nil {
				return rows, peak, err
			}
			l := b.Column(0).(*array.List)
			values := l.ListValues().(*array.Int64)
			for i := range l.Len() {
				from, to := l.ValueOffsets(i)
				if int(to-from) != sizes[rows] || values.Value(int(to-1)) != to-from-1 {
					t.Fatalf("row %d: got %d items, the last is %d, want %d", rows, to-from, values.Value(int(to-1)),
						sizes[rows])
				}
				rows++
			}
			peak = max(peak, 8*l.ListValues().Len())
		}
		return rows, peak, nil
	}
	for _, levels := range []bool{true, false} {
		for _, damaged := range []scan.Damaged{scan.Fail, scan.SkipRows, scan.NullCells} {
			if n, peak, err := read(levels, budget, damaged, fits); n != len(fits) || err != nil || peak > budget/4 {
				t.Errorf("levels %v, %v: got %d rows, %d bytes in a batch, %v, want %d, at most %d", levels, damaged, n,
					peak, err, len(fits), budget/4)
			}
			if n, _, err := read(levels, 4*budget, damaged, tooMany); n != 3 || err != nil {
				t.Errorf("levels %v, %v: with more memory: got %d rows, %v, want 3", levels, damaged, n, err)
			}
			if n, _, err := read(levels, budget, damaged, tooMany); n > 1 || !errors.Is(err, fault.Limit) {
				t.Errorf("levels %v, %v: got %d rows, %v, want at most 1 and class Limit", levels, damaged, n, err)
			}
		}
	}
}
