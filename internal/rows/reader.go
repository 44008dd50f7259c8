package rows

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/store"
)

// Reader is one file of a format, opened on its own, with the methods that the native readers of all formats have. Its
// methods are safe for concurrent use.
type Reader struct {
	file format.Reader
	rows *Rows
}

// Open opens the file r, of size bytes, with the open function of the format kind. name is used in errors and must have
// a file extension of the format.
func Open(r io.ReaderAt, size int64, kind, name string, o format.OpenOptions,
	open func(context.Context, format.Target, format.OpenOptions) (format.Reader, error)) (*Reader, error) {
	ctx, tree := context.Background(), store.One(name, r, size)
	file, err := open(ctx, format.Target{Tree: tree, Name: name}, o)
	if err != nil {
		return nil, err
	}
	out, err := Over(ctx, kind, file, tree, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return out, nil
}

// Over returns a Reader for an open file of the format kind, and closes the file when it is closed. The bytes of the
// file are in tree.
func Over(ctx context.Context, kind string, file format.Reader, tree store.Tree,
	o format.OpenOptions) (*Reader, error) {
	n := int64(0)
	for p, err := range file.Parts(ctx, format.Query{}) {
		if err != nil {
			return nil, err
		}
		groups, err := file.RowGroups(ctx, p, format.Query{})
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.Rows < 0 {
				return nil, fault.Unsupportedf(fault.Span{Object: p.Ref}, g.Name,
					"rows by number, where a row group does not say how many it has")
			}
			n += g.Rows
		}
	}
	return &Reader{file, Of(kind, file, n, tree, o)}, nil
}

// Schema returns the Arrow schema of the rows.
func (r *Reader) Schema() *arrow.Schema { return r.file.Schema() }

// NumRows returns the number of rows.
func (r *Reader) NumRows() int64 { return r.rows.NumRows() }

// Row returns row n of all columns as a batch of one row, which the caller releases.
func (r *Reader) Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	return r.rows.Row(ctx, n, mem)
}

// RowsFrom returns the rows from row n on. A batch is valid until the next iteration.
func (r *Reader) RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.rows.From(ctx, n, mem)
}

// RowsFromKey returns the rows whose key is not less than key. The key is the first column by which the file states
// that its rows are sorted; if the file states none, the error is of class Invalid.
func (r *Reader) RowsFromKey(ctx context.Context, key pred.Value,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.rows.FromKey(ctx, key, mem)
}

// Close closes the file.
func (r *Reader) Close() error { return errors.Join(r.rows.Close(), r.file.Close()) }
