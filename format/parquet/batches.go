package parquet

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// Batches gives rows of g, and of q's columns what is wanted; the filter has had its say in Narrow. Behind damage it goes on
// with the next page, where offset indexes tell where that is; without them the rest of the row group is lost. Errors of
// damage have the method LostRows.
func (r *reader) Batches(ctx context.Context, g format.RowGroup, q format.Query, rows vec.Range, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		if g.Index < 0 || g.Index >= len(r.meta.RowGroups) {
			yield(nil, fault.Bugf("row group %d of %d", g.Index, len(r.meta.RowGroups)))
			return
		}
		f := &feed{ctx: ctx, r: r, group: g.Index, mem: mem, batch: q.Batch, yield: yield}
		all := vec.Range{To: r.meta.RowGroups[g.Index].NumRows}
		if rows == (vec.Range{}) {
			rows = all
		}
		rows = rows.Intersect(all)
		var err error
		if f.parts, err = r.parts(q); err != nil {
			f.tell(err, rows)
			return
		}
		f.all(rows)
	}
}

// feed gives batches of one row group. stopped says that nobody takes more, or that there is no going on.
type feed struct {
	ctx     context.Context
	r       *reader
	group   int
	parts   []fieldPart
	mem     memory.Allocator
	batch   int64 // bytes, about; 0: any
	yield   func(arrow.RecordBatch, error) bool
	stopped bool
	wide    bool // see tooWide
}

// lostRows is an error that says which rows of the row group it takes.
type lostRows struct {
	error
	rows   vec.Range
	column string // whose damage it is; "" not known
}

func (e *lostRows) Unwrap() error { return e.error }

// LostRows is the rows, half-open, counted from the row group's first.
func (e *lostRows) LostRows() (from, to int64) { return e.rows.From, e.rows.To }

// LostColumn is the name of the field.
func (e *lostRows) LostColumn() string { return e.column }

// tell gives an error instead of rows.
func (f *feed) tell(err error, rows vec.Range) {
	damage := errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported)
	if damage {
		err = &lostRows{err, rows, f.fieldOf(err)}
	}
	f.stopped = !f.yield(nil, err) || f.stopped || !damage
}

// fieldOf is the name of the field in whose column chunks the error is; "" if it is in none.
func (f *feed) fieldOf(err error) string {
	at := errorSpan(err)
	for _, p := range f.parts {
		for _, leaf := range p.leaves {
			if s := f.r.chunkSpan(f.group, leaf); at.Object != "" && at.Off >= s.Off && at.End() <= s.End() {
				return p.field.Name
			}
		}
	}
	return ""
}

// all gives rows, but for those that damage takes.
func (f *feed) all(rows vec.Range) {
	for rows.Len() > 0 && !f.stopped {
		at, step, err := f.some(rows)
		switch {
		case err == nil || f.stopped:
			return
		case farInstant(err): // the other pages may have none
		case errors.Is(err, fault.Unsupported): // refused of the chunk, whichever page it is of
			f.tell(err, vec.Range{From: at, To: f.r.meta.RowGroups[f.group].NumRows})
			f.stopped = true
			return
		case !errors.Is(err, fault.Corrupt):
			f.tell(err, rows)
			return
		}
		end := min(at+step, rows.To)
		pieces, ok := f.pieces(vec.Range{From: at, To: end})
		if !ok {
			f.tell(err, vec.Range{From: at, To: f.r.meta.RowGroups[f.group].NumRows})
			f.stopped = true
			return
		}
		if len(pieces) == 1 {
			f.tell(err, pieces[0])
		} else {
			f.each(pieces)
		}
		rows.From = end
	}
}

// each gives the pieces that are whole.
func (f *feed) each(pieces []vec.Range) {
	for _, p := range pieces {
		if f.stopped {
			return
		}
		if _, _, err := f.some(p); err != nil {
			f.tell(err, p)
		}
	}
}

// firstRows is how many rows the first batch has at most: only it tells how long strings are, of which a few bytes can stand for any number.
const firstRows = 256

// maxBatch is how many bytes a batch should have at most where nobody says so.
const maxBatch = 64 << 20

// some gives rows up to the first error; at is where the batch begins that has it, and step how many rows may be looked at for it.
// What the library does not take although the format has it is no error: the rest is read with these chunks recoded.
func (f *feed) some(rows vec.Range) (at, step int64, err error) {
	at, step, err = f.upToError(rows)
	if !f.wide && f.tooWide(err) {
		f.wide = true
		at, step, err = f.upToError(vec.Range{From: at, To: rows.To})
	}
	return at, step, err
}

func (f *feed) upToError(rows vec.Range) (at, step int64, err error) {
	c := &columns{r: f.r, group: f.group, parts: f.parts, wide: f.wide}
	defer c.release()
	step = c.step(f.batch)
	if err := c.open(f.ctx, rows, f.mem); err != nil {
		return rows.From, step, err
	}
	bytes := f.batch
	if bytes == 0 {
		bytes = maxBatch
	}
	n := min(step, firstRows)
	if len(c.parts) == 0 {
		n = step
	}
	for rows.Len() > 0 {
		b, err := c.read(f.ctx, rows.From, min(n, rows.Len()), f.mem)
		if err != nil {
			return rows.From, step, err
		}
		rows.From += b.NumRows()
		n = min(step, 8*n, max(1, bytes*b.NumRows()/max(1, bytesOf(b))))
		f.stopped = !f.yield(b, nil)
		b.Release()
		if f.stopped {
			break
		}
	}
	return rows.From, step, nil
}

func bytesOf(b arrow.RecordBatch) (n int64) {
	for _, c := range b.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}

// Pages is those of the offset indexes.
func (r *reader) Pages(ctx context.Context, g format.RowGroup, q format.Query) ([]format.ColumnPages, error) {
	parts, err := r.parts(q)
	if err != nil {
		return nil, err
	}
	var out []format.ColumnPages
	for _, p := range parts {
		for _, leaf := range p.leaves {
			x, err := r.offsetIndex(ctx, g.Index, leaf)
			if err != nil {
				return nil, err
			}
			out = append(out, r.pagesOf(g.Index, p.index, leaf, x))
		}
	}
	return out, nil
}

func (r *reader) pagesOf(group, field, leaf int, x *offsetIndex) format.ColumnPages {
	out := format.ColumnPages{Column: field}
	if x == nil || len(x.firstRow) == 0 {
		return out
	}
	if chunk := r.chunkSpan(group, leaf); r.base+x.offsets[0] > chunk.Off {
		out.Dict = &format.Page{Spans: []fault.Span{chunk.Sub(0, r.base+x.offsets[0]-chunk.Off)}}
	}
	for i, first := range x.firstRow {
		end := r.meta.RowGroups[group].NumRows
		if i+1 < len(x.firstRow) {
			end = x.firstRow[i+1]
		}
		out.Pages = append(out.Pages, format.Page{Ordinal: i, First: first, Rows: end - first, Spans: []fault.Span{r.span(x.offsets[i], int64(x.sizes[i]))}})
	}
	return out
}

// pieces cuts rows where a page of any leaf begins. It cannot without the offset indexes of all.
func (f *feed) pieces(rows vec.Range) ([]vec.Range, bool) {
	cuts := []int64{rows.From, rows.To}
	for _, p := range f.parts {
		for _, leaf := range p.leaves {
			x, err := f.r.offsetIndex(f.ctx, f.group, leaf)
			if err != nil || x == nil {
				return nil, false
			}
			for _, row := range x.firstRow {
				if row > rows.From && row < rows.To {
					cuts = append(cuts, row)
				}
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	out := make([]vec.Range, len(cuts)-1)
	for i := range out {
		out[i] = vec.Range{From: cuts[i], To: cuts[i+1]}
	}
	return out, true
}
