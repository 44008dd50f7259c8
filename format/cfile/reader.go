package cfile

import (
	"context"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/rows"
	"stoa/pred"
	"stoa/vec"
)

// Reader is a single open CFile. Its methods may be called concurrently.
type Reader struct {
	f     *columnfile.File
	field arrow.Field
	table format.Reader // of this file alone; nil if the file is part of a table
	// rows opens the rows on first use. It fails for bloom and delta files, whose number of rows is known only after
	// they have been read.
	rows func() (*rows.Reader, error)
}

// readerSource is an io.ReaderAt as a store.Source.
type readerSource struct {
	io.ReaderAt
	size int64
}

func (s readerSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.ReaderAt.ReadAt(p, off)
}
func (s readerSource) Size() int64  { return s.size }
func (s readerSource) Close() error { return nil }

// Header is the file's header.
func (r *Reader) Header() block.Header { return r.f.Header }

// Footer is the file's footer.
func (r *Reader) Footer() block.Footer { return r.f.Footer }

// Kind is the kind of the file in Kudu, as far as that can be determined.
func (r *Reader) Kind() block.Kind { return r.f.Kind() }

// Field is the Arrow field of the values.
func (r *Reader) Field() arrow.Field { return r.field }

// Len is the number of values, nulls included.
func (r *Reader) Len() int64 { return r.f.Footer.NumValues }

// Schema is the Arrow schema of the rows; for a column file it has the one field Field.
func (r *Reader) Schema() *arrow.Schema { return r.table.Schema() }

// NumRows is the number of rows; for bloom and delta files it is the number of values in the footer.
func (r *Reader) NumRows() int64 {
	if rs, err := r.rows(); err == nil {
		return rs.NumRows()
	}
	return r.Len()
}

// Row returns row n as a batch of one row, which the caller releases.
func (r *Reader) Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	rs, err := r.rows()
	if err != nil {
		return nil, err
	}
	return rs.Row(ctx, n, mem)
}

// RowsFrom returns the rows from row n on. A batch is valid until the next iteration.
func (r *Reader) RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.from(func(rs *rows.Reader) iter.Seq2[arrow.RecordBatch, error] { return rs.RowsFrom(ctx, n, mem) })
}

// RowsFromKey returns the rows from the first row on whose value is at least key. Without a value index the error is
// Invalid.
func (r *Reader) RowsFromKey(ctx context.Context, key pred.Value,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.from(func(rs *rows.Reader) iter.Seq2[arrow.RecordBatch, error] { return rs.RowsFromKey(ctx, key, mem) })
}

// from returns the sequence that f returns, or the error of opening the rows.
func (r *Reader) from(f func(*rows.Reader) iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	rs, err := r.rows()
	if err != nil {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
	}
	return f(rs)
}

// Close closes the file.
func (r *Reader) Close() error { return r.table.Close() }

// SeekToOrdinal returns an iterator that begins at value n, or at the end if n is the number of values.
func (r *Reader) SeekToOrdinal(ctx context.Context, n int64) (*Iterator, error) {
	if n < 0 || n > r.Len() {
		return nil, fault.Invalidf("there is no value %d: the file has %d", n, r.Len())
	}
	c, err := r.f.NewChunk(ctx, vec.Range{From: n, To: r.Len()})
	if err != nil {
		return nil, err
	}
	return &Iterator{r: r, c: c, next: n}, nil
}

// SeekAtOrAfter returns an iterator that begins at the first value whose encoded key (see AppendKey) is at least key;
// exact reports whether it equals key. The file must have a value index.
func (r *Reader) SeekAtOrAfter(ctx context.Context, key []byte) (it *Iterator, exact bool, err error) {
	if !r.f.Sorted() {
		return nil, false, fault.Unsupportedf(r.f.FootSpan(), "footer.validx_info",
			"the file has no value index, or its values are not keys")
	}
	l := columnfile.Lookup{F: r.f}
	defer l.Close()
	n, exact, err := l.Bound(ctx, key, false)
	if err != nil {
		return nil, false, err
	}
	it, err = r.SeekToOrdinal(ctx, n)
	return it, exact, err
}

// Iterator reads values in order from the position of a seek. It is not safe for concurrent use.
type Iterator struct {
	r    *Reader
	c    *columnfile.Chunk
	dict *vec.Vector
	next int64 // ordinal of the next value

	page  arrow.Array // values from ordinal first on
	first int64
	at    int64 // ordinal after the last page read; 0 before the first
}

// Ordinal is the ordinal of the next value.
func (it *Iterator) Ordinal() int64 { return it.next }

// Next returns up to n values, at least one; io.EOF at the end. The caller releases the array.
func (it *Iterator) Next(ctx context.Context, n int) (arrow.Array, error) {
	for it.page == nil || it.next >= it.first+int64(it.page.Len()) {
		if err := it.load(ctx); err != nil {
			return nil, err
		}
	}
	from := it.next - it.first
	to := min(from+int64(max(n, 1)), int64(it.page.Len()))
	it.next = it.first + to
	return array.NewSlice(it.page, from, to), nil
}

// load decodes the next page.
func (it *Iterator) load(ctx context.Context) error {
	it.Close()
	p, err := it.c.Next(ctx)
	if err == nil {
		err = p.Lost
	}
	if err != nil {
		return err
	}
	f := it.r.f
	if f.Footer.Encoding == block.Dict && f.Footer.Dict != nil && it.dict == nil {
		if it.dict, err = f.ReadDict(ctx); err != nil {
			return err
		}
	}
	v, err := vec.New(it.r.field.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	if err := f.CheckSize(p.Spans[0], "block"); err != nil {
		return err
	}
	a := columnfile.Arenas.Get().(*vec.Arena)
	defer columnfile.Arenas.Put(a)
	a.Reset()
	stored := a.Bytes(int(p.Spans[0].Len))
	if err := format.ReadFull(ctx, f.Src, p.Spans[0], "block", stored); err != nil {
		return err
	}
	dict := it.dict
	t := format.Task{Page: p, N: p.Entries, Bytes: [][]byte{stored}, Dict: dict, Scratch: a, Limits: f.Limits}
	if err := it.c.Decode(&t, v); err != nil {
		return err
	}
	if it.first = p.First; p.First < 0 {
		it.first = it.at
	}
	it.at = it.first + int64(v.Len())
	it.page, err = v.Emit(v.Len())
	return err
}

// Close releases the values that were decoded. The iterator can still be used afterwards.
func (it *Iterator) Close() {
	if it.page != nil {
		it.page.Release()
		it.page = nil
	}
}
