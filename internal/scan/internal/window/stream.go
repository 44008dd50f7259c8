package window

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// stream is one column of one row group, decoded in row order into vec, which holds the entries of the rows from row
// on. Between windows vec holds the tail of a page that crossed the border, or nothing.
type stream struct {
	run    *Shared
	group  format.RowGroup
	column int // physical
	col    format.Column
	chunk  format.Chunk
	pager  fetch.Pager
	dict   *vec.Vector // see needDict
	arena  *vec.Arena

	vec      *vec.Vector
	row      int64 // of vec's first entry
	counted  int64 // rows of all pages so far, for pages that do not declare where they begin
	ended    bool  // there are no rows after those in vec
	lost     vec.Ranges
	suspect  []vec.Range // rows whose cells may be outdated, as their changes are lost
	pruned   []vec.Range // rows of pages that were skipped because of their bounds
	filter   *pred.Expr  // filter terms that involve this column alone; nil = none, or they must not be used
	hits     *vec.Sel    // the entries of dict that pass it; nil without a dictionary
	verdicts []verdict   // of pages on their own entries
	dictRead bool        // dict is loaded; it is nil if there is none
	dead     error       // why the rest of the chunk cannot be found
	lostRest int64       // first row of the rest; see lostFrom
}

func (r *Shared) open(ctx context.Context, g format.RowGroup, col int, rows vec.Ranges, ahead int64,
	arena *vec.Arena) (*stream, error) {
	s := &stream{run: r, group: g, column: col, col: r.Plan.Columns[col], arena: arena, row: rows[0].From}
	var err error
	if s.vec, err = vec.New(s.col.Type, r.Plan.Vectors()); err != nil {
		return nil, err
	}
	hull := vec.Range{From: rows[0].From, To: rows[len(rows)-1].To}
	s.chunk, err = r.Src.Reader.Chunk(ctx, g, col, hull)
	if err == nil {
		s.pager = fetch.Pager{Src: r.Src, Trace: r.Plan.Spec.Trace, Work: r.Plan.Spec.Work,
			Chunk: s.chunk, Rows: rows, Ahead: ahead}
	}
	if err != nil {
		if !r.Tolerates(err) {
			s.vec.Release()
			return nil, err
		}
		s.dead = err
	}
	return s, nil
}

// needDict loads the dictionary, if there is one: with the first page that is decoded, or with the filter. After an
// error no page can be decoded.
func (s *stream) needDict(ctx context.Context) (err error) {
	if !s.dictRead {
		s.run.Plan.Spec.Trace.NoteDict(s.group, s.column, s.chunk)
		s.dict, err = s.run.Src.Dicts.Get(ctx, s.run.Src, s.col, s.chunk)
		s.dictRead = err == nil
	}
	return err
}

func (s *stream) Close() {
	s.pager.Close()
	s.vec.Release()
}

// end returns the row after vec's last entry.
func (s *stream) end() int64 { return s.row + int64(s.vec.Len()) }

// seek drops the entries before row a.
func (s *stream) seek(a int64) {
	k := min(a-s.row, int64(s.vec.Len()))
	s.vec.Skip(int(k))
	s.row = a
	s.suspect = slices.DeleteFunc(s.suspect, func(r vec.Range) bool { return r.To <= a })
}

// cover decodes until vec holds the rows [a, b), or fewer at the chunk's end and when vec gets too large. want selects
// the rows that are needed, counted from a (nil: all): pages without any are skipped. It returns the row up to which
// vec reaches, at most b.
func (s *stream) cover(ctx context.Context, a, b int64, want *vec.Sel) (int64, error) {
	s.seek(a)
	if want.IsAll() && s.run.Plan.Spec.Memory <= 0 { // with a budget a window may end long before b
		s.vec.Expect(int(b - a))
	}
	for s.end() < b && !s.ended && (s.vec.Len() == 0 || s.vec.Size() < s.run.Plan.Largest && s.fits()) {
		if s.dead != nil {
			s.loseRest(b)
			break
		}
		s.pager.Until = b
		pb, err := s.pager.Peek(ctx)
		if err == io.EOF {
			s.ended = true
			break
		}
		if err == nil {
			err = s.page(ctx, pb, a, b, want)
		}
		if err != nil {
			if !s.run.Tolerates(err) {
				return 0, s.withColumn(err)
			}
			s.dead = err
		}
	}
	return min(s.row+int64(s.vec.Fit(s.vec.Len(), s.run.Plan.Strings())), b), nil
}

// fits reports whether the codes of long strings in vec can still be expanded after one more page.
func (s *stream) fits() bool { return s.vec.Fit(s.vec.Len(), s.run.Plan.Strings()) == s.vec.Len() }

// page decodes the next page, or skips it. An error means that the rest of the chunk has no known position.
func (s *stream) page(ctx context.Context, pb *fetch.PageBytes, a, b int64, want *vec.Sel) error {
	p := pb.Page
	first := p.First
	if first < 0 {
		first = s.counted
	}
	pos := s.end()
	if done, err := s.passOver(pb, first, a, b, want); done || err != nil {
		return err
	}
	if err := s.needDict(ctx); err != nil {
		return err
	}
	known, to := p.Rows >= 0, first+p.Rows
	if known && s.worthKeeping(p, first) {
		pb.Used = true
		return s.appendKept(ctx, p, first, pos, min(to, b))
	}
	before := s.vec.Len()
	t, err := s.task(ctx, p)
	if err == nil {
		t.Want = wantOf(want, a, b, first, to, known)
		err = s.pager.Decode(ctx, &t, s.vec)
	}
	if err != nil {
		return s.losePage(p, first, pos, err)
	}
	s.keepVerdict(&t, first)
	n := int64(s.vec.Len() - before)
	if pos > first { // only with an empty vec: earlier entries of this page were skipped
		s.vec.Skip(int(min(pos-first, n)))
	}
	s.pass(first + n)
	return nil
}

// passOver appends placeholders for a page whose rows, from first on, are not needed, and reports whether it did.
func (s *stream) passOver(pb *fetch.PageBytes, first, a, b int64, want *vec.Sel) (bool, error) {
	p, pos := pb.Page, s.end()
	known, to := p.Rows >= 0, first+p.Rows
	switch {
	case known && to <= pos: // before the window
		s.pass(to)
		return true, nil
	case first > pos:
		return true, fault.Corruptf(fetch.PlaceOf(p), "", "the page begins at row %d, row %d is next", first, pos)
	case pb.Skip != "":
		s.run.Plan.Spec.Trace.Note(s.group, s.column, p, pb.Skip)
		s.pruned = append(s.pruned, vec.Range{From: pos, To: min(to, b)})
	case known && !want.Any(int(pos-a), int(min(to, b)-a)):
		s.run.Plan.Spec.Trace.Note(s.group, s.column, p, plan.ByFilter)
	default:
		return false, nil
	}
	s.vec.ExtendUnset(int(min(to, b) - pos))
	if to <= b { // otherwise the next window visits it again
		s.pass(to)
	}
	return true, nil
}

// pass removes the first page, whose rows end at to, from the queue.
func (s *stream) pass(to int64) {
	s.counted = to
	s.pager.Drop()
}

// task returns the task of decoding p, once its bytes have arrived.
func (s *stream) task(ctx context.Context, p format.Page) (t format.Task, err error) {
	if p.Lost != nil {
		return t, p.Lost
	}
	bytes, err := s.pager.Bytes(ctx)
	if err != nil {
		return t, err
	}
	s.run.Plan.Spec.Trace.Note(s.group, s.column, p, "")
	s.arena.Reset()
	return format.Task{Page: p, N: p.Entries, Bytes: bytes, Dict: s.dict, Scratch: s.arena, Filter: s.filter,
		Hits: s.hits, Limits: s.run.Src.Limits, NoVerify: s.run.Src.NoVerify}, nil
}

// losePage applies the damage policy to a page that cannot be decoded.
func (s *stream) losePage(p format.Page, first, pos int64, err error) error {
	if !s.run.Tolerates(err) || p.Rows < 0 || exceeds(s.group, first, p.Rows) {
		return err
	}
	to := first + p.Rows
	s.loseRows(pos, to, true, err)
	s.pass(to)
	return nil
}

// loseRows appends placeholders for the rows [from, to), which must follow vec's last entry, and reports the loss.
func (s *stream) loseRows(from, to int64, exact bool, err error) {
	s.fill(from, to)
	l := s.loss()
	l.Rows, l.Exact, l.Err = [2]int64{from, to}, exact, err
	s.run.Lose(l)
}

// loseRest handles a chunk whose next page cannot be found: its rows up to the end of the row group are lost.
// Placeholders are appended window by window, but the loss is reported once.
func (s *stream) loseRest(b int64) {
	to := min(b, s.group.Rows)
	l := s.loss()
	l.Rows, l.Exact, l.Err = [2]int64{s.end(), s.group.Rows}, plausible(s.group, s.end()), s.dead
	if !s.restReported() {
		s.run.Lose(l)
		s.dead, s.lostRest = errReported, s.end()
	}
	if s.group.Rows < 0 { // the other columns may show how many there are
		s.ended = true
		return
	}
	s.fill(s.end(), to)
}

func (s *stream) restReported() bool { return errors.Is(s.dead, errReported) }

func (s *stream) readEnd() int64 {
	if s.restReported() {
		return min(s.end(), s.lostRest)
	}
	return s.end()
}

func (s *stream) abandon(err error) { s.dead, s.ended = s.withColumn(err), false }

func (s *stream) padTo(_, to int64) {
	if s.end() < to {
		s.fill(s.end(), to)
	}
}

func (s *stream) lostFrom() int64 {
	if s.group.Rows < 0 || !s.restReported() {
		return math.MaxInt64
	}
	return s.lostRest
}

// fill appends placeholders for the lost rows [from, to), which must follow vec's last entry.
func (s *stream) fill(from, to int64) {
	s.lost = s.lost.Add(vec.Range{From: from, To: to})
	if s.run.Plan.Spec.Damaged == plan.NullCells {
		s.vec.ExtendNulls(int(to - from))
	} else {
		s.vec.ExtendUnset(int(to - from))
	}
}

// errReported marks a dead stream whose loss was reported.
var errReported = errors.New("reported")

// nullify makes the cells of rows, which vec holds, null.
func (s *stream) nullify(rows vec.Range) error {
	nulls, err := vec.New(s.vec.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer nulls.Release()
	nulls.ExtendNulls(int(rows.Len()))
	at := make([]int32, rows.Len())
	for i := range at {
		at[i] = int32(rows.From-s.row) + int32(i)
	}
	return s.vec.Overwrite(at, nulls)
}

// withColumn adds the column to an error that does not name one.
func (s *stream) withColumn(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || s.col.Name == "" || len(s.run.Plan.Columns) < 2 {
		return err
	}
	out := *e
	out.Path = fault.JoinPath("column "+s.col.Name, e.Path)
	return &out
}

// dropLost removes the rows of [a, b) that this column lost from sel.
func (s *stream) dropLost(sel *vec.Sel, a, b int64) *vec.Sel {
	return withoutRanges(s.suspect, withoutRanges(s.lost, sel, a, b), a, b)
}

// dropsLostRows reports whether this is a key by which row groups are merged: a row without it has no position.
func (s *stream) dropsLostRows() bool { return slices.Contains(s.run.Plan.Keys, s.column) }

func (s *stream) name() string { return s.col.Name }

func (s *stream) loss() region.Loss { return s.run.Plan.LossIn(s.group, s.column) }

// withoutRanges removes the rows of lost from sel, whose entries are the rows [a, b).
func withoutRanges(lost []vec.Range, sel *vec.Sel, a, b int64) *vec.Sel {
	for _, r := range lost {
		r = r.Intersect(vec.Range{From: a, To: b})
		if r.Len() == 0 {
			continue
		}
		n := int(b - a)
		bits := make([]byte, (n+7)/8)
		vec.SetBits(bits, 0, n, true)
		vec.SetBits(bits, int(r.From-a), int(r.To-a), false)
		sel = sel.And(vec.NewSel(bits, n))
	}
	return sel
}

// rest returns how many rows the column has beyond the declared ones. Only pages that do not declare their rows can
// have such; the format has counted the rows of the others.
func (s *stream) rest(ctx context.Context, at, rows int64) int64 {
	more := s.end() - rows
	for more <= 0 && s.dead == nil && !s.ended {
		pb, err := s.pager.Peek(ctx)
		if err != nil || pb.Page.Rows >= 0 {
			break
		}
		if err := s.page(ctx, pb, at, math.MaxInt64, nil); err != nil {
			break
		}
		more = s.end() - rows
	}
	return more
}

// wantOf returns want for the entries of a page with the rows [first, to), or nil if some of them lie outside the
// window.
func wantOf(want *vec.Sel, a, b, first, to int64, known bool) *vec.Sel {
	if !known || want.IsAll() || first < a || to > b {
		return nil
	}
	return want.Slice(int(first-a), int(to-a))
}

// worthKeeping reports whether page p should be cached because the scan wants at most an eighth of its rows. Scans with
// a budget keep nothing, and neither do traced ones, which report what they read.
func (s *stream) worthKeeping(p format.Page, first int64) bool {
	spec := &s.run.Plan.Spec
	if s.run.Src.Pages == nil || spec.Trace != nil || spec.Memory > 0 || p.Lost != nil || len(p.Spans) == 0 ||
		p.Entries != p.Rows {
		return false
	}
	var wanted int64
	for _, r := range s.pager.Rows {
		wanted += r.Intersect(vec.Range{From: first, To: first + p.Rows}).Len()
	}
	return 8*wanted <= p.Rows
}

// appendKept appends the rows [from, to) of page p, whose first row is first.
func (s *stream) appendKept(ctx context.Context, p format.Page, first, from, to int64) error {
	v, err := s.wholePage(ctx, p)
	if err == nil {
		err = s.vec.Append(v, int(from-first), int(to-first), nil)
	}
	if err != nil {
		return s.losePage(p, first, from, err)
	}
	if to == first+p.Rows { // otherwise the next window visits it again
		s.pass(to)
	}
	return nil
}

// maxExpected is the maximum number of rows for which memory is allocated just because a page declares them.
const maxExpected = 1 << 20

// wholePage returns the whole page, decoded now or earlier.
func (s *stream) wholePage(ctx context.Context, p format.Page) (*vec.Vector, error) {
	k := vec.CacheKey{Object: p.Spans[0].Object, Off: p.Spans[0].Off, Sub: p.Sub, Column: s.column}
	if v := s.run.Src.Pages.Get(k); v != nil {
		return v, nil
	}
	v, err := vec.New(s.col.Type, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	bytes, err := s.pager.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	s.arena.Reset()
	t := format.Task{Page: p, N: p.Entries, Bytes: bytes, Dict: s.dict, Scratch: s.arena, Limits: s.run.Src.Limits,
		NoVerify: s.run.Src.NoVerify}
	v.Expect(int(min(p.Rows, maxExpected)))
	if err := s.pager.Decode(ctx, &t, v); err != nil {
		return nil, err
	}
	if err := v.Plain(); err != nil { // it is shared, so its codes have to be expanded now
		return nil, err
	}
	s.run.Src.Pages.Put(k, v)
	return v, nil
}

// countPages makes Spec.Work count all pages of rows, among them those that are read: an index may have left only some
// of them.
func (w *Windows) countPages(ctx context.Context, rows vec.Range) {
	if w.run.Plan.Spec.Work == nil || w.run.Plan.Filter == nil {
		return
	}
	expect := func(p *fetch.Pager, col int) {
		p.Expect(ctx, rows, func() (format.Chunk, error) { return w.run.Src.Reader.Chunk(ctx, w.group, col, rows) })
	}
	for col, s := range w.byCol {
		expect(&s.pager, col)
	}
	for _, f := range w.byTop {
		for _, l := range f.leaves {
			expect(&l.pager, l.number)
		}
	}
}
