package scan

import (
	"context"
	"iter"
	"math"

	"stoa/format"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/vec"
)

// Cut yields the pieces of a scan, of at most about target stored bytes each if they can be divided that far. Data that
// metadata excludes by the filter is in none of them: parts, row groups, and the rows before the first and after the
// last that an index or bounds leave.
func Cut(ctx context.Context, src fetch.Source, spec plan.Spec, target int64) iter.Seq2[plan.Piece, error] {
	return func(yield func(plan.Piece, error) bool) {
		p, err := plan.New(src.Reader, spec)
		if err != nil {
			yield(plan.Piece{}, err)
			return
		}
		for part, err := range src.Reader.Parts(ctx, p.Query) {
			if err == nil {
				err = cutPart(ctx, p, src, part, target, yield)
			}
			if err == emit.ErrLeft {
				return
			}
			if err != nil {
				yield(plan.Piece{}, err)
				return
			}
		}
	}
}

func cutPart(ctx context.Context, p *plan.Plan, src fetch.Source, part format.Part, target int64,
	yield func(plan.Piece, error) bool) error {
	groups, err := src.Reader.RowGroups(ctx, part, p.Query)
	if err != nil {
		return err
	}
	alone := len(groups) == 1
	groups, left := mayMatch(ctx, p, src, groups)
	for _, cluster := range p.Clusters(groups, src.Reader.Order()) {
		all := plan.Piece{Part: part.Ref, Stamp: part.Stamp}
		for _, g := range cluster {
			if rows, ok := left[g.Index]; ok && len(cluster) == 1 {
				all.Rows, g.Bytes, g.Rows = rows, g.Bytes*rows.Len()/g.Rows, rows.Len()
			}
			all.Groups = append(all.Groups, g.Index)
			all.Bytes += max(0, g.Bytes)
			if all.Count += g.Rows; g.Rows < 0 {
				all.Count = -1
				break
			}
		}
		if all.Bytes == 0 && alone {
			all.Bytes = max(0, part.Bytes)
		}
		for _, piece := range all.Divide(target, len(cluster) == 1) {
			if !yield(piece, nil) {
				return emit.ErrLeft
			}
		}
	}
	return nil
}

// mayMatch returns the row groups in which metadata leaves rows for the filter, and in left the range of these rows for
// row groups in which that is not all. If narrowing fails, the scan will report the error.
func mayMatch(ctx context.Context, p *plan.Plan, src fetch.Source, groups []format.RowGroup) (out []format.RowGroup,
	left map[int]vec.Range) {
	if p.Filter == nil {
		return groups, nil
	}
	r := &window.Shared{Plan: p, Src: src}
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
