package read

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/page"
	"stoa/internal/nest"
	"stoa/vec"
)

// pageReader decodes all pages of a column chunk one after another, for verify.
type pageReader struct {
	c     *chunk
	dict  *vec.Vector
	arena vec.Arena
	typ   arrow.DataType
}

// pagesOf reads the pages of a column chunk, decoded as the column's type.
func (r *Reader) pagesOf(ctx context.Context, group, leaf int) (*pageReader, error) {
	c, err := r.WalkChunk(ctx, group, leaf)
	if err != nil {
		return nil, err
	}
	p := &pageReader{c: c, typ: r.Leaves[leaf].Column.Type}
	return p, p.readDict(ctx)
}

func (p *pageReader) readDict(ctx context.Context) error {
	pg, ok := p.c.Dict()
	if !ok {
		return nil
	}
	return p.useDict(ctx, pg)
}

func (p *pageReader) useDict(ctx context.Context, pg format.Page) (err error) {
	if p.dict, err = vec.New(p.typ, memory.DefaultAllocator); err != nil {
		return err
	}
	if err = p.decode(ctx, pg, p.dict); err == nil {
		p.dict.AsDict()
	}
	return err
}

// next appends the next page to v; io.EOF after the last one.
func (p *pageReader) next(ctx context.Context, v *vec.Vector) (format.Page, error) {
	pg, err := p.c.Next(ctx)
	if err != nil {
		return pg, err
	}
	return pg, p.decode(ctx, pg, v)
}

func (p *pageReader) decode(ctx context.Context, pg format.Page, v *vec.Vector) error {
	at, r := pg.Spans[0], p.c.t.r
	if at.Len > r.Limits.Page {
		return fault.Limitf(at, p.c.t.path(pg.Ordinal), "%d bytes, the limit is %d", at.Len, r.Limits.Page)
	}
	p.arena.Reset()
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, r.Src, at, p.c.t.path(pg.Ordinal), b); err != nil {
		return err
	}
	t := format.Task{Page: pg, N: pg.Entries, Bytes: [][]byte{b}, Dict: p.dict, Scratch: &p.arena, Limits: r.Limits}
	return p.c.Decode(&t, v)
}

// RowBatches reads fields of a row group in batches, in the types to which columns are decoded. An error ends the
// iteration.
func (r *Reader) RowBatches(ctx context.Context, group int, fields []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		x := &rowReader{r: r}
		defer x.release()
		err := x.open(ctx, group, fields)
		for row := int64(0); err == nil; {
			var b arrow.RecordBatch
			if b, err = x.next(ctx); err != nil {
				break
			}
			row += b.NumRows()
			more := yield(b, nil)
			b.Release()
			if !more {
				return
			}
			if row == r.Footer.RowGroups[group].NumRows {
				return
			}
		}
		if err == io.EOF && r.Footer.RowGroups[group].NumRows == 0 {
			return
		}
		if err == io.EOF {
			err = fault.Corruptf(r.FooterAt, meta.IndexPath(group, r.FieldLeaves[fields[0]][0], ""),
				"its pages have fewer rows than the row group")
		}
		yield(nil, err)
	}
}

// rowReader assembles the columns of fields into batches.
type rowReader struct {
	r      *Reader
	leaves []*rowLeaf
	fields []rowField
	schema *arrow.Schema
}

type rowField struct {
	leaves []*rowLeaf
	asm    *nest.Assembler
}

// rowLeaf holds decoded entries that have not been returned yet.
type rowLeaf struct {
	col   *page.FileColumn
	pages *pageReader
	vec   *vec.Vector
	ended bool
}

func (x *rowReader) open(ctx context.Context, group int, fields []int) error {
	all := x.r.Columns()
	var shown []arrow.Field
	for _, f := range fields {
		fd := rowField{}
		shown = append(shown, x.r.Decoded.Field(f))
		for _, leaf := range x.r.FieldLeaves[f] {
			pages, err := x.r.pagesOf(ctx, group, leaf)
			if err != nil {
				return err
			}
			v, err := vec.New(all[leaf].Type, memory.DefaultAllocator)
			if err != nil {
				return err
			}
			l := &rowLeaf{col: x.r.Leaves[leaf], pages: pages, vec: v}
			fd.leaves, x.leaves = append(fd.leaves, l), append(x.leaves, l)
		}
		if len(fd.leaves) == 1 && fd.leaves[0].col.Flat() {
			x.fields = append(x.fields, fd)
			continue
		}
		var err error
		if fd.asm, err = nest.NewAssembler(x.r.Decoded.Field(f), all, x.r.FieldLeaves[f], nil); err != nil {
			return err
		}
		x.fields = append(x.fields, fd)
	}
	x.schema = arrow.NewSchema(shown, nil)
	return nil
}

// maxHeld is the largest number of rows in a batch.
const maxHeld = 64 << 10

// rows returns the number of complete rows in l.
func (l *rowLeaf) rows() int {
	if l.col.MaxRep == 0 {
		return l.vec.Len()
	}
	n := nest.CountRows(l.vec.Rep())
	if !l.ended && n > 0 {
		n-- // the last row may continue in the next page
	}
	return n
}

func (x *rowReader) next(ctx context.Context) (arrow.RecordBatch, error) {
	n := maxHeld
	for _, l := range x.leaves {
		for l.rows() == 0 && !l.ended {
			_, err := l.pages.next(ctx, l.vec)
			if err == io.EOF {
				l.ended = true
				break
			}
			if err != nil {
				return nil, err
			}
			if l.col.MaxRep > 0 && l.rows() == 0 && l.size(l.vec.Len()) > x.r.Limits.Row() {
				return nil, x.tooLarge(l)
			}
		}
		n = min(n, l.rows())
	}
	if n == 0 || len(x.leaves) == 0 {
		return nil, io.EOF
	}
	for _, f := range x.fields {
		for f.asm != nil && f.size(n) > x.r.Limits.Row() {
			if n == 1 {
				return nil, x.tooLarge(f.leaves[0])
			}
			n /= 2
		}
	}
	arrs := make([]arrow.Array, 0, len(x.fields))
	defer func() {
		for _, a := range arrs {
			a.Release()
		}
	}()
	for _, f := range x.fields {
		a, err := f.take(n)
		if err != nil {
			return nil, x.locate(err, f)
		}
		arrs = append(arrs, a)
	}
	return array.NewRecordBatch(x.schema, arrs, int64(n)), nil
}

// size estimates the bytes of the first n entries and their levels.
func (l *rowLeaf) size(n int) int64 {
	all := l.vec.Len()
	if n == 0 || all == 0 {
		return 0
	}
	return int64(float64(l.vec.Size()+2*int64(all)) * float64(n) / float64(all))
}

// size estimates the bytes of the first n rows.
func (f *rowField) size(n int) (all int64) {
	for _, l := range f.leaves {
		k := n
		if l.col.MaxRep > 0 {
			k = nest.RowStart(l.vec.Rep(), n)
		}
		all += l.size(k)
	}
	return all
}

// tooLarge is the error for a row that is too large to be assembled.
func (x *rowReader) tooLarge(l *rowLeaf) error {
	return fault.Limitf(l.pages.c.t.at, l.col.Path(),
		"what is nested in a row takes more than %d bytes, an eighth of the memory limit", x.r.Limits.Row())
}

// locate adds the chunk to an error about the levels of several columns.
func (x *rowReader) locate(err error, f rowField) error {
	var e *fault.Error
	if len(f.leaves) == 0 || errors.As(err, &e) && e.At.Object != "" {
		return err
	}
	return fault.Locate(err, f.leaves[0].pages.c.t.at, false, f.leaves[0].col.Path())
}

// take returns the first n rows of a field.
func (f *rowField) take(n int) (arrow.Array, error) {
	in := make([]nest.Input, len(f.leaves))
	defer func() {
		for _, i := range in {
			if i.Array != nil {
				i.Array.Release()
			}
		}
	}()
	for i, l := range f.leaves {
		k := n
		if l.col.MaxRep > 0 {
			k = nest.RowStart(l.vec.Rep(), n)
		}
		if def := l.vec.Def(); def != nil {
			in[i].Def, in[i].Rep = append([]byte(nil), def[:k]...), append([]byte(nil), l.vec.Rep()[:k]...)
		}
		var err error
		if in[i].Array, err = l.vec.Emit(k); err != nil {
			return nil, err
		}
	}
	if f.asm == nil {
		in[0].Array.Retain()
		return in[0].Array, nil
	}
	return f.asm.Assemble(in, n, memory.DefaultAllocator)
}

func (x *rowReader) release() {
	for _, l := range x.leaves {
		l.vec.Release()
	}
}

// asStored reads the same chunk with every value in its stored form, and the levels of all entries.
func (r *Reader) asStored(ctx context.Context, group, leaf int) (*pageReader, error) {
	c, err := r.WalkChunk(ctx, group, leaf)
	if err != nil {
		return nil, err
	}
	col := *r.Leaves[leaf]
	p := &pageReader{c: c}
	switch col.Typ {
	case meta.TypeBoolean:
		p.typ = arrow.FixedWidthTypes.Boolean
	case meta.TypeBytes:
		p.typ = arrow.BinaryTypes.Binary
	case meta.TypeFixed:
		p.typ = &arrow.FixedSizeBinaryType{ByteWidth: int(col.Length)}
	default:
		p.typ = &arrow.FixedSizeBinaryType{ByteWidth: page.Widths[col.Typ]}
	}
	form, ok := page.FormOf(col.SchemaElem, p.typ)
	if !ok {
		return nil, fault.Bugf("%s as %s", col.Typ, p.typ)
	}
	col.Form = &form
	col.Column.Has |= format.Levels
	c.as = &col
	return p, p.readDict(ctx)
}

// EachStored decodes the data pages of a chunk with values in their stored form. f must not keep the vector.
func (r *Reader) EachStored(ctx context.Context, group, leaf int, f func(v *vec.Vector) error) error {
	p, err := r.asStored(ctx, group, leaf)
	if err != nil {
		return err
	}
	v, err := vec.New(p.typ, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer v.Release()
	for {
		v.Reset()
		if _, err := p.next(ctx, v); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := v.Plain(); err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
}
