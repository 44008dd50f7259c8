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

// field is a nested top-level field: several columns that are decoded side by side and assembled, window by window. Its
// columns may have different page borders, and a child may have to be read from an earlier row on than is wanted,
// because its page begins there; each column keeps its own position.
type field struct {
	run    *Shared
	group  format.RowGroup
	plan   *plan.FieldPlan
	leaves []*leaf    // parents before their children
	arena  *vec.Arena // from the pool arenas, until close

	arr      arrow.Array // the assembled rows from row on; nil = none
	row      int64
	lost     []vec.Range // unordered
	dead     error       // why the rest of a column cannot be found
	reported bool        // dead was reported
	lostRest int64       // first row of the rest; see lostFrom
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
			if !r.Tolerates(err) {
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

// held returns the row after the last assembled one.
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
// vectors get too large. Nulls stand in for long runs of unselected rows, so that their pages are not read. It returns
// the row up to which rows were assembled, at most b.
func (f *field) cover(ctx context.Context, a, b int64, want *vec.Sel) (int64, error) {
	f.seek(a)
	if f.arr != nil { // the previous window was cut short by another column
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

// hullOf returns the smallest range of rows that contains all rows of [a, b) that want selects.
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

// minGap is the minimum number of consecutive unselected rows that are worth skipping.
const minGap = 64

// wanted returns the end of the run of wanted rows that begins at row at, and the next wanted row after it, or to if
// there is none.
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

// jump skips pages that lie wholly before row.
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

// due returns the column whose next page has to be decoded next so that all columns hold the rows [from, to); nil: no
// page has to be.
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

// assemble builds arr from the rows [from, to), which the columns hold, or from fewer.
func (f *field) assemble(from, to int64) (end int64, err error) {
	if f.group.Rows >= 0 {
		to = min(to, f.group.Rows)
	}
	if f.dead == nil {
		if end, err = f.align(from, to); err != nil {
			if !f.run.Tolerates(err) {
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
		if !f.run.Tolerates(err) {
			return 0, err
		}
		f.dead = err // the columns' entries do not fit together, and nothing shows which are right
		return f.loseRest(from, to), nil
	}
	return end, nil
}

// affordable returns up to which row the rows [from, end), with which all vectors begin, may be assembled at once.
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
				return end, nil // build reports the error
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

// tooLarge returns the error for a row that is too large to be assembled.
func (f *field) tooLarge(row, limit int64) error {
	return fault.Limitf(fault.Span{Object: f.group.Part}, "",
		"what is nested in row %d takes more than %d bytes, an eighth of the memory limit", row, limit)
}

// build builds arr from the rows [from, end), with which all vectors begin. Rows with a lost part are null.
func (f *field) build(from, end int64) error {
	var parts []arrow.Array
	defer func() { arrays.ReleaseAll(parts) }()
	for at := from; at < end; {
		to, lost := f.stretch(at, end)
		var arr arrow.Array
		var err error
		if lost {
			err = f.skip(to)
		} else if arr, err = f.assembleRows(at, to); err != nil && f.run.Tolerates(err) {
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
	return vec.Nulls(f.run.Plan.Alloc(), f.plan.Asm.Field().Type, int(n))
}

// stretch returns how far the rows from at on are either all lost or all intact.
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

// align drops what the columns hold before row from and returns the row up to which all of them reach, at most to.
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
	if end < from { // pages before the wanted rows were skipped, so this is not where the column ends
		return end, nil
	}
	return end, f.checkEnds(end, to)
}

// checkEnds returns an error if a column ends at row end and another has more rows.
func (f *field) checkEnds(end, to int64) error {
	if end >= to {
		return nil
	}
	for _, l := range f.leaves {
		for _, o := range f.leaves {
			if l.ended && l.end == end && o.end > end {
				return fault.Corruptf(fault.Span{Object: f.group.Part}, "",
					"column %s ends after %s, column %s has more", l.col.Name, fault.Count(end, "row"), o.col.Name)
			}
		}
	}
	return nil
}

// assembleRows assembles the rows [from, end), with which all vectors begin, and removes them from the vectors.
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
		if def := l.vec.Def(); def != nil { // Emit does not change these slices
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

// lose records that rows cannot be returned. stored is the column at fault; "": not known.
func (f *field) lose(rows vec.Range, stored string, err error) {
	f.lost = append(f.lost, rows)
	l := f.loss()
	if l.Rows, l.Exact, l.Err = [2]int64{rows.From, rows.To}, true, err; stored != l.Column {
		l.Stored = stored
	}
	f.run.Lose(l)
}

// loseRest handles a field one of whose columns continues at an unknown row: all rows of the field up to the end of the
// row group are lost.
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

// dropLost removes the lost rows of [a, b) from sel.
func (f *field) dropLost(sel *vec.Sel, a, b int64) *vec.Sel { return withoutRanges(f.lost, sel, a, b) }

func (f *field) name() string { return f.plan.Name }

func (f *field) loss() region.Loss {
	return region.Loss{Part: f.group.Part, Group: f.group.Index, Name: f.group.Name, Column: f.plan.Name}
}

// end returns the row up to which the field is known to reach.
func (f *field) end() int64 {
	if len(f.leaves) == 0 { // such a field has any number of rows
		return 0
	}
	end := f.held()
	for _, l := range f.leaves {
		end = max(end, l.end)
	}
	return end
}

// rest returns how many rows a column has beyond the declared ones.
func (f *field) rest(ctx context.Context, _, rows int64) int64 {
	for _, l := range f.leaves {
		if f.dead == nil && l.parent == nil && !l.ended {
			if pb, err := l.pager.Peek(ctx); err != nil || pb.Page.Rows < 0 {
				for l.needs(rows, rows+1) && l.page(ctx) == nil { // errors after the last row do not concern this scan
				}
			}
		}
		if l.end > rows {
			return l.end - rows
		}
	}
	return 0
}

// dropsLostRows reports whether lost rows of the field cannot be represented as null.
func (f *field) dropsLostRows() bool { return f.plan.Asm.Field().Type.ID() == arrow.DENSE_UNION }

// withColumn adds the field to an error that does not name one, and the row group's part to an error without a place.
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

// take returns those of the field's n rows from row a on that sel selects, in the shape of output path.
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
