package scan

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strings"

	"stoa/format"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/vec"
)

// Walk walks the metadata of the source that was passed to Start and records which parts, row groups, rows and pages
// the filter leaves. It reads no pages, except that in formats without an index the page headers lie among them.
func Walk(ctx context.Context, t *plan.Trace, src fetch.Source) error {
	r := &window.Shared{Plan: t.Plan(), Src: src}
	var reasons []string // why row groups of the part are skipped
	ctx = format.WithSkips(ctx, func(s format.Skip) {
		if s.Level == format.LevelRows {
			return
		}
		t.Count(s.Level, 1, s.Bytes, s.Why)
		if s.Level == format.LevelGroup {
			reasons = append(reasons, s.Why)
		}
	})
	for part, err := range src.Reader.Parts(ctx, r.Plan.Query) {
		if err != nil {
			return err
		}
		reasons = reasons[:0]
		groups, err := src.Reader.RowGroups(ctx, part, r.Plan.Query)
		if err != nil {
			return err
		}
		left := len(reasons) == 0 && len(groups) == 0 // a part without row groups counts as read
		for _, g := range groups {
			why, err := walkGroup(ctx, t, r, g)
			if err != nil {
				return err
			}
			reasons, left = append(reasons, why), left || why == ""
		}
		why := ""
		if !left { // no row group remains, so only the part's metadata is read
			why = joined(reasons)
		}
		t.Count(format.LevelPart, 1, part.Bytes, why)
	}
	return nil
}

// joined joins the distinct reasons.
func joined(reasons []string) string {
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", ")
}

// groupWalk walks the pages of one row group.
type groupWalk struct {
	trace    *plan.Trace
	run      *window.Shared
	group    format.RowGroup
	all      vec.Range
	narrowed vec.Ranges
	why      string // why the rows outside of narrowed are skipped
}

// walkGroup walks a row group. why is the reason if the group is skipped.
func walkGroup(ctx context.Context, t *plan.Trace, r *window.Shared, g format.RowGroup) (why string, err error) {
	w := groupWalk{trace: t, run: r, group: g, all: vec.Range{From: 0, To: math.MaxInt64}}
	if g.Rows >= 0 {
		w.all.To = g.Rows
	}
	var reasons []string
	var overlay format.Overlay
	w.narrowed, overlay, err = r.Narrow(format.WithSkips(ctx, func(s format.Skip) { reasons = append(reasons, s.Why) }),
		g, w.all)
	if err != nil {
		return "", err
	}
	w.why = cmp.Or(joined(reasons), plan.ByReader)
	if len(w.narrowed) == 0 {
		t.Count(format.LevelGroup, 1, plan.SizeOrUnknown(g.Bytes), w.why)
		t.Count(format.LevelRows, max(0, g.Rows), 0, w.why)
		return w.why, nil
	}
	t.Count(format.LevelGroup, 1, plan.SizeOrUnknown(g.Bytes), "")
	if g.Rows < 0 {
		t.CountUnknown()
	} else {
		t.Count(format.LevelRows, w.narrowed.Len(), 0, "")
		t.Count(format.LevelRows, g.Rows-w.narrowed.Len(), 0, w.why)
	}
	if r.Plan.Batched {
		return "", nil
	}
	return "", w.columns(ctx, overlay)
}

// columns walks the filter's columns first, as a scan does.
func (w *groupWalk) columns(ctx context.Context, overlay format.Overlay) (err error) {
	p := w.run.Plan
	left := w.narrowed
	for _, col := range p.Filters {
		prune := func(page format.Page) string {
			if page.Bounds != nil && p.Prunes(w.group, overlay, col, page.Bounds) {
				return plan.WhyBounds(page.Bounds, plan.ByPageBounds)
			}
			return ""
		}
		if left, err = w.column(ctx, col, left, prune); err != nil {
			return err
		}
	}
	others := slices.Clone(p.Others)
	for _, f := range slices.Concat(p.FilterFields, p.OtherFields) {
		others = append(others, f.Cols...)
	}
	for _, col := range others {
		if _, err := w.column(ctx, col, left, nil); err != nil {
			return err
		}
	}
	return nil
}

// column records the pages of a column, and returns the rows of left that the column's bounds leave.
func (w *groupWalk) column(ctx context.Context, col int, left vec.Ranges,
	prune func(format.Page) string) (vec.Ranges, error) {
	chunk, err := w.run.Src.Reader.Chunk(ctx, w.group, col, w.all)
	if err != nil {
		return nil, err
	}
	if d, ok := chunk.Dict(); ok {
		w.trace.Walked(w.group, col, d, "", format.LevelDict)
	}
	pages := fetch.Pager{Src: w.run.Src, Chunk: chunk}
	var out vec.Ranges
	for {
		p, err := pages.Next(ctx)
		if err == io.EOF {
			return left.Intersect(out), nil
		}
		if err != nil {
			return nil, err
		}
		rows := vec.Range{From: p.First, To: p.First + p.Rows}
		why := ""
		switch {
		case p.First < 0 || p.Rows < 0: // its rows are known only by reading
			rows = w.all
		case !overlaps(w.narrowed, rows):
			why = w.why
		case !overlaps(left, rows):
			why = plan.ByRows
		case prune != nil:
			why = prune(p)
		}
		w.trace.Walked(w.group, col, p, why, format.LevelPage)
		if why == "" {
			out = out.Add(rows)
		}
	}
}

func overlaps(all vec.Ranges, r vec.Range) bool { return len(all.Intersect(vec.Ranges{r})) > 0 }
