package scan

import (
	"context"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/internal/share"
	"stoa/pred"
	"stoa/vec"
)

// Cutting is a piece of a scan with what metadata say about its rows.
type Cutting struct {
	plan.Piece
	Exact  bool                   // Count is how many rows the scan yields of the piece
	Bounds map[string]pred.Bounds // of flat top-level columns that the scan reads, by name; absent = unknown
	Bucket int                    // of its part
}

// Cut yields the pieces of a scan, of at most about target stored bytes each if they can be divided that far. Data that
// metadata excludes by the filter is in none of them: parts, row groups, and the rows before the first and after the
// last that an index or bounds leave.
func Cut(ctx context.Context, src fetch.Source, spec plan.Spec, target int64, share share.Share) iter.Seq2[Cutting,
	error] {
	return func(yield func(Cutting, error) bool) {
		p, err := plan.New(src.Reader, spec)
		if err != nil {
			yield(Cutting{}, err)
			return
		}
		c := slicer{Plan: p, src: src, target: target, yield: yield}
		c.overlays, _ = src.Reader.(format.Overlayer)
		from, to := 0, math.MaxInt
		if share.Of > 1 {
			n := 0
			for range src.Reader.Parts(ctx, p.Query) {
				n++
			}
			from, to = share.Range(n)
		}
		i := 0
		for part, err := range src.Reader.Parts(ctx, p.Query) {
			if err == nil && i >= from && i < to {
				err = c.part(ctx, part)
			}
			if err == emit.ErrLeft {
				return
			}
			if err != nil {
				yield(Cutting{}, err)
				return
			}
			i++
		}
	}
}

// slicer cuts the parts of one source.
type slicer struct {
	*plan.Plan
	src      fetch.Source
	overlays format.Overlayer // nil: rows are final as decoded
	target   int64
	yield    func(Cutting, error) bool
}

func (c *slicer) part(ctx context.Context, part format.Part) error {
	groups, err := c.src.Reader.RowGroups(ctx, part, c.Query)
	if err != nil {
		return err
	}
	alone := len(groups) == 1
	groups, left := c.mayMatch(ctx, groups)
	for _, cluster := range c.Clusters(groups, c.src.Reader.Order()) {
		all := Cutting{Piece: plan.Piece{Part: part.Ref, Stamp: part.Stamp}, Exact: true,
			Bucket: part.Bucket}
		unknown := false
		for i, g := range cluster {
			whole := g
			rows, some := left[g.Index]
			if some && len(cluster) == 1 {
				all.Rows, g.Bytes, g.Rows = rows, g.Bytes*rows.Len()/g.Rows, rows.Len()
			}
			known, exact := c.facts(ctx, whole)
			if all.Exact = all.Exact && exact && !some; i == 0 {
				all.Bounds = known
			} else {
				all.Bounds = mergeBounds(all.Bounds, known)
			}
			all.Groups = append(all.Groups, g.Index)
			all.Piece.Bytes += max(0, g.Bytes)
			all.Count += g.Rows
			unknown = unknown || g.Rows < 0
		}
		if unknown { // a group whose rows cannot be counted may have any
			all.Count, all.Bounds, all.Exact = -1, nil, false
		}
		if all.Piece.Bytes == 0 && alone {
			all.Piece.Bytes = max(0, part.Bytes)
		}
		if err := c.divide(all, len(cluster) == 1); err != nil {
			return err
		}
	}
	return nil
}

// divide yields a piece, in equal pieces if it is too large. Bounds of all bound them, but need not occur in them.
func (c *slicer) divide(all Cutting, single bool) error {
	pieces := all.Divide(c.target, single)
	if len(pieces) > 1 {
		for name, b := range all.Bounds {
			b.Exact = b.Exact && b.Min.Equal(*b.Max)
			if b.Nulls > 0 {
				b.Nulls = -1
			}
			all.Bounds[name] = b
		}
	}
	for _, piece := range pieces {
		if !c.yield(Cutting{Piece: piece, Exact: all.Exact, Bounds: all.Bounds, Bucket: all.Bucket}, nil) {
			return emit.ErrLeft
		}
	}
	return nil
}

// facts returns the bounds of a row group by the names of columns, and whether its number of rows is what a scan
// yields. Readers that return batches need not return as many as they declare.
func (c *slicer) facts(ctx context.Context, g format.RowGroup) (known map[string]pred.Bounds, exact bool) {
	var o format.Overlay
	if c.overlays != nil {
		var err error
		if o, err = c.overlays.Overlay(ctx, g, c.Query.Cols); err != nil {
			return nil, false
		}
	}
	drops := o != nil && o.Drops()
	exact = g.Rows >= 0 && !drops && !c.Batched && c.TakesAll(g, o)
	known = map[string]pred.Bounds{}
	for _, out := range c.Outputs {
		col := out.Col
		if c.Batched {
			col = out.Top
		}
		b, ok := g.Bounds[col]
		if !ok || out.Nested || len(out.Path) != 1 || o != nil && o.Touches(col) {
			continue
		}
		f := c.Fields[out.Top]
		if b.Min == nil || b.Max == nil || b.MinCut || b.MaxCut || !b.NoNaN && floating(f.Type) {
			b.Min, b.Max, b.Exact = nil, nil, false
		}
		if b.Exact = b.Exact && exact && !floating(f.Type); !exact && b.Nulls > 0 {
			b.Nulls = -1
		}
		if !f.Nullable && b.Nulls < 0 {
			b.Nulls = 0
		}
		known[f.Name] = b
	}
	return known, exact
}

func floating(t arrow.DataType) bool { return arrow.IsFloating(t.ID()) }

// mayMatch returns the row groups in which metadata leaves rows for the filter, and in left the range of these rows for
// row groups in which that is not all. If narrowing fails, the scan will report the error.
func (c *slicer) mayMatch(ctx context.Context, groups []format.RowGroup) (out []format.RowGroup,
	left map[int]vec.Range) {
	if c.Filter == nil {
		return groups, nil
	}
	r := &window.Shared{Plan: c.Plan, Src: c.src}
	left = map[int]vec.Range{}
	for _, g := range groups {
		all := vec.Range{From: 0, To: math.MaxInt64}
		if g.Rows >= 0 {
			all.To = g.Rows
		}
		if rows, _, err := r.Narrow(ctx, g, all); err == nil {
			if len(rows) == 0 {
				continue
			}
			if some := (vec.Range{From: rows[0].From, To: rows[len(rows)-1].To}); some != all && g.Rows > 0 {
				left[g.Index] = some
			}
		}
		out = append(out, g)
	}
	return out, left
}
