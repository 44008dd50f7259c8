package scan

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strings"

	"stoa/format"
	"stoa/vec"
)

// Walk goes through the metadata of the source that Start named: which parts and row groups the filter leaves,
// which rows of them, and which pages have such rows. No page is read; but formats without an index have page
// headers among the pages.
func Walk(ctx context.Context, t *Trace, src Source) error {
	r := &reading{plan: t.source.plan, src: src}
	var told []string // why row groups of the part are passed over
	ctx = format.WithSkips(ctx, func(s format.Skip) {
		if s.Level == format.LevelRows {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.level(s.Level).add(1, s.Bytes, s.Why)
		if s.Level == format.LevelGroup {
			told = append(told, s.Why)
		}
	})
	for part, err := range src.Reader.Parts(ctx, r.plan.query) {
		if err != nil {
			return err
		}
		told = told[:0]
		groups, err := src.Reader.RowGroups(ctx, part, r.plan.query)
		if err != nil {
			return err
		}
		left := len(told) == 0 && len(groups) == 0 // a part that has no row groups is read
		for _, g := range groups {
			why, err := walkGroup(ctx, t, r, g)
			if err != nil {
				return err
			}
			told, left = append(told, why), left || why == ""
		}
		why := ""
		if !left { // no row group remains, so nothing of the part but its metadata is read
			why = together(told)
		}
		t.level(format.LevelPart).add(1, part.Bytes, why)
	}
	return nil
}

// together are reasons as one.
func together(told []string) string {
	slices.Sort(told)
	return strings.Join(slices.Compact(told), ", ")
}

// groupWalk goes through the pages of one row group.
type groupWalk struct {
	trace    *Trace
	run      *reading
	group    format.RowGroup
	all      vec.Range
	narrowed vec.Ranges
	why      string // the rows outside of narrowed are passed over
}

// walkGroup walks a row group; why is the reason if it is passed over.
func walkGroup(ctx context.Context, t *Trace, r *reading, g format.RowGroup) (why string, err error) {
	w := groupWalk{trace: t, run: r, group: g, all: vec.Range{From: 0, To: math.MaxInt64}}
	if g.Rows >= 0 {
		w.all.To = g.Rows
	}
	var told []string
	var overlay format.Overlay
	w.narrowed, overlay, err = r.narrow(format.WithSkips(ctx, func(s format.Skip) { told = append(told, s.Why) }),
		g, w.all)
	if err != nil {
		return "", err
	}
	w.why = cmp.Or(together(told), byReader)
	rows := t.level(format.LevelRows)
	if len(w.narrowed) == 0 {
		t.level(format.LevelGroup).add(1, sizeOrUnknown(g.Bytes), w.why)
		rows.add(max(0, g.Rows), 0, w.why)
		return w.why, nil
	}
	t.level(format.LevelGroup).add(1, sizeOrUnknown(g.Bytes), "")
	rows.unknown = rows.unknown || g.Rows < 0
	if g.Rows >= 0 {
		rows.add(w.narrowed.Len(), 0, "")
		rows.add(g.Rows-w.narrowed.Len(), 0, w.why)
	}
	if r.plan.batched {
		return "", nil
	}
	return "", w.columns(ctx, overlay)
}

// columns walks those of the filter first, as a scan does.
func (w *groupWalk) columns(ctx context.Context, overlay format.Overlay) (err error) {
	p := w.run.plan
	left := w.narrowed
	for _, col := range p.filters {
		prune := func(page format.Page) string {
			if page.Bounds != nil && p.prunes(w.group, overlay, col, page.Bounds) {
				return whyBounds(page.Bounds, byPageBounds)
			}
			return ""
		}
		if left, err = w.column(ctx, col, left, prune); err != nil {
			return err
		}
	}
	others := slices.Clone(p.others)
	for _, f := range slices.Concat(p.filterFields, p.otherFields) {
		others = append(others, f.cols...)
	}
	for _, col := range others {
		if _, err := w.column(ctx, col, left, nil); err != nil {
			return err
		}
	}
	return nil
}

// column notes the pages of a column, and gives what its bounds leave of the rows that are left.
func (w *groupWalk) column(ctx context.Context, col int, left vec.Ranges,
	prune func(format.Page) string) (vec.Ranges, error) {
	chunk, err := w.run.src.Reader.Chunk(ctx, w.group, col, w.all)
	if err != nil {
		return nil, err
	}
	if d, ok := chunk.Dict(); ok {
		w.trace.walked(w.group, col, d, "", format.LevelDict)
	}
	pages := pager{src: w.run.src, chunk: chunk}
	var out vec.Ranges
	for {
		p, err := pages.next(ctx)
		if err == io.EOF {
			return left.Intersect(out), nil
		}
		if err != nil {
			return nil, err
		}
		rows := vec.Range{From: p.First, To: p.First + p.Rows}
		why := ""
		switch {
		case p.First < 0 || p.Rows < 0: // only reading tells its rows
			rows = w.all
		case !overlaps(w.narrowed, rows):
			why = w.why
		case !overlaps(left, rows):
			why = byRows
		case prune != nil:
			why = prune(p)
		}
		w.trace.walked(w.group, col, p, why, format.LevelPage)
		if why == "" {
			out = out.Add(rows)
		}
	}
}

func overlaps(all vec.Ranges, r vec.Range) bool { return len(all.Intersect(vec.Ranges{r})) > 0 }
