package window

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"stoa/format"
	"stoa/internal/scan/internal/plan"
	"stoa/vec"
)

// What can be known about the pages of a filter column before values are compared: that no row of a page passes (by its
// bounds, or because no value of the dictionary passes), and, if the format can tell while decoding, which entries of a
// page may pass.

// verdict is what decoding a page revealed: the rows from first on that sel does not select certainly fail the filter.
type verdict struct {
	first int64
	sel   *vec.Sel
}

// ownFilter sets the part of the filter that involves this stream alone, tests its dictionary, and determines which of
// its pages are skipped. Columns that an overlay may change are excluded, as their values are not known before they are
// patched.
func (w *Windows) ownFilter(ctx context.Context, s *stream) error {
	p := w.run.Plan
	if w.overlay != nil && w.overlay.Touches(s.column) {
		return nil
	}
	coded := false // some dictionary value passes
	if s.filter = p.Alone[s.column]; s.filter != nil && s.dead == nil {
		if err := s.needDict(ctx); err != nil {
			if !w.run.Tolerates(err) {
				return s.withColumn(err)
			}
			s.dead = err
		}
	}
	if s.filter != nil && s.dict != nil && s.dict.Len() > 0 {
		values, err := s.dict.View(s.dict.Len())
		if err != nil {
			return err
		}
		defer values.Release()
		var null bool
		if s.hits, null, err = s.filter.EvalDict(values); err != nil {
			return err
		}
		coded = null || s.hits.Count > 0
	}
	s.pager.Prune = func(page format.Page) string {
		switch {
		case page.First < 0 || page.Rows < 0:
		case page.Bounds != nil && p.Prunes(w.group, w.overlay, s.column, page.Bounds):
			return plan.WhyBounds(page.Bounds, plan.ByPageBounds)
		case page.Coded && s.hits != nil && !coded:
			return plan.ByDictionary
		}
		return ""
	}
	return nil
}

// keepVerdict keeps the verdict of decoding on the page's entries. first is the row of its first entry.
func (s *stream) keepVerdict(t *format.Task, first int64) {
	trace := s.run.Plan.Spec.Trace
	if s.filter == nil {
		return
	}
	if t.Passed == nil {
		if _, _, ok := s.vec.Coded(); ok && s.hits != nil {
			trace.Used(s.column, plan.ByCodes)
		}
		return
	}
	trace.Used(s.column, t.By)
	if t.Passed.Count < t.Passed.N {
		s.verdicts = append(s.verdicts, verdict{first, t.Passed})
	}
}

// mayPass removes entries that are known to fail from in (nil: all), whose entries are the rows [a, b).
func (s *stream) mayPass(in *vec.Sel, a, b int64) *vec.Sel {
	if len(s.pruned) > 0 {
		in = withoutRanges(s.pruned, orAll(in, int(b-a)), a, b)
		s.pruned = slices.DeleteFunc(s.pruned, func(r vec.Range) bool { return r.To <= b })
	}
	for _, x := range s.verdicts {
		in = x.within(orAll(in, int(b-a)), a, b)
	}
	s.verdicts = slices.DeleteFunc(s.verdicts, func(x verdict) bool { return x.first+int64(x.sel.N) <= b })
	return in
}

// within returns in, whose entries are the rows [a, b), without the rows that fail.
func (x verdict) within(in *vec.Sel, a, b int64) *vec.Sel {
	n := int(b - a)
	bits := make([]byte, (n+7)/8)
	vec.SetBits(bits, 0, n, true)
	rows := vec.Range{From: x.first, To: x.first + int64(x.sel.N)}.Intersect(vec.Range{From: a, To: b})
	if k := int(rows.Len()); k > 0 { // a verdict that all rows pass is not kept
		bitutil.CopyBitmap(x.sel.Bits, int(rows.From-x.first), k, bits, int(rows.From-a))
	}
	return in.And(vec.NewSel(bits, n))
}
