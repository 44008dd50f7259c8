package window

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/scan/internal/fetch"
	"stoa/vec"
)

// leaf is one physical column of a field. Its vector holds the entries of the rows from row on; rows before end are
// complete.
type leaf struct {
	field    *field
	col      format.Column
	number   int // physical
	parent   *leaf
	children []*leaf
	chunk    format.Chunk
	pager    fetch.Pager
	dict     *vec.Vector
	vec      *vec.Vector

	row, end int64
	starts   int64   // for repeated columns: rows that begin in vec
	perRow   float64 // recent average of entries per row; 0: not known
	growing  int64   // bytes of the pages since end last moved, that is, of an incomplete row
	ended    bool    // there are no rows after end
	lost     []vec.Range
	dead     error // why the rows from end on cannot be found
	torn     bool  // entries at the start of the next page that continue a row belong to a row that was skipped
}

// open finds the pages of the wanted rows. A parent is opened where its children's first pages begin.
func (l *leaf) open(ctx context.Context, rows vec.Ranges, ahead int64) error {
	r := l.field.run
	var err error
	if l.vec, err = vec.New(l.col.Type, r.Plan.Alloc()); err != nil {
		return err
	}
	if l.col.MaxRep > 0 { // the page in which the following row begins may start with entries of the last one
		rows = slices.Clone(rows)
		for i := range rows {
			if rows[i].To < math.MaxInt64 {
				rows[i].To++
			}
		}
	}
	hull := vec.Range{From: rows[0].From, To: rows[len(rows)-1].To}
	for _, c := range l.children {
		hull.To = math.MaxInt64 // where their last page ends is not known
		pb, err := c.pager.Peek(ctx)
		if err == nil {
			hull.From = min(hull.From, max(pb.Page.First, 0))
		}
	}
	if len(l.children) > 0 {
		rows = vec.Ranges{hull}
	}
	if l.chunk, err = r.Src.Reader.Chunk(ctx, l.field.group, l.number, hull); err != nil {
		return err
	}
	l.pager = fetch.Pager{Src: r.Src, Trace: r.Plan.Spec.Trace, Work: r.Plan.Spec.Work,
		Chunk: l.chunk, Rows: rows, Ahead: ahead}
	r.Plan.Spec.Trace.NoteDict(l.field.group, l.number, l.chunk)
	l.dict, err = r.Src.Dicts.Get(ctx, r.Src, l.col, l.chunk)
	return err
}

// pass records that the entries before row are no longer in vec.
func (l *leaf) pass(row int64) {
	l.starts -= row - l.row
	l.row = row
}

// restart empties vec; the next page begins at row.
func (l *leaf) restart(row int64) {
	l.vec.Reset()
	l.row, l.end, l.starts, l.torn, l.growing = row, row, 0, row > 0, 0
}

// entries returns how many entries of vec belong to rows before row, which is at most end.
func (l *leaf) entries(row int64) (int, error) {
	switch {
	case row <= l.row:
		return 0, nil
	case l.parent != nil:
		from, err := l.parent.entries(l.row)
		if err != nil {
			return 0, err
		}
		to, err := l.parent.entries(row)
		if err != nil {
			return 0, err
		}
		n, err := nest.SumLengths(vec.Fixed[int32](l.parent.vec, 0)[from:to])
		if err == nil && n > int64(l.vec.Len()) {
			err = fault.Corruptf(fault.Span{Object: l.field.group.Part}, "", "%d entries, its parent says %d",
				l.vec.Len(), n)
		}
		return int(n), err
	case l.col.MaxRep > 0:
		return nest.RowStart(l.vec.Rep(), int(row-l.row)), nil
	}
	return int(row - l.row), nil
}

// jump skips pages that lie wholly before row. Pages that do not declare their rows are read.
func (l *leaf) jump(ctx context.Context, row int64) {
	if l.vec == nil || row <= l.end {
		return
	}
	for {
		pb, err := l.pager.Peek(ctx)
		if err != nil || pb.Page.First < 0 || pb.Page.Rows < 0 || pb.Page.First+pb.Page.Rows > row {
			return
		}
		l.restart(pb.Page.First + pb.Page.Rows)
		l.pager.Drop()
	}
}

// needs reports whether another page has to be decoded so that the rows before to are complete. Once row from is
// complete, it returns false if the vector gets too large.
func (l *leaf) needs(from, to int64) bool {
	return l.end < to && !l.ended && l.dead == nil && (l.end <= from || l.vec.Size() < l.field.run.Plan.Largest)
}

// due returns l, or the ancestor whose lengths have to be decoded before l's next page can be.
func (l *leaf) due(ctx context.Context) *leaf {
	if l.parent == nil {
		return l
	}
	pb, err := l.pager.Peek(ctx)
	if err != nil || pb.Page.Lost != nil || pb.Page.Rows < 0 {
		return l
	}
	if p := l.parent; p.end < max(l.begun(), pb.Page.First)+pb.Page.Rows && !p.ended && p.dead == nil {
		return p.due(ctx)
	}
	return l
}

// page decodes the next page. Damage loses the rows of the page if they are known, otherwise all rows from there on.
func (l *leaf) page(ctx context.Context) error {
	pb, err := l.pager.Peek(ctx)
	if err == io.EOF {
		l.ended = true
		l.settle()
		return nil
	}
	complete, size, at := l.end, l.size(), int64(0)
	if err == nil {
		at, err = l.place(pb.Page)
	}
	if err == nil {
		before := l.vec.Len()
		t, failed := l.task(ctx, pb.Page, at)
		if failed == nil {
			failed = l.pager.Decode(ctx, &t, l.vec)
		}
		if err = l.decoded(ctx, pb.Page, at, before, failed); err == nil {
			l.pager.Drop()
			l.settle()
			return l.grow(complete, size)
		}
	}
	if l.field.run.Tolerates(err) {
		l.dead = err // the complete rows are still good
		return nil
	}
	return err
}

// grow refuses a row that is too large. complete and size are end and size before the page was decoded.
func (l *leaf) grow(complete, size int64) error {
	if l.growing += l.size() - size; l.end > complete {
		l.growing = 0
	} else if limit := l.field.run.maxRow(); l.growing > limit {
		return l.field.tooLarge(complete, limit)
	}
	return nil
}

// expect allocates the vector for the rows before to, going by the next page or else by earlier rows. The last page
// extends past these rows.
func (l *leaf) expect(ctx context.Context, to int64) {
	pb, err := l.pager.Peek(ctx)
	if err != nil {
		return // decoding the page reports it
	}
	p, perRow := pb.Page, l.perRow
	if p.Rows > 0 {
		perRow = float64(p.Entries) / float64(p.Rows)
	}
	if p.Entries > 0 && perRow > 0 {
		l.vec.Expect(int(min(perRow*float64(to-l.row)+float64(p.Entries), maxExpected)))
	}
}

// size returns the bytes of the decoded entries with their levels.
func (l *leaf) size() int64 {
	n := l.vec.Size()
	if l.col.Has&format.Levels != 0 {
		n += 2 * int64(l.vec.Len())
	}
	return n
}

// weight returns roughly how many bytes the first n entries take when dictionary codes are expanded. A result above
// limit is not exact.
func (l *leaf) weight(n int, limit int64) int64 {
	all := int64(l.vec.Len())
	if n == 0 || all == 0 {
		return 0
	}
	if l.vec.Fit(n, limit) < n {
		return limit + 1
	}
	return int64(float64(l.size()) * float64(n) / float64(all))
}

// settle updates end. The last row of a repeated column is complete when the next one begins or the chunk ends.
func (l *leaf) settle() {
	if l.col.MaxRep == 0 {
		return // end moves with the pages
	}
	if l.end = l.row + l.starts; l.starts > 0 {
		l.perRow = float64(l.vec.Len()) / float64(l.starts)
	}
	if !l.ended && l.starts > 0 {
		l.end--
	}
}

// begun returns the row with which the next page begins.
func (l *leaf) begun() int64 {
	if l.col.MaxRep == 0 || l.ended {
		return l.end
	}
	return l.row + l.starts
}

// place returns the row with which p, the next page, begins.
func (l *leaf) place(p format.Page) (int64, error) {
	at := l.begun()
	if p.First >= 0 && p.First != at {
		if p.First < at {
			return 0, fault.Corruptf(fetch.PlaceOf(p), "", "the page begins at row %d, row %d is next", p.First, at)
		}
		at = p.First // unwanted pages were skipped
		l.restart(at)
	}
	return at, nil
}

// decoded accounts for the entries that page p, which begins at row at, added after the first before ones. If there are
// none, err says why.
func (l *leaf) decoded(ctx context.Context, p format.Page, at int64, before int, err error) error {
	if err == nil {
		err = l.leveled()
	}
	switch {
	case err == nil && l.col.MaxRep > 0:
		return l.joinRow(before, p)
	case err == nil:
		l.end = at + l.rowsOf(p, before)
		return nil
	}
	l.vec.Truncate(before)
	if !l.field.run.Tolerates(err) {
		return err
	}
	if p.Rows < 0 {
		if p.Rows = l.rowsByRest(ctx, p, at); p.Rows < 0 {
			return err
		}
	}
	if exceeds(l.field.group, at, p.Rows) {
		return err
	}
	return l.losePage(p, at, err)
}

// leveled checks that the decoder returned a level for each entry.
func (l *leaf) leveled() error {
	if l.col.Has&format.Levels != 0 && len(l.vec.Def()) != l.vec.Len() {
		return fault.Bugf("column %s: %d levels for %d entries", l.col.Name, len(l.vec.Def()), l.vec.Len())
	}
	return nil
}

// rowsOf returns how many rows a page without repetition levels has; its first entry is before.
func (l *leaf) rowsOf(p format.Page, before int) int64 {
	if l.parent != nil {
		return p.Rows
	}
	return int64(l.vec.Len() - before)
}

// rowsByRest returns how many rows begin in a page that cannot be decoded and does not declare them: the rows of the
// row group, minus those before the page, minus those that begin in the pages after it, which are all read for this. It
// returns -1 if the rows cannot be counted.
func (l *leaf) rowsByRest(ctx context.Context, bad format.Page, at int64) int64 {
	r, g := l.field.run, l.field.group
	if g.Rows < 0 || l.parent != nil || l.col.MaxRep == 0 {
		return -1
	}
	rest := &leaf{field: &field{run: r, group: g, plan: l.field.plan, arena: &vec.Arena{}}, col: l.col,
		number: l.number}
	defer func() {
		rest.pager.Close()
		if rest.vec != nil {
			rest.vec.Release()
		}
	}()
	if rest.open(ctx, vec.Ranges{{From: 0, To: math.MaxInt64}}, r.Plan.Spec.Ahead) != nil {
		return -1
	}
	after, found := int64(0), false
	for {
		pb, err := rest.pager.Peek(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return -1
		}
		if found {
			rest.vec.Reset()
			if rest.decode(ctx, pb.Page, 0) != nil {
				return -1
			}
			after += int64(nest.CountRows(rest.vec.Rep()))
		}
		found = found || pb.Page.Ordinal == bad.Ordinal && slices.Equal(pb.Page.Spans, bad.Spans)
		rest.pager.Drop()
	}
	if n := g.Rows - at - after; found && n >= 0 {
		return n
	}
	return -1
}

// joinRow handles those entries at the start of a page that continue the previous row.
func (l *leaf) joinRow(before int, p format.Page) error {
	rep := l.vec.Rep()[before:]
	k := nest.RowStart(rep, 0)
	switch {
	case k == 0:
	case l.torn: // that row is not wanted, or lost
		if err := l.vec.Cut(before, before+k); err != nil {
			return err
		}
		rep = l.vec.Rep()[before:]
		k = 0
	case before == 0 && l.row == 0:
		return fault.Corruptf(fetch.PlaceOf(p), "", "the first entry of the column has repetition level %d", rep[0])
	}
	if k < len(rep) {
		l.torn = false
	}
	l.starts += int64(nest.CountRows(rep))
	return nil
}

// decode decodes page p, which begins at row at. Unlike page, it loses nothing on an error.
func (l *leaf) decode(ctx context.Context, p format.Page, at int64) error {
	t, err := l.task(ctx, p, at)
	if err == nil {
		err = l.pager.Decode(ctx, &t, l.vec)
	}
	if err == nil {
		err = l.leveled()
	}
	return err
}

// task returns the task of decoding p, which begins at row at, once its bytes have arrived.
func (l *leaf) task(ctx context.Context, p format.Page, at int64) (t format.Task, err error) {
	if p.Lost != nil {
		return t, p.Lost
	}
	n := p.Entries
	if l.parent != nil {
		if n, err = l.count(p, at); err != nil {
			return t, err
		}
	}
	bytes, err := l.pager.Bytes(ctx)
	if err != nil {
		return t, err
	}
	l.field.run.Plan.Spec.Trace.Note(l.field.group, l.number, p, "")
	arena := l.field.arena
	arena.Reset()
	return format.Task{Page: p, N: n, Bytes: bytes, Dict: l.dict, Scratch: arena, Limits: l.field.run.Src.Limits,
		NoVerify: l.field.run.Src.NoVerify}, nil
}

// count returns how many entries a child's page has: the sum of the parent's lengths for its rows, which due has had
// decoded.
func (l *leaf) count(p format.Page, at int64) (int64, error) {
	if p.Rows < 0 {
		return 0, fault.Bugf("column %s: a page of a column with a parent does not say its rows", l.col.Name)
	}
	to := at + p.Rows
	if l.parent.end < to && l.parent.dead != nil {
		return 0, l.parent.dead
	}
	if l.parent.end < to {
		return 0, fault.Corruptf(fetch.PlaceOf(p), "", "the page reaches to row %d, its parent %s ends at %d", to,
			l.parent.col.Name, l.parent.end)
	}
	if l.parent.row > at {
		return 0, fault.Bugf("column %s: the page begins at row %d, its parent is at %d", l.col.Name, at, l.parent.row)
	}
	for _, r := range l.parent.lost {
		if r.Intersect(vec.Range{From: at, To: to}).Len() > 0 {
			return 0, fault.Corruptf(fetch.PlaceOf(p), "", "the lengths of %s for these rows are lost",
				l.parent.col.Name)
		}
	}
	i, err := l.parent.entries(at)
	if err != nil {
		return 0, err
	}
	j, err := l.parent.entries(to)
	if err != nil {
		return 0, err
	}
	n, err := nest.SumLengths(vec.Fixed[int32](l.parent.vec, 0)[i:j])
	if err == nil && p.Entries >= 0 && p.Entries != n {
		err = fault.Corruptf(fetch.PlaceOf(p), "", "%d entries, the lengths of %s add up to %d", p.Entries,
			l.parent.col.Name, n)
	}
	return n, err
}

// losePage appends placeholders for the rows of a page, from row at on.
func (l *leaf) losePage(p format.Page, at int64, err error) error {
	rows := vec.Range{From: at, To: at + p.Rows}
	n := int(p.Rows)
	if l.parent != nil {
		n = 0
		if i, e := l.parent.entries(at); e == nil && l.parent.end >= rows.To && l.parent.row <= at {
			if j, e := l.parent.entries(rows.To); e == nil {
				sum, _ := nest.SumLengths(vec.Fixed[int32](l.parent.vec, 0)[i:j])
				if sum > MaxLost { // lengths that no page confirms
					return err
				}
				n = int(sum)
			}
		}
	}
	switch {
	case l.col.Has&format.Levels != 0:
		l.vec.ExtendUnset(n)
		l.vec.ExtendLevels(n) // zeros, so each entry is a row
	default:
		l.vec.ExtendUnset(n)
	}
	if l.col.MaxRep > 0 { // the previous row may have continued in this page, and this page's last row in the next
		if !p.Starts {
			rows.From = max(rows.From-1, l.row)
		}
		l.starts += int64(n)
		l.torn = true
	} else {
		l.end = rows.To
	}
	l.lost = append(l.lost, rows)
	l.field.lose(rows, l.col.Name, l.withColumn(err))
	return nil
}

// withColumn adds the column to an error.
func (l *leaf) withColumn(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || l.col.Name == "" {
		return err
	}
	out := *e
	out.Path = fault.JoinPath("column "+l.col.Name, e.Path)
	return &out
}
