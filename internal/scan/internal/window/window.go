package window

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Windows reads ranges of rows of one row group: for each window Begin, Filter, Fill, Emit.
type Windows struct {
	run      *Shared
	group    format.RowGroup
	filters  []lane
	others   []lane
	byCol    map[int]*stream // flat columns, by physical column
	byTop    map[int]*field  // nested fields, by field of the schema
	arena    *vec.Arena      // from the pool arenas, until release
	overlay  format.Overlay  // nil: rows are final as decoded
	before   int64           // rows of the previous row groups
	At       int64           // first row that is not done
	Live     int64           // rows read so far that the overlay left
	reported int64           // suspect rows before this one have been reported
	suspects []region.Loss   // of this window, reported when its end is known
	memo     pred.Memo       // so that each dictionary is tested only once

	// The current window: the rows [At, to) of rows.
	rows  vec.Range
	to    int64
	over  bool       // there are no more rows in rows
	live  *vec.Sel   // the rows that the overlay leaves
	sel   *vec.Sel   // the rows that the filter leaves
	patch *vec.Patch // the overlay's changes; nil: none
}

// lane is a column from the point of view of a window: a stream, or a field of several columns.
type lane interface {
	cover(ctx context.Context, a, b int64, want *vec.Sel) (int64, error)
	seek(a int64)
	end() int64
	rest(ctx context.Context, at, rows int64) int64
	dropLost(sel *vec.Sel, a, b int64) *vec.Sel
	dropsLostRows() bool // lost rows are left out under every policy
	lostFrom() int64     // first row of a lost rest that reaches to the end of the row group; math.MaxInt64: none
	restReported() bool  // the rest is lost, and that was reported
	readEnd() int64      // end, without placeholders for lost rows
	abandon(err error)
	padTo(a, to int64) // appends placeholders to a lost lane, where only the other lanes show how many rows there are
	name() string
	loss() region.Loss
	withColumn(err error) error
	Close()
}

// Open opens the columns of row group g at the first of rows, which metadata leave of all. before is how many rows the
// previous row groups have.
func Open(ctx context.Context, r *Shared, before int64, g format.RowGroup, all vec.Range, rows vec.Ranges,
	overlay format.Overlay) (*Windows, error) {
	w := &Windows{run: r, group: g, before: before, byCol: map[int]*stream{}, byTop: map[int]*field{}, overlay: overlay,
		arena: arenas.Get().(*vec.Arena)}
	p := r.Plan
	others, otherFields := p.Others, p.OtherFields
	if g.Rows < 0 && !p.HasPages() { // how many rows there are is known only by reading a column
		cols, fields, err := p.Counting(p.StoredSchema(r.Src.Reader))
		if err != nil {
			return nil, err
		}
		others, otherFields = append(cols, others...), append(fields, otherFields...)
	}
	fail := func(err error) (*Windows, error) { w.Release(); return nil, err }
	ahead := p.Spec.Ahead
	if err := w.open(ctx, &w.filters, p.Filters, p.FilterFields, rows, ahead); err != nil {
		return fail(err)
	}
	if len(w.filters) > 0 {
		ahead = -1 // which pages are needed is not known in advance
	}
	if err := w.open(ctx, &w.others, others, otherFields, rows, ahead); err != nil {
		return fail(err)
	}
	w.countPages(ctx, all)
	return w, nil
}

// open opens flat columns and nested fields.
func (w *Windows) open(ctx context.Context, to *[]lane, cols []int, fields []*plan.FieldPlan, rows vec.Ranges,
	ahead int64) error {
	for _, col := range cols {
		s, err := w.run.open(ctx, w.group, col, rows, ahead, w.arena)
		if err != nil {
			return err
		}
		if to == &w.filters {
			if err := w.ownFilter(ctx, s); err != nil {
				s.Close()
				return err
			}
		}
		w.byCol[col] = s
		*to = append(*to, s)
	}
	for _, p := range fields {
		f, err := w.run.openField(ctx, w.group, p, rows, ahead)
		if err != nil {
			return err
		}
		w.byTop[p.Top] = f
		*to = append(*to, f)
	}
	return nil
}

// lanes returns all columns that are read.
func (w *Windows) lanes() []lane { return slices.Concat(w.filters, w.others) }

// Release releases the resources of the columns.
func (w *Windows) Release() {
	for _, l := range w.lanes() {
		l.Close()
	}
	arenas.Put(w.arena)
	w.arena = nil
}

// arenas are reused by later scans: a look-up of one row must not cost a megabyte of new memory.
var arenas = sync.Pool{New: func() any { return new(vec.Arena) }}

// Begin sets where the next window of rows, which contain w.At, may end at most; Filter and Fill may end it earlier. A
// window without rows means the end, or damage: see Emit.
func (w *Windows) Begin(ctx context.Context, rows vec.Range) error {
	p := w.run.Plan
	w.rows, w.to, w.over = rows, w.At, false
	if w.At >= rows.To {
		return nil
	}
	if p.Logical && p.RowsOf(w.before+w.Live).To <= 0 {
		return emit.ErrStop
	}
	w.to = rows.To
	if w.to-w.At > int64(p.Spec.Batch) {
		w.to = w.At + int64(p.Spec.Batch)
	}
	if p.Filter == nil {
		w.to = min(w.to, w.run.Out.Room(w.At))
	}
	return ctx.Err()
}

// Filter makes the filter's columns cover the window, one after the other, and selects its rows. Rows that the bounds
// of one column exclude are not read from the next.
func (w *Windows) Filter(ctx context.Context) error {
	var candidates *vec.Sel // the rows that are not excluded; nil = all
	for _, l := range w.filters {
		if w.to == w.At {
			return nil
		}
		want := candidates
		if _, nested := l.(*field); nested { // a field is tested as a whole: see view
			want = nil
		}
		end, err := l.cover(ctx, w.At, w.to, want)
		if err != nil {
			return err
		}
		if w.group.Rows >= 0 {
			end = min(end, w.group.Rows)
		}
		if end = max(end, w.At); end < w.to {
			candidates, w.to = cut(candidates, int(end-w.At)), end
		}
		if s, ok := l.(*stream); ok {
			candidates = s.mayPass(candidates, w.At, w.to)
		}
	}
	if w.to == w.At || w.skipLost() {
		return nil
	}
	return w.choose(ctx, candidates)
}

// Fill makes the other columns cover the selected rows of the window. Where only they show how many rows there are,
// lanes whose rest is lost are padded to the length of the others.
func (w *Windows) Fill(ctx context.Context) error {
	counting := w.group.Rows < 0 && len(w.filters) == 0 // only the columns say where such a group ends
	if w.to == w.At || w.sel.Count == 0 && !counting {
		return nil
	}
	a, to := w.At, w.to
	var gone []lane
	for _, l := range w.others {
		end, err := l.cover(ctx, a, w.to, w.sel)
		if err != nil {
			return err
		}
		if w.group.Rows < 0 && end == a && l.restReported() {
			gone = append(gone, l)
			continue
		}
		to = min(to, max(end, a))
	}
	if len(gone) > 0 && len(gone) == len(w.lanes()) { // nothing shows how many rows there are
		to = a
	} else {
		for _, l := range gone {
			l.padTo(a, to)
		}
	}
	if w.group.Rows >= 0 {
		to = min(to, w.group.Rows)
	}
	if to == a || w.skipLost() { // after the last row nothing is lost
		w.to = w.At
		return nil
	}
	if from := w.lostFrom(); w.rows.To-from > MaxLost {
		to = min(to, from)
	}
	return w.fit(to)
}

// fit ends the window at row to, which all columns have reached, and patches and checks the columns' contents.
func (w *Windows) fit(to int64) (err error) {
	n := int(to - w.At)
	if to < w.to {
		w.live, w.sel, w.to = w.live.Slice(0, n), w.sel.Slice(0, n), to
	}
	if err := w.apply(w.others, w.patch, n); err != nil {
		return err
	}
	w.sel, err = w.checkStructs(w.withoutLost(w.sel, w.At, to), w.At, to)
	return err
}

// Emit emits the window's rows and reports whether there may be more.
func (w *Windows) Emit(ctx context.Context) (more bool, err error) {
	if w.over {
		return false, nil
	}
	if w.to == w.At {
		return w.checkEnd(ctx, w.rows)
	}
	a := w.At
	w.reportSuspects(w.to)
	w.Live += int64(w.live.Count)
	w.At = w.to
	return true, w.emit(w.sel, a, int(w.to-a))
}

// lostFrom returns the row from which on no row of the row group can be returned, because everything up to its end is
// lost in all columns or in one whose lost rows are dropped; math.MaxInt64 if there is none.
func (w *Windows) lostFrom() int64 {
	needed, all := int64(math.MaxInt64), int64(-1)
	for i, l := range w.lanes() {
		from := l.lostFrom()
		all = max(all, from)
		if i < len(w.filters) || l.dropsLostRows() || w.run.Plan.Spec.Damaged != plan.NullCells {
			needed = min(needed, from)
		}
	}
	if all >= 0 { // there are columns
		needed = min(needed, all)
	}
	return needed
}

// skipLost skips the rows from w.At on if no column has any of them and only the row group declares that there are this
// many: that number may be the damage. The loss has been reported.
func (w *Windows) skipLost() bool {
	byPosition := w.run.Plan.Logical && w.run.Plan.Spec.Rows != (vec.Range{})
	if byPosition || w.rows.To-w.At <= MaxLost || w.lostFrom() > w.At {
		return false
	}
	w.Live += w.rows.To - w.At
	w.At, w.to, w.over = w.rows.To, w.rows.To, true
	return true
}

// choose selects the wanted rows as far as the filter's columns determine them; candidates are the rows that their
// pages leave (nil = all).
func (w *Windows) choose(ctx context.Context, candidates *vec.Sel) (err error) {
	a, b := w.At, w.to
	if w.live, w.patch, err = w.changes(ctx, a, b); err != nil {
		return err
	}
	chosen := w.positioned(w.live)
	if candidates != nil {
		chosen = chosen.And(candidates)
	}
	w.sel, err = w.filter(a, b, chosen, w.patch)
	if err == nil && w.loose(chosen) {
		w.sel = chosen
	}
	return err
}

// loose reports whether all rows of the window are passed on, as most of them pass the filter: then nothing is copied.
func (w *Windows) loose(chosen *vec.Sel) bool {
	return w.run.Plan.Spec.Loose && w.run.Plan.Spec.Damaged == plan.Fail && w.overlay == nil && w.run.Out.Take == nil &&
		chosen.IsAll() && 4*w.sel.Count >= 3*chosen.N
}

// withoutLost returns sel without those of the rows [a, b) that have a lost cell, where they have to be left out.
func (w *Windows) withoutLost(sel *vec.Sel, a, b int64) *vec.Sel {
	for _, s := range w.others {
		if w.run.Plan.Spec.Damaged == plan.SkipRows || s.dropsLostRows() {
			sel = s.dropLost(sel, a, b)
		}
	}
	return sel
}

func orAll(s *vec.Sel, n int) *vec.Sel {
	if s == nil {
		return vec.All(n)
	}
	return s
}

func cut(s *vec.Sel, n int) *vec.Sel {
	if s == nil {
		return nil
	}
	return s.Slice(0, n)
}

// changes returns the overlay's effect on the rows [a, b): which of them remain, and the patch. Cells that damage in
// the overlay makes suspect are never returned unpatched.
func (w *Windows) changes(ctx context.Context, a, b int64) (live *vec.Sel, p *vec.Patch, err error) {
	n := int(b - a)
	w.suspects = w.suspects[:0]
	if w.overlay == nil {
		return vec.All(n), nil, nil
	}
	rows := vec.Range{From: a, To: b}
	var bytes [][]byte
	for _, at := range w.overlay.Spans(rows) {
		var one []byte
		if one, err = fetch.ReadSpan(ctx, w.run.Src.Objects, at); err != nil {
			break
		}
		bytes = append(bytes, one)
	}
	if err == nil {
		p, err = w.overlay.Patch(ctx, rows, bytes)
	}
	if err != nil {
		if !damaged(err) {
			return nil, nil, err
		}
		p = &vec.Patch{First: a, N: n, Suspect: []vec.Suspect{{Rows: rows, Col: -1, Err: err}}}
	}
	live = vec.All(n)
	if p != nil && p.Drop != nil {
		live = p.Drop.Not()
	}
	if p != nil && len(p.Suspect) > 0 {
		live, err = w.suspect(p, live)
	}
	return live, p, err
}

// suspect applies the damage policy to what a patch declares suspect: rows are removed from live, cells are lost.
func (w *Windows) suspect(p *vec.Patch, live *vec.Sel) (*vec.Sel, error) {
	rows := vec.Range{From: p.First, To: p.First + int64(p.N)}
	for _, x := range p.Suspect {
		if !w.run.Tolerates(x.Err) {
			return nil, x.Err
		}
		x.Rows = x.Rows.Intersect(rows)
		l := region.Loss{Part: w.group.Part, Group: w.group.Index, Name: w.group.Name}
		if s := w.byCol[x.Col]; s != nil {
			l = s.loss()
			s.suspect = append(s.suspect, x.Rows)
		} else {
			live = withoutRanges([]vec.Range{x.Rows}, live, rows.From, rows.To)
		}
		l.Rows, l.Exact, l.Err = [2]int64{x.Rows.From, x.Rows.To}, true, x.Err
		w.suspects = append(w.suspects, l)
	}
	return live, nil
}

// reportSuspects reports the suspect rows of the window that ends before row b. In a row group with an unknown number
// of rows only the columns determine that end, and the rest of a window that was cut short is visited again.
func (w *Windows) reportSuspects(b int64) {
	for _, l := range w.suspects {
		l.Rows = [2]int64{max(l.Rows[0], w.reported), min(l.Rows[1], b)}
		if l.Rows[0] < l.Rows[1] {
			w.run.Lose(l)
		}
	}
	w.reported = max(w.reported, b)
}

// positioned cuts live to the wanted rows where positions count only the rows that remain: deleted rows have no
// position.
func (w *Windows) positioned(live *vec.Sel) *vec.Sel {
	if !w.run.Plan.Logical || w.run.Plan.Spec.Rows == (vec.Range{}) {
		return live
	}
	rows := w.run.Plan.RowsOf(w.before + w.Live)
	from, to := max(0, rows.From), max(0, rows.To)
	return without(emit.First(live, int(min(to, int64(live.Count)))), int(min(from, int64(live.Count))))
}

// without returns s without its first k entries.
func without(s *vec.Sel, k int) *vec.Sel {
	if k == 0 {
		return s
	}
	return s.And(emit.First(s, k).Not())
}

// apply overwrites cells of streams in the window's first n rows.
func (w *Windows) apply(lanes []lane, p *vec.Patch, n int) error {
	if p == nil {
		return nil
	}
	for _, c := range p.Cols {
		s := w.byCol[c.Col]
		if s == nil || !slices.Contains(lanes, lane(s)) {
			continue
		}
		k, _ := slices.BinarySearch(c.Rows, int32(n))
		vals := c.Vals
		if k < len(c.Rows) { // the window ends before the patch does
			short, err := vec.New(vals.Type, memory.DefaultAllocator)
			if err != nil {
				return err
			}
			defer short.Release()
			if err := short.Append(vals, 0, k, nil); err != nil {
				return err
			}
			vals = short
		}
		if err := s.vec.Overwrite(c.Rows[:k], vals); err != nil {
			return err
		}
	}
	if w.run.Plan.Spec.Damaged != plan.NullCells {
		return nil // the rows were, or will be, removed
	}
	for _, x := range p.Suspect {
		if s := w.byCol[x.Col]; s != nil && slices.Contains(lanes, lane(s)) {
			if err := s.nullify(x.Rows.Intersect(vec.Range{From: p.First, To: p.First + int64(n)})); err != nil {
				return err
			}
		}
	}
	return nil
}

// filter returns the rows of live that pass the filter, whose columns are decoded for [a, b).
func (w *Windows) filter(a, b int64, live *vec.Sel, p *vec.Patch) (*vec.Sel, error) {
	for _, s := range w.filters { // under every policy: a filter over a lost cell is unknown, even "is null"
		live = s.dropLost(live, a, b)
	}
	if err := w.apply(w.filters, p, int(b-a)); err != nil {
		return nil, err
	}
	if w.run.Plan.Filter == nil || live.Count == 0 {
		return live, nil
	}
	return w.evaluate(w.run.Plan.Filter, a, int(b-a), live)
}

func (w *Windows) evaluate(e *pred.Expr, a int64, n int, sel *vec.Sel) (*vec.Sel, error) {
	views := map[string]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, name := range e.Columns() {
		v, err := w.view(w.run.Plan.Paths[name], a, n)
		if err != nil {
			return nil, err
		}
		views[name] = v
	}
	return e.EvalWith(&w.memo, n, func(path string) arrow.Array { return views[path] }, sel)
}

// view returns the n rows from a on of the field at path.
func (w *Windows) view(path []int, a int64, n int) (arrow.Array, error) {
	if f := w.byTop[path[0]]; f != nil {
		names := plan.NamesOf(w.run.Plan.Fields, path)
		return f.take(a, n, vec.All(n), names[1:], w.run.Plan.Alloc())
	}
	return w.run.Plan.Test(path, n, func(col int) (arrow.Array, error) { return w.byCol[col].vec.View(n) })
}

// checkStructs checks whether the columns of structs contradict each other in those of the rows [a, b) that sel
// selects. Such rows are damaged, in an unknown column. It returns the rows that may be returned.
func (w *Windows) checkStructs(sel *vec.Sel, a, b int64) (*vec.Sel, error) {
	for _, s := range w.run.Plan.Shown {
		if s.Rows == nil {
			continue
		}
		intact := sel
		for _, c := range s.Rows.Columns() {
			intact = w.byCol[c].dropLost(intact, a, b)
		}
		for intact.Count > 0 {
			c, err := w.contradiction(s.Rows, intact)
			if err != nil {
				return nil, err
			}
			if c == nil {
				break
			}
			bits := make([]byte, (sel.N+7)/8)
			for _, i := range c.Rows {
				vec.SetBits(bits, int(i), int(i)+1, true)
			}
			bad := vec.NewSel(bits, sel.N).Not()
			if err := w.disagree(s.Rows, c, a); err != nil {
				return nil, err
			}
			if intact = intact.And(bad); w.run.Plan.Spec.Damaged == plan.SkipRows {
				sel = sel.And(bad)
			}
		}
	}
	return sel, nil
}

// contradiction returns the first contradiction between columns of rows, among the rows that sel selects.
func (w *Windows) contradiction(rows *nest.RowField, sel *vec.Sel) (*nest.Contradiction, error) {
	views := map[int]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, c := range rows.Columns() {
		v, err := w.byCol[c].vec.View(sel.N)
		if err != nil {
			return nil, err
		}
		views[c] = v
	}
	return rows.Contradicts(sel, func(col int) arrow.Array { return views[col] }), nil
}

// disagree applies the damage policy to the contradictory rows of a struct, counted from row a: the struct is lost
// there.
func (w *Windows) disagree(rows *nest.RowField, c *nest.Contradiction, a int64) error {
	var bad vec.Ranges
	for _, i := range c.Rows {
		bad = bad.Add(vec.Range{From: a + int64(i), To: a + int64(i) + 1})
	}
	err := fault.Corruptf(fault.Span{Object: w.group.Part}, "column "+rows.Name, "row %d: %s", bad[0].From,
		c.Why)
	if !w.run.Tolerates(err) {
		return err
	}
	for _, r := range bad {
		l := w.run.Plan.LossIn(w.group, rows.Columns()[0])
		if l.Stored = ""; rows.Name != l.Column {
			l.Stored = rows.Name
		}
		l.Rows, l.Exact, l.Err = [2]int64{r.From, r.To}, true, err
		w.run.Lose(l)
	}
	if c.Column < 0 || w.run.Plan.Spec.Damaged != plan.NullCells {
		return nil
	}
	no, verr := vec.New(arrow.FixedWidthTypes.Boolean, memory.DefaultAllocator)
	if verr != nil {
		return verr
	}
	defer no.Release()
	no.Extend(len(c.Rows))
	clear(no.Bits())
	return w.byCol[c.Column].vec.Overwrite(c.Rows, no)
}
