package table

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/pred"
	"stoa/vec"
)

// pageRows is the maximum number of rows of a page without stored bytes.
const pageRows = 128 << 10

// chunk returns a column of a DiskRowSet. If the rowset has no block for it, the rowset is older than the column, and
// its rows have the read default.
func (t *Table) chunk(ctx context.Context, s *RowSet, col int, rows vec.Range) (format.Chunk, error) {
	c := &t.Stored.Columns[col]
	b, ok := s.Block(c.ID)
	if !ok {
		return t.constant(s, col, rows)
	}
	x, err := t.columnOf(ctx, s, col, b, rows)
	if err == nil && t.mayFill(s, col) {
		err = x.checkDict(ctx)
	}
	switch {
	case err == nil:
		return x, nil
	case Damaged(err) && t.mayFill(s, col):
		return &filledChunk{t, s, col, err, rows}, nil
	}
	return nil, err
}

// columnOf opens the block b as column col of the rowset s, and checks it against the schema and the other columns.
func (t *Table) columnOf(ctx context.Context, s *RowSet, col int, b meta.BlockRef, rows vec.Range) (*columnChunk,
	error) {
	if t.Recovered != nil {
		return t.recoverColumn(ctx, s, col, b, rows)
	}
	type file struct {
		*cfile.Reader
		chunk format.Chunk
	}
	open := t.opener(s, b)
	r, places, err := opened(ctx, t, s, b,
		func(ctx context.Context, src Source, at fault.Span, o format.OpenOptions) (f file, err error) {
			if f.Reader, err = open(ctx, src, at, o); err == nil {
				f.chunk, err = f.Chunk(ctx, rows)
			}
			return f, err
		})
	if err != nil {
		return nil, err
	}
	return t.newColumnChunk(r.chunk, s, col, b, places, rows), nil
}

// columnChunk is a stored column.
type columnChunk struct {
	format.Chunk // decodes the pages of all places, which have the same bytes
	t            *Table
	column       *meta.Column
	set          *RowSet
	col          int
	block        meta.BlockRef
	places       []fs.Place // places of the block that is read and of its twins

	pages format.Chunk // lists the pages; differs from Chunk after a damaged index was found
	gap   *filledChunk // the rows, before the next of pages, that no index places
	rows  vec.Range    // rows whose pages have not been returned yet

	listed int // place whose index pages is
}

func (t *Table) newColumnChunk(inner format.Chunk, s *RowSet, col int, b meta.BlockRef, places []fs.Place,
	rows vec.Range) *columnChunk {
	return &columnChunk{Chunk: inner, t: t, column: &t.Stored.Columns[col], set: s, col: col, block: b,
		places: places, pages: inner, rows: rows}
}

// checkDict returns why the column's dictionary cannot be read, neither here nor in a twin: then the cells of no page
// can be, and all are searched for elsewhere.
func (x *columnChunk) checkDict(ctx context.Context) error {
	page, ok := x.Dict()
	switch {
	case !ok:
		return nil
	case page.Lost != nil:
		return page.Lost
	}
	t := format.Task{Page: page, N: page.Entries, Scratch: &vec.Arena{}, Limits: x.t.Limits, NoVerify: x.t.NoVerify}
	for _, at := range page.Spans {
		if at.Len > x.t.Limits.Page {
			return nil // refused, with the limit, where the dictionary is used
		}
		b := make([]byte, at.Len)
		if err := format.ReadFull(ctx, Source{x.t.Tree, at.Object, at.End()}, at, "dictionary", b); err != nil {
			return err
		}
		t.Bytes = append(t.Bytes, b)
	}
	v, err := vec.New(x.t.Cols[x.col].Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer v.Release()
	return x.Decode(&t, v)
}

// Next returns the next page. If the index is damaged, it continues with the index of a twin; the rows that no index
// places may be found elsewhere.
func (x *columnChunk) Next(ctx context.Context) (format.Page, error) {
	if x.gap != nil {
		if p, err := x.gap.Next(ctx); err == nil {
			p.Own, x.rows.From = filledPage{x.gap.why}, p.First+p.Rows
			return p, nil
		}
		x.gap = nil
	}
	p, err := x.pages.Next(ctx)
	if damagedPage(p, err) {
		p, err = x.nextOfTwin(ctx, p, err)
	}
	if err == nil && p.Lost != nil && p.First >= 0 && p.Rows > 0 && x.t.mayFill(x.set, x.col) {
		x.gap = &filledChunk{x.t, x.set, x.col, p.Lost, vec.Range{From: p.First, To: p.First + p.Rows}}
		return x.Next(ctx)
	}
	// in recovery: the pages found end before the rowset does
	if err == io.EOF && x.t.Recovered != nil && x.rows.From < x.set.Rows {
		p = format.Page{Ordinal: -1, First: x.rows.From, Rows: x.set.Rows - x.rows.From,
			Entries: x.set.Rows - x.rows.From, Starts: true,
			Lost: fault.Corruptf(x.places[0].At, "", "no page was found after row %d of %d of column %q",
				x.rows.From, x.set.Rows, x.column.Name)}
		err = nil
	}
	if err == nil && p.First >= 0 && p.Rows >= 0 {
		x.rows.From = p.First + p.Rows
	}
	return p, err
}

// nextOfTwin returns the next page by the index of a twin in which it is not damaged, and goes on with that index. If
// there is none, it returns p and err, or a page of a twin that loses only a part of the rows.
func (x *columnChunk) nextOfTwin(ctx context.Context, p format.Page, err error) (format.Page, error) {
	for i := range x.places {
		if i == x.listed || !x.places[i].Usable() {
			continue
		}
		at := x.places[i].At
		r, bad := x.t.opener(x.set, x.block)(ctx, Source{x.t.Tree, at.Object, at.End()}, at, x.t.cfileOptions())
		if bad != nil {
			continue
		}
		inner, bad := r.Chunk(ctx, x.rows)
		if bad != nil {
			continue
		}
		q, bad := inner.Next(ctx)
		if whole := !damagedPage(q, bad); whole || bad == nil && err != nil {
			x.pages, x.listed, p, err = inner, i, q, bad
			if whole {
				break
			}
		}
	}
	return p, err
}

// filledPage marks a page whose cells are looked for elsewhere, as the block's index is damaged for the reason why.
type filledPage struct{ why error }

// damagedPage reports whether a column's index has damage where it should list the next page.
func damagedPage(p format.Page, err error) bool {
	return err != nil && Damaged(err) || err == nil && p.Lost != nil && Damaged(p.Lost)
}

// Decode decodes a page, or a twin's page if it is damaged. A NULL in a column that is not nullable is damage.
func (x *columnChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if g, ok := t.Page.Own.(filledPage); ok {
		return x.t.fill(x.set, x.col, t.Page.First, t.N, dst, g.why)
	}
	nulls, mark := dst.Nulls(), dst.Mark()
	if err := x.Chunk.Decode(t, dst); err != nil {
		if !Damaged(err) {
			return err
		}
		dst.Rollback(mark)
		if err := x.decodeElsewhere(t, dst, err); err != nil {
			dst.Rollback(mark)
			return x.t.fill(x.set, x.col, t.Page.First, t.N, dst, err)
		}
	}
	if !x.column.Nullable && dst.Nulls() > nulls && t.Page.Ordinal >= 0 {
		return fault.Corruptf(t.Page.Spans[0], "block", "a NULL in column %q, which is not nullable", x.column.Name)
	}
	return nil
}

// constant returns a column that was added after the rowset was written.
func (t *Table) constant(s *RowSet, col int, rows vec.Range) (format.Chunk, error) {
	c := &t.Stored.Columns[col]
	at := fault.Span{Object: s.Tablet.Object}
	switch {
	case c.Key:
		return nil, fault.Corruptf(at, "rowsets.columns", "rowset %d has no block for column %q of the primary key",
			s.ID, c.Name)
	case c.ReadDefault == nil && !c.Nullable:
		return nil, fault.Corruptf(at, "rowsets.columns",
			"rowset %d has no block for column %q, which has no default", s.ID, c.Name)
	case s.Rows < 0:
		return nil, fault.Corruptf(at, "rowsets.columns",
			"the number of rows of rowset %d is unknown: none of its blocks can be read", s.ID)
	}
	x := &constChunk{rows: rows, total: s.Rows, at: max(0, rows.From)}
	if c.ReadDefault != nil {
		v, err := c.Vector([][]byte{c.ReadDefault})
		if err != nil {
			return nil, fault.Locate(err, at, false, "schema.columns")
		}
		x.value = v
		x.bounds = pred.Bounds{Rows: -1}
		if lit, ok := cfile.Literal(c.Type, t.Cols[col].Type, c.ReadDefault); ok && !c.Array {
			x.bounds.Min, x.bounds.Max = &lit, &lit
		}
		return x, nil
	}
	x.bounds = pred.Bounds{Nulls: -1, Rows: -1}
	return x, nil
}

// constChunk returns the same value for every row; it has no bytes.
type constChunk struct {
	value  *vec.Vector // one entry; nil = NULL
	bounds pred.Bounds
	rows   vec.Range
	total  int64
	at     int64
}

func (x *constChunk) Next(context.Context) (format.Page, error) {
	end := min(x.rows.To, x.total)
	if x.at >= end {
		return format.Page{}, io.EOF
	}
	n := min(pageRows, end-x.at)
	b := x.bounds
	b.Rows = n
	if x.value == nil {
		b.Nulls = n
	}
	p := format.Page{Ordinal: int(x.at / pageRows), First: x.at, Rows: n, Entries: n, Bounds: &b}
	x.at += n
	return p, nil
}

func (x *constChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (x *constChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if x.value == nil {
		dst.ExtendNulls(int(t.N))
		return nil
	}
	return repeat(dst, x.value, int(t.N))
}

// repeat appends the only entry of v n times; each copy doubles the size.
func repeat(dst, v *vec.Vector, n int) error {
	if n <= 8 {
		for range n {
			if err := dst.Append(v, 0, 1, nil); err != nil {
				return err
			}
		}
		return nil
	}
	half, err := vec.New(v.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer half.Release()
	if err := repeat(half, v, n/2); err != nil {
		return err
	}
	for range 2 {
		if err := dst.Append(half, 0, n/2, nil); err != nil {
			return err
		}
	}
	if n%2 == 1 {
		return dst.Append(v, 0, 1, nil)
	}
	return nil
}

// memoryChunk is a column of rows that only the log has.
type memoryChunk struct {
	cells *vec.Vector
	rows  vec.Range
	at    int64
}

func (x *memoryChunk) Next(context.Context) (format.Page, error) {
	x.at = max(x.at, x.rows.From, 0)
	end := min(x.rows.To, int64(x.cells.Len()))
	if x.at >= end {
		return format.Page{}, io.EOF
	}
	n := min(pageRows, end-x.at)
	p := format.Page{Ordinal: int(x.at), First: x.at, Rows: n, Entries: n}
	x.at += n
	return p, nil
}

func (x *memoryChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (x *memoryChunk) Decode(t *format.Task, dst *vec.Vector) error {
	return dst.Append(x.cells, int(t.Page.First), int(t.Page.First+t.N), nil)
}

// decodeElsewhere decodes a page from a twin of its block. If no twin can be decoded, it returns err, the error of the
// block itself.
func (x *columnChunk) decodeElsewhere(t *format.Task, dst *vec.Vector, err error) error {
	base := slices.IndexFunc(x.places, func(p fs.Place) bool {
		at := t.Page.Spans[0]
		return p.At.Object == at.Object && p.At.Off <= at.Off && at.End() <= p.At.End()
	})
	for i, p := range x.places {
		if base < 0 || i == base || !p.Usable() {
			continue
		}
		again := *t
		again.Page.Spans, again.Bytes = nil, nil
		var failed error
		for _, at := range t.Page.Spans {
			b, there, bad := x.t.elsewhere(at, x.places[base], p)
			if failed = bad; bad != nil {
				break
			}
			again.Page.Spans, again.Bytes = append(again.Page.Spans, there), append(again.Bytes, b)
		}
		if failed != nil {
			continue
		}
		mark := dst.Mark()
		if x.Chunk.Decode(&again, dst) == nil {
			t.Raw = again.Raw
			return nil
		}
		dst.Rollback(mark)
	}
	return err
}
