package window

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/scan/internal/arrays"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/vec"
)

// field is a nested top-level field: several columns that are decoded side by side and assembled, window by window.
// Its pieces may have different page borders, and a child may have to be read from an earlier row on than is wanted,
// because its page begins there; each keeps the place of its own.
type field struct {
	run    *Shared
	group  format.RowGroup
	plan   *plan.FieldPlan
	leaves []*leaf    // parents before their children
	arena  *vec.Arena // of arenas, until close

	arr      arrow.Array // the rows from row on, assembled; nil = none
	row      int64
	lost     []vec.Range // in no order
	dead     error       // the rest of a column cannot be found
	reported bool        // which was reported
	lostRest int64       // from this row on; see lostFrom
}

func (r *Shared) openField(ctx context.Context, g format.RowGroup, p *plan.FieldPlan, rows vec.Ranges,
	ahead int64) (*field,
	error) {
	f := &field{run: r, group: g, plan: p, row: rows[0].From, arena: arenas.Get().(*vec.Arena)}
	byCol := map[int]*leaf{}
	for _, c := range p.Cols {
		l := &leaf{field: f, col: r.Plan.Columns[c], number: c, parent: byCol[r.Plan.Columns[c].Parent]}
		if l.parent != nil {
			l.parent.children = append(l.parent.children, l)
		}
		byCol[c] = l
		f.leaves = append(f.leaves, l)
	}
	for _, l := range slices.Backward(f.leaves) {
		if err := l.open(ctx, rows, ahead); err != nil {
			if !r.Excused(err) {
				f.Close()
				return nil, l.withColumn(err)
			}
			f.dead = l.withColumn(err)
			break
		}
	}
	return f, nil
}

func (f *field) Close() {
	f.drop()
	for _, l := range f.leaves {
		l.pager.Close()
		if l.vec != nil {
			l.vec.Release()
		}
	}
	if f.arena != nil {
		arenas.Put(f.arena)
		f.arena = nil
	}
}

func (f *field) drop() {
	if f.arr != nil {
		f.arr.Release()
		f.arr = nil
	}
}

// held is the row after the last one that is assembled.
func (f *field) held() int64 {
	if f.arr == nil {
		return f.row
	}
	return f.row + int64(f.arr.Len())
}

// seek drops the assembled rows before a.
func (f *field) seek(a int64) {
	if f.arr == nil || a <= f.row {
		return
	}
	if a >= f.held() {
		f.drop()
		f.row = a
		return
	}
	rest := array.NewSlice(f.arr, a-f.row, int64(f.arr.Len()))
	f.drop()
	f.arr, f.row = rest, a
}

// cover assembles the rows of [a, b) from the first to the last that want selects; fewer at the chunk's end and when
// vectors get too large. Nulls replace long runs of unselected rows, so that their pages are not read. It returns the
// row up to which rows were assembled, at most b.
func (f *field) cover(ctx context.Context, a, b int64, want *vec.Sel) (int64, error) {
	f.seek(a)
	if f.arr != nil { // the window before was cut short by another column
		return min(f.held(), b), nil
	}
	from, to := hullOf(want, a, b)
	f.row = from
	if from == to {
		return b, nil
	}
	var parts []arrow.Array
	defer func() { arrays.ReleaseAll(parts) }()
	end := from
	for at := from; at < to; {
		stop, next := wanted(want, a, at, to)
		f.jump(ctx, at)
		for l := f.due(ctx, at, stop); l != nil; l = f.due(ctx, at, stop) {
			l.expect(ctx, stop)
			if err := l.page(ctx); err != nil {
				return 0, f.withColumn(l.withColumn(err))
			}
		}
		var err error
		if end, err = f.assemble(at, stop); err != nil {
			return 0, f.withColumn(err)
		}
		if f.arr != nil {
			parts, f.arr = append(parts, f.arr), nil
		}
		if end < stop {
			break
		}
		if next > stop {
			parts = append(parts, f.nulls(next-stop))
		}
		at, end = next, next
	}
	f.row = from
	if len(parts) > 0 {
		var err error
		if f.arr, err = arrays.Concat(parts, f.run.Plan.Alloc()); err != nil {
			return 0, f.withColumn(err)
		}
	}
	if end == to {
		return b, nil
	}
	return end, nil
}

// hullOf is the smallest range of rows that holds all that want selects in [a, b).
func hullOf(want *vec.Sel, a, b int64) (from, to int64) {
	if want.IsAll() {
		return a, b
	}
	i, j := 0, int(b-a)
	for i < j && !want.Has(i) {
		i++
	}
	for j > i && !want.Has(j-1) {
		j--
	}
	return a + int64(i), a + int64(j)
}

// minGap is how many consecutive unselected rows are worth skipping.
const minGap = 64

// wanted is how far the rows from at on, which is wanted, go without a gap, and the first that is wanted after
// it; to if there is none.
func wanted(want *vec.Sel, a, at, to int64) (stop, next int64) {
	if want.IsAll() {
		return to, to
	}
	last := at
	for row := at + 1; row < to; row++ {
		if !want.Has(int(row - a)) {
			continue
		}
		if row-last > minGap {
			return last + 1, row
		}
		last = row
	}
	return to, to
}

// jump passes over pages that lie wholly before row.
func (f *field) jump(ctx context.Context, row int64) {
	if f.dead != nil {
		return
	}
	for _, l := range slices.Backward(f.leaves) {
		start := row
		for _, c := range l.children {
			start = min(start, c.row)
		}
		l.jump(ctx, start)
	}
}

// due is the column of which the next page has to be decoded so that all hold the rows [from, to); nil: of none.
func (f *field) due(ctx context.Context, from, to int64) *leaf {
	if f.dead != nil {
		return nil
	}
	if f.group.Rows >= 0 {
		to = min(to, f.group.Rows)
	}
	for _, l := range f.leaves {
		if l.needs(from, to) {
			return l.due(ctx)
		}
		if l.dead != nil && l.end <= from {
			return nil
		}
	}
	return nil
}

// assemble makes arr of the rows [from, to), which the columns hold, or of fewer.
func (f *field) assemble(from, to int64) (end int64, err error) {
	if f.group.Rows >= 0 {
		to = min(to, f.group.Rows)
	}
	if f.dead == nil {
		if end, err = f.align(from, to); err != nil {
			if !f.run.Excused(err) {
				return 0, err
			}
			f.dead = err
		}
	}
	if f.dead != nil {
		return f.loseRest(from, to), nil
	}
	if end, err = f.affordable(from, end); err != nil {
		return 0, err
	}
	if end <= from {
		return from, nil
	}
	if err := f.build(from, end); err != nil {
		if !f.run.Excused(err) {
			return 0, err
		}
		f.dead = err // the columns' entries do not fit each other, and no page says which are right
		return f.loseRest(from, to), nil
	}
	return end, nil
}

// affordable is how many of the rows [from, end), with which all vectors begin, may be assembled at once.
func (f *field) affordable(from, end int64) (int64, error) {
	limit, all := f.run.maxRow(), int64(0)
	for _, l := range f.leaves {
		all += l.weight(l.vec.Len(), limit)
	}
	for ; all > limit && end > from; end = from + (end-from)/2 {
		n := int64(0)
		for _, l := range f.leaves {
			k, err := l.entries(end)
			if err != nil {
				return end, nil // build reports it
			}
			n += l.weight(k, limit)
		}
		if n <= limit {
			break
		}
		if end == from+1 {
			return 0, f.tooLarge(from, limit)
		}
	}
	return end, nil
}

// tooLarge refuses a row that is too large to be assembled.
func (f *field) tooLarge(row, limit int64) error {
	return fault.Limitf(fault.Span{Object: f.group.Part}, "",
		"what is nested in row %d takes more than %d bytes, an eighth of the memory limit", row, limit)
}

// build makes arr of the rows [from, end), with which all vectors begin. Rows of which a part is lost are null.
func (f *field) build(from, end int64) error {
	var parts []arrow.Array
	defer func() { arrays.ReleaseAll(parts) }()
	for at := from; at < end; {
		to, lost := f.stretch(at, end)
		var arr arrow.Array
		var err error
		if lost {
			err = f.skip(to)
		} else if arr, err = f.assembleRows(at, to); err != nil && f.run.Excused(err) {
			f.lose(vec.Range{From: at, To: to}, "", f.withColumn(err))
			err = f.skip(to)
		}
		if err != nil {
			return err
		}
		if arr == nil {
			arr = f.nulls(to - at)
		}
		parts = append(parts, arr)
		at = to
	}
	whole, err := arrays.Concat(parts, f.run.Plan.Alloc())
	if err != nil {
		return err
	}
	f.arr, f.row = whole, from
	return nil
}

func (f *field) nulls(n int64) arrow.Array {
	return vec.Nulls(vec.Zeroed{Allocator: f.run.Plan.Alloc()}, f.plan.Asm.Field().Type, int(n))
}

// stretch is how far the rows from at on are all lost, or all not.
func (f *field) stretch(at, end int64) (to int64, lost bool) {
	to = end
	for _, r := range f.lost {
		switch {
		case at >= r.From && at < r.To:
			return min(end, r.To), true
		case r.From > at:
			to = min(to, r.From)
		}
	}
	return to, false
}

// skip drops the entries of the rows before to.
func (f *field) skip(to int64) error {
	for _, l := range slices.Backward(f.leaves) {
		n, err := l.entries(to)
		if err != nil {
			return l.withColumn(err)
		}
		l.vec.Skip(n)
		l.pass(max(to, l.row))
	}
	return nil
}

// align drops what the columns hold before row from and says how far they go, to at most.
func (f *field) align(from, to int64) (int64, error) {
	end := to
	for _, l := range f.leaves {
		if end = min(end, l.end); l.dead != nil && l.end <= from {
			return 0, l.withColumn(l.dead)
		}
	}
	for _, l := range slices.Backward(f.leaves) {
		if l.row > from && end > from {
			return 0, l.withColumn(fault.Corruptf(fault.Span{Object: f.group.Part}, "",
				"the column has no page for row %d", from))
		}
		if l.row < from && l.end >= from {
			n, err := l.entries(from)
			if err != nil {
				return 0, l.withColumn(err)
			}
			l.vec.Skip(n)
			l.pass(from)
		}
	}
	if end < from { // pages before the wanted rows were passed over, so this is not where the column ends
		return end, nil
	}
	return end, f.checkEnds(end, to)
}

// checkEnds: where one column ends, the others must, too.
func (f *field) checkEnds(end, to int64) error {
	if end >= to {
		return nil
	}
	for _, l := range f.leaves {
		for _, o := range f.leaves {
			if l.ended && l.end == end && o.end > end {
				return fault.Corruptf(fault.Span{Object: f.group.Part}, "",
					"column %s ends after %d rows, column %s has more", l.col.Name, end, o.col.Name)
			}
		}
	}
	return nil
}

// assembleRows assembles the rows [from, end), with which all vectors begin, and takes them out of the vectors.
func (f *field) assembleRows(from, end int64) (arrow.Array, error) {
	counts := make([]int, len(f.leaves))
	for i, l := range f.leaves {
		n, err := l.entries(end)
		if err != nil {
			return nil, l.withColumn(err)
		}
		counts[i] = n
	}
	in := make([]nest.Input, len(f.leaves))
	defer func() {
		for _, x := range in {
			if x.Array != nil {
				x.Array.Release()
			}
		}
	}()
	for i, l := range f.leaves {
		n := counts[i]
		if def := l.vec.Def(); def != nil { // Emit leaves these slices alone
			in[i].Def, in[i].Rep = def[:n:n], l.vec.Rep()[:n:n]
		}
		var err error
		if in[i].Array, err = l.vec.Emit(n); err != nil {
			return nil, l.withColumn(err)
		}
		l.pass(end)
	}
	return f.plan.Asm.Assemble(in, int(end-from), f.run.Plan.Alloc())
}

// lose notes that rows cannot be shown; stored is the column that is to blame, "": that is not known.
func (f *field) lose(rows vec.Range, stored string, err error) {
	f.lost = append(f.lost, rows)
	l := f.loss()
	if l.Rows, l.Exact, l.Err = [2]int64{rows.From, rows.To}, true, err; stored != l.Column {
		l.Stored = stored
	}
	f.run.Lose(l)
}

// loseRest is for a field of which a column continues at an unknown row: its rows are lost as far as the row group
// goes.
func (f *field) loseRest(from, to int64) int64 {
	if f.group.Rows < 0 {
		if !f.reported {
			f.lostRest = from
			l := f.loss()
			l.Rows, l.Err = [2]int64{from, -1}, f.dead
			f.run.Lose(l)
		}
		f.reported = true
		return from
	}
	if !f.reported {
		f.lostRest = from
		f.lost = append(f.lost, vec.Range{From: from, To: f.group.Rows})
		l := f.loss()
		l.Rows, l.Exact, l.Err = [2]int64{from, f.group.Rows}, plausible(f.group, from), f.dead
		f.run.Lose(l)
	}
	f.reported = true
	f.arr, f.row = f.nulls(to-from), from
	return to
}

func (f *field) lostFrom() int64 {
	if f.group.Rows < 0 || !f.reported {
		return math.MaxInt64
	}
	return f.lostRest
}

func (f *field) restReported() bool { return f.reported }

func (f *field) readEnd() int64 {
	if f.reported {
		return min(f.end(), f.lostRest)
	}
	return f.end()
}

func (f *field) abandon(err error) { f.dead = f.withColumn(err) }

func (f *field) padTo(a, to int64) {
	f.drop()
	if f.row = a; a < to {
		f.arr = f.nulls(to - a)
		f.lost = append(f.lost, vec.Range{From: a, To: to})
	}
}

// dropLost takes the rows of [a, b) that are lost out of sel.
func (f *field) dropLost(sel *vec.Sel, a, b int64) *vec.Sel { return withoutRanges(f.lost, sel, a, b) }

func (f *field) name() string { return f.plan.Name }

func (f *field) loss() region.Loss {
	return region.Loss{Part: f.group.Part, Group: f.group.Index, Name: f.group.Name, Column: f.plan.Name}
}

// end is the row up to which the field is known to go.
func (f *field) end() int64 {
	if len(f.leaves) == 0 { // it has as many rows as one asks for
		return 0
	}
	end := f.held()
	for _, l := range f.leaves {
		end = max(end, l.end)
	}
	return end
}

// rest is how many rows a column has after the declared ones.
func (f *field) rest(ctx context.Context, _, rows int64) int64 {
	for _, l := range f.leaves {
		if f.dead == nil && l.parent == nil && !l.ended {
			if pb, err := l.pager.Peek(ctx); err != nil || pb.Page.Rows < 0 {
				for l.needs(rows, rows+1) && l.page(ctx) == nil { // trouble after the last row is not this scan's
				}
			}
		}
		if l.end > rows {
			return l.end - rows
		}
	}
	return 0
}

// dropsLostRows: the rows that are lost cannot be shown as null.
func (f *field) dropsLostRows() bool { return f.plan.Asm.Field().Type.ID() == arrow.DENSE_UNION }

// withColumn adds the field to an error that does not name it, and the row group's part to one without a place.
func (f *field) withColumn(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	if out.At.Object == "" {
		out.At.Object = f.group.Part
	}
	if out.Path == "" {
		out.Path = "column " + f.plan.Name
	}
	return &out
}

// take is the field's rows, in the shape of output path, that sel selects among the n rows from row a on.
func (f *field) take(a int64, n int, sel *vec.Sel, path []string, mem memory.Allocator) (arrow.Array, error) {
	from, to := int(f.row-a), min(int(f.held()-a), n)
	whole := f.arr
	if to-from < whole.Len() {
		whole = array.NewSlice(f.arr, 0, int64(to-from))
	} else {
		whole.Retain()
	}
	defer whole.Release()
	c := arrays.Child(whole, path)
	defer c.Release()
	return arrays.Take(c, sel.Slice(from, to), mem)
}
