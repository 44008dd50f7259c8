package scan_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/vec"
)

// changed is the toy with changes apart: rows that are gone, and cells that have another value.
type changed struct {
	*toy
	gone  map[int]bool
	cells []map[int]int64 // by column
	last  int64           // where the range before began
}

func (c *changed) Overlay(context.Context, format.RowGroup, []int) (format.Overlay, error) {
	one := *c // an overlay is used by one goroutine
	one.last = 0
	return &one, nil
}
func (c *changed) Drops() bool { return len(c.gone) > 0 }
func (c *changed) Touches(col int) bool {
	return len(c.cells[col]) > 0
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
		if c.gone[int(rows.From)+i] {
			vec.SetBits(bits, i, i+1, true)
		}
	}
	p.Drop = vec.NewSel(bits, n)
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

// vector is values of a column as the toy would decode them.
func (c *changed) vector(col int, vals []int64) *vec.Vector {
	v, _ := vec.New(c.columns[col].typ, memory.DefaultAllocator)
	one := toyChunk{toyColumn: &toyColumn{typ: c.columns[col].typ, vals: vals, coded: []bool{false}}}
	b := one.bytes()
	if err := one.Decode(&format.Task{Bytes: [][]byte{b[:8*len(vals)]}}, v); err != nil {
		panic(err)
	}
	return v
}

// Drops and patches that the engine applies give the same as the table with the changes made; the filter sees them.
func TestOverlayAgainstPlainReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		spec, cols := drawSpec(t, f)
		o := &changed{toy: f, gone: map[int]bool{}, cells: make([]map[int]int64, 4)}
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
				o.gone[r] = true
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

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

var _ format.Overlayer = (*changed)(nil)
