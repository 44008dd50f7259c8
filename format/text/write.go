package text

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/klauspost/compress/gzip"

	"stoa/format"
	"stoa/store"
)

// rows is a writer of package cells.
type rows interface {
	Write(arrow.RecordBatch) error
	Flush() error
}

// fileWriter is the format.Writer of the text formats.
type fileWriter struct {
	sink store.Sink
	obj  store.Object
	rows rows
	zip  *gzip.Writer // nil: not compressed
	n    counter
	done int64 // rows written
}

// counter counts the bytes written to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func newFileWriter(ctx context.Context, s store.Sink, zip bool, rows func(io.Writer) rows) (format.Writer, error) {
	obj, err := s.Create(ctx, "")
	if err != nil {
		return nil, err
	}
	w := &fileWriter{sink: s, obj: obj, n: counter{w: obj}}
	if zip {
		w.zip = gzip.NewWriter(&w.n)
		w.rows = rows(w.zip)
		return w, nil
	}
	w.rows = rows(&w.n)
	return w, nil
}

func (w *fileWriter) Write(ctx context.Context, b arrow.RecordBatch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.done += b.NumRows()
	return w.rows.Write(b)
}

func (w *fileWriter) Close(ctx context.Context) (format.Summary, error) {
	if err := w.rows.Flush(); err != nil {
		return format.Summary{}, err
	}
	if w.zip != nil {
		if err := w.zip.Close(); err != nil {
			return format.Summary{}, err
		}
	}
	obj := w.obj
	w.obj = nil
	if err := obj.Close(); err != nil {
		return format.Summary{}, err
	}
	return format.Summary{Rows: w.done, Bytes: w.n.n, Files: []string{""}}, w.sink.Commit(ctx)
}

func (w *fileWriter) Abort(ctx context.Context) error {
	var err error
	if w.obj != nil {
		err = w.obj.Close()
		w.obj = nil
	}
	return errors.Join(err, w.sink.Abort(ctx))
}
