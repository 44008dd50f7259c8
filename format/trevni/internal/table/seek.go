package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/pred"
	"stoa/vec"
)

// Columns with first values can be searched if their values ascend. No dialect can declare that: our writer checks it
// and records it in the column's metadata; for other files the user must declare it (option sorted).

// IsSorted reports whether the values of stored column i are known to ascend.
func (t *Table) IsSorted(i int) bool { return slices.Contains(t.sorted, i) }

// findSorted sets which columns are sorted, and the promised order.
func (t *Table) findSorted(o readOptions) error {
	h := &t.File.Header
	for _, name := range o.sorted {
		i := slices.IndexFunc(h.Columns, func(c layout.Column) bool { return c.Name == name })
		if i < 0 || !h.Columns[i].FirstValues {
			return fault.Invalidf("trevni: option sorted: there is no column %q with first values", name)
		}
	}
	for i := range h.Columns {
		c := &h.Columns[i]
		v, _ := layout.Get(c.Meta, layout.SortedKey)
		if c.FirstValues && (string(v) == "true" || slices.Contains(o.sorted, c.Name)) {
			t.sorted = append(t.sorted, i)
		}
	}
	for k, ph := range t.Plan.Phys {
		if t.IsSorted(ph.Stored) && ph.Shape == page.ShapeFlat && ph.Parent < 0 && len(ph.Path) == 1 &&
			len(t.order) == 0 {
			t.order = []format.Key{{Column: k}}
		}
	}
	return nil
}

// Narrow finds the blocks of sorted columns in which e may be true. It reads only descriptors.
func (t *Table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: t.File.Header.Rows}}
	for _, ph := range t.Plan.Phys {
		if !t.IsSorted(ph.Stored) || ph.Shape != page.ShapeFlat || ph.Parent >= 0 || len(ph.Path) != 1 {
			continue
		}
		cb, err := t.File.Blocks(ctx, ph.Stored)
		if err != nil {
			if container.IsFault(err) {
				continue // reported when the column is read
			}
			return nil, err
		}
		if cb.Rows != t.File.Header.Rows {
			continue
		}
		in := mayMatch(t.Plan.Fields[ph.Path[0]].Name, ph, cb, e)
		ok, err := checkBorders(ctx, t.File, ph, cb, in)
		if err != nil {
			return nil, err
		}
		if ok {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "first values"})
			all = all.Intersect(rangesOf(cb, in))
		}
	}
	return all, nil
}

// mayMatch reports for each block whether e may be true in it. A value of a block is not less than its first one, and
// not greater than that of the next block.
func mayMatch(name string, ph *page.Physical, cb *container.ColumnBlocks, e *pred.Expr) []bool {
	firsts := make([]*pred.Value, len(cb.Blocks)+1)
	for i := range cb.Blocks {
		firsts[i] = FirstOf(ph, cb.Blocks[i].First)
	}
	in := make([]bool, len(cb.Blocks))
	for i := range cb.Blocks {
		bounds := pred.Bounds{Min: firsts[i], Max: firsts[i+1], Rows: cb.Blocks[i].Rows, NoNaN: true}
		in[i] = pred.None != e.Prune(func(path string) *pred.Bounds {
			if path == name {
				return &bounds
			}
			return nil
		})
	}
	return in
}

// checkBorders reports whether first values are correct where it matters: descriptors have no checksum, so at each
// border between blocks that are read and blocks that are skipped, the first value in the block itself is compared.
func checkBorders(ctx context.Context, f *container.File, ph *page.Physical, cb *container.ColumnBlocks,
	in []bool) (ok bool, err error) {
	var a vec.Arena
	for i := range cb.Blocks {
		if i > 0 && in[i] == in[i-1] {
			continue
		}
		b := &cb.Blocks[i]
		if b.Lost != nil || b.Rows == 0 || b.At.Len > f.Limits.Page {
			return false, nil
		}
		a.Reset()
		stored := a.Bytes(int(b.At.Len))
		if err := format.ReadFull(ctx, f.Src, b.At, "block", stored); err != nil {
			return false, err
		}
		o, err := f.OpenBlock(&f.Header.Columns[ph.Stored], b, stored, &a, f.NoVerify)
		if err != nil {
			return false, nil // reported when the block is read
		}
		if got, want := ph.First(&o), b.First; !bytes.Equal(got, want) {
			return false, nil
		}
	}
	return true, nil
}

// rangesOf returns the rows of the blocks that are read.
func rangesOf(cb *container.ColumnBlocks, in []bool) (out vec.Ranges) {
	for i := range cb.Blocks {
		if b := &cb.Blocks[i]; in[i] {
			out = out.Add(vec.Range{From: b.Row, To: b.Row + b.Rows})
		}
	}
	return out
}

// FirstOf returns a first value; nil if it cannot be compared.
func FirstOf(ph *page.Physical, b []byte) *pred.Value {
	if b == nil {
		return nil
	}
	var v pred.Value
	switch ph.StoredType {
	case layout.Int, layout.Long:
		n, k := layout.Varint(b)
		if k <= 0 || !isWhole(ph.Type) {
			return nil
		}
		v = pred.Typed(ph.Type, n)
	case layout.Fixed32, layout.Fixed64:
		var x uint64
		for i := len(b) - 1; i >= 0; i-- {
			x = x<<8 | uint64(b[i])
		}
		switch ph.Type.ID() {
		case arrow.UINT32, arrow.UINT64:
			v = pred.Uint(x)
		case arrow.INT32:
			v = pred.Int(int64(int32(x)))
		default:
			v = pred.Typed(ph.Type, int64(x))
		}
	case layout.Float:
		v = pred.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case layout.Double:
		v = pred.Float(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case layout.String:
		v = pred.String(string(b))
	case layout.Bytes:
		if ph.Type.ID() != arrow.BINARY {
			return nil
		}
		v = pred.Bytes(b)
	default:
		return nil
	}
	return &v
}

func isWhole(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.DECIMAL128:
		return false
	}
	return true
}
