package scan_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// changed is the toy format with an overlay of changes: deleted rows, and cells with a new value.
type changed struct {
	*toy
	deleted  map[int]bool
	cells    []map[int]int64 // by column
	last     int64           // the start of the previous range
	suspects []vec.Suspect   // rows and cells whose changes are lost
}

func (c *changed) Overlay(context.Context, format.RowGroup, []int) (format.Overlay, error) {
	one := *c // an overlay is used by one goroutine
	one.last = 0
	return &one, nil
}
func (c *changed) Drops() bool { return len(c.deleted) > 0 }
func (c *changed) Touches(col int) bool {
	return len(c.cells[col]) > 0 || slices.ContainsFunc(c.suspects, func(x vec.Suspect) bool { return x.Col == col })
}
func (c *changed) Spans(vec.Range) []fault.Span { return nil }

func (c *changed) Patch(_ context.Context, rows vec.Range, _ [][]byte) (*vec.Patch, error) {
	if rows.From < c.last {
		return nil, fmt.Errorf("asked for rows %v after %d", rows, c.last)
	}
	c.last = rows.From
	n := int(rows.Len())
	bits := make([]byte, (n+7)/8)
	p := &vec.Patch{First: rows.From, N: n}
	for i := range n {
		if c.deleted[int(rows.From)+i] {
			vec.SetBits(bits, i, i+1, true)
		}
	}
	p.Drop = vec.NewSel(bits, n)
	p.Suspect = c.suspects
	for col, cells := range c.cells {
		cp := vec.ColPatch{Col: col}
		var vals []int64
		for i := range n {
			if v, ok := cells[int(rows.From)+i]; ok {
				cp.Rows = append(cp.Rows, int32(i))
				vals = append(vals, v)
			}
		}
		cp.Vals = c.vector(col, vals)
		p.Cols = append(p.Cols, cp)
	}
	return p, nil
}

// vector returns a vector of a column with the given values.
func (c *changed) vector(col int, vals []int64) *vec.Vector {
	v, _ := vec.New(c.columns[col].typ, memory.DefaultAllocator)
	one := toyChunk{toyColumn: &toyColumn{typ: c.columns[col].typ, vals: vals, coded: []bool{false}}}
	b := one.bytes()
	if err := one.Decode(&format.Task{Bytes: [][]byte{b[:8*len(vals)]}}, v); err != nil {
		panic(err)
	}
	return v
}

// TestOverlayAgainstPlainReading: a scan with an overlay returns the rows of the changed table; filters see the
// changes.
func TestOverlayAgainstPlainReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		spec, cols := drawSpec(t, f)
		o := &changed{toy: f, deleted: map[int]bool{}, cells: make([]map[int]int64, 4)}
		dense := rapid.IntRange(1, 50).Draw(t, "one in")
		seed := rapid.Uint64().Draw(t, "changes")
		after := &toy{rows: 0}
		for i, c := range f.columns {
			o.cells[i] = map[int]int64{}
			after.columns = append(after.columns, toyColumn{name: c.name, typ: c.typ})
		}
		for r := range f.rows {
			x := mix(seed + uint64(r))
			if x%uint64(dense) == 0 && x&(1<<20) != 0 {
				o.deleted[r] = true
				continue
			}
			after.rows++
			for i := range f.columns {
				v := f.columns[i].vals[r]
				if y := mix(x + uint64(i)); y%uint64(dense) == 0 {
					v = int64(y>>8) % 70
					v = max(v, -v)
					if y&(1<<40) != 0 {
						v = toyNull
					}
					o.cells[i][r] = v
				}
				after.columns[i].vals = append(after.columns[i].vals, v)
			}
		}
		keep := func(int) bool { return true }
		if rapid.Bool().Draw(t, "filtered") {
			spec.Filter = parse(t, "a < 35 and b <> 'x1'")
			keep = func(r int) bool {
				a, b := after.columns[0].vals[r], after.columns[1].vals[r]
				return a != toyNull && a < 35 && b != toyNull && spell(b) != "x1"
			}
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		spec.Alloc = mem
		src := withReader(f.source(f.tree()), o)
		var got []string
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, lines(b)...)
		}
		if want := expect(after, spec, cols, keep); !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		src.Dicts.Close()
		mem.AssertSize(failer{t}, 0)
	})
}

// TestSuspectCells: cells and rows whose changes are lost are never returned, all others are, and each is reported as
// lost once.
func TestSuspectCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		if f.rows == 0 {
			return
		}
		o := &changed{toy: f, deleted: map[int]bool{}, cells: make([]map[int]int64, 4)}
		lost := make([]map[int]bool, 5) // by column; 4: the row
		for i := range lost {
			lost[i] = map[int]bool{}
		}
		reason := fault.Corruptf(fault.Span{Object: "deltas"}, "", "damaged")
		for range rapid.IntRange(0, 4).Draw(t, "suspects") {
			x := vec.Suspect{Col: rapid.IntRange(-1, 3).Draw(t, "column"), Err: reason}
			x.Rows.From = rapid.Int64Range(0, int64(f.rows-1)).Draw(t, "from")
			x.Rows.To = rapid.Int64Range(x.Rows.From+1, int64(f.rows)).Draw(t, "to")
			open := f.hide && rapid.Bool().Draw(t, "open-ended")
			if open {
				x.Rows.To = int64(f.rows)
			}
			for r := x.Rows.From; r < x.Rows.To; r++ {
				lost[(x.Col+5)%5][int(r)] = true
			}
			if open {
				x.Rows.To = math.MaxInt64
			}
			o.suspects = append(o.suspects, x)
		}
		for i := range f.columns {
			o.cells[i] = map[int]int64{}
			for r := i; r < f.rows; r += 7 {
				f.columns[i].vals[r], o.cells[i][r] = f.columns[i].vals[r/2], f.columns[i].vals[r]
			}
		}
		var reported []region.Loss
		spec := scan.Spec{Batch: rapid.SampledFrom([]int{1, 7, 50, 1000}).Draw(t, "batch"),
			Parallel: rapid.SampledFrom([]int{0, 2}).Draw(t, "parallel"),
			Damaged:  rapid.SampledFrom([]scan.Damaged{scan.Fail, scan.SkipRows, scan.NullCells}).Draw(t, "policy"),
			Lost:     func(l region.Loss) { reported = append(reported, l) }}
		filtered := rapid.Bool().Draw(t, "filtered")
		if filtered {
			spec.Filter = parse(t, "a < 35")
		}
		var want []string
		for r := range f.rows {
			was := [4]int64{}
			skip := lost[4][r]
			for i := range f.columns {
				was[i] = f.columns[i].vals[r]
				if v, ok := o.cells[i][r]; ok {
					f.columns[i].vals[r] = v
				}
				if lost[i][r] {
					f.columns[i].vals[r] = toyNull
					skip = skip || spec.Damaged == scan.SkipRows
				}
			}
			if a := f.columns[0].vals[r]; !skip && (!filtered || a != toyNull && a < 35) {
				want = append(want, f.line([]int{0, 1, 2, 3}, r))
			}
			for i := range was {
				f.columns[i].vals[r] = was[i]
			}
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		spec.Alloc = mem
		src := withReader(f.source(f.tree()), o)
		var got []string
		var failed error
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if failed = err; err == nil {
				got = append(got, lines(b)...)
			}
		}
		src.Dicts.Close()
		mem.AssertSize(failer{t}, 0)
		if spec.Damaged == scan.Fail && len(o.suspects) > 0 {
			if !errors.Is(failed, fault.Corrupt) || len(reported) > 0 {
				t.Fatalf("got error %v, losses %v, want class Corrupt and none", failed, reported)
			}
			return
		}
		if failed != nil || !slices.Equal(got, want) {
			t.Fatalf("error %v\ngot  %q\nwant %q", failed, got, want)
		}
		n := 0
		for _, l := range reported {
			if !l.Exact || l.Err == nil {
				t.Fatalf("got loss %+v, want an exact one with an error", l)
			}
			n += int(l.Rows[1] - l.Rows[0])
		}
		for _, x := range o.suspects {
			n -= int(min(x.Rows.To, int64(f.rows)) - x.Rows.From)
		}
		if n != 0 {
			t.Fatalf("got losses %+v, want those of %+v", reported, o.suspects)
		}
	})
}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

var _ format.Overlayer = (*changed)(nil)
