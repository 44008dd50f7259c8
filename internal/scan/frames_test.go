package scan_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// counted is a toy whose decoder looks at who calls it.
type counted struct {
	*toy
	most  *int
	stack *string
}

type countedChunk struct {
	format.Chunk
	in counted
}

func (c counted) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	ch, err := c.toy.Chunk(ctx, g, col, rows)
	return countedChunk{ch, c}, err
}

func (c countedChunk) Decode(t *format.Task, dst *vec.Vector) error {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "scan_test.TestTheWay") || !more {
			break
		}
		names = append(names, f.Function[strings.LastIndexByte(f.Function, '/')+1:])
	}
	if len(names) > *c.in.most {
		*c.in.most, *c.in.stack = len(names), strings.Join(names, "\n")
	}
	return c.Chunk.Decode(t, dst)
}

// mostFrames is how many frames there may be below the loop over batches down to fetch.Decode, which calls the format's
// decoder: the iterator of parts and the body of its loop are two of them. It only falls; the aim is eight.
const mostFrames = 9

// The way of a row to a format's decoder can be followed; of a column of the filter, too. What it takes for nested
// columns is not held here.
func TestTheWayToADecoderIsShort(t *testing.T) {
	f := &toy{rows: 100, columns: []toyColumn{
		{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 100), cuts: []int{0, 50},
			coded: make([]bool, 2), bad: map[int]bool{}},
		{name: "b", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 100), cuts: []int{0, 30},
			coded: make([]bool, 2), bad: map[int]bool{}}}}
	most, stack, rows := 0, "", 0
	low, err := pred.Parse("a = 0")
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []*pred.Expr{nil, low} {
		for b, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), counted{f, &most, &stack}),
			scan.Spec{Filter: filter}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows += int(b.NumRows())
		}
	}
	if rows != 200 || most == 0 || most > mostFrames {
		t.Errorf("%d rows; %d frames, at most %d are expected\n%s", rows, most, mostFrames, stack)
	}
}

// A row group that says that it has 2⁶⁰ rows is not cut into as many tasks: the scan ends, with the damage.
func TestRowsWithoutEndAreNotCutUp(t *testing.T) {
	f := &toy{rows: 90, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 90),
		cuts: []int{0, 50}, coded: make([]bool, 2), bad: map[int]bool{}}}}
	rows, lost, last := int64(0), 0, error(nil)
	for b, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), longer{f, 1 << 60}),
		scan.Spec{Parallel: 2, Damaged: scan.SkipRows, Lost: func(region.Loss) { lost++ }}, nil) {
		if last = err; err == nil {
			rows += b.NumRows()
		}
	}
	if rows > 90 || lost == 0 && last == nil {
		t.Errorf("%d rows of 90, %d losses, %v: the rows that are missing were not reported", rows, lost, last)
	}
}
