package format

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/store"
)

// Encoder encodes batches into the bytes of one object.
type Encoder interface {
	Write(b arrow.RecordBatch) error
	Close() error // writes what is left; the object remains open
	Rows() int64  // written so far
}

// Tearer is an Encoder whose output looks complete wherever it stops. Tear ends the output in a way that readers
// notice: bytes that went to a pipe cannot be taken back.
type Tearer interface{ Tear() error }

// CreateObject implements Create for formats whose tables are one object, written from beginning to end by the Encoder
// that open returns.
func CreateObject(ctx context.Context, s store.Sink, open func(io.Writer) (Encoder, error)) (Writer, error) {
	obj, err := s.Create(ctx, "")
	if err != nil {
		return nil, err
	}
	w := &objectWriter{sink: s, obj: obj}
	if w.enc, err = open(&counter{w}); err != nil {
		return nil, errors.Join(err, obj.Close(), s.Abort(ctx))
	}
	return w, nil
}

type objectWriter struct {
	sink  store.Sink
	obj   store.Object // nil: closed
	enc   Encoder
	bytes int64
}

// counter counts the bytes that go into the object.
type counter struct{ w *objectWriter }

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.obj.Write(b)
	c.w.bytes += int64(n)
	return n, err
}

func (w *objectWriter) Write(ctx context.Context, b arrow.RecordBatch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.enc.Write(b)
}

func (w *objectWriter) Close(ctx context.Context) (Summary, error) {
	if err := w.enc.Close(); err != nil {
		return Summary{}, err
	}
	obj := w.obj
	w.obj = nil
	if err := obj.Close(); err != nil {
		return Summary{}, err
	}
	return Summary{Rows: w.enc.Rows(), Bytes: w.bytes, Files: []string{""}}, w.sink.Commit(ctx)
}

func (w *objectWriter) Abort(ctx context.Context) error {
	var err error
	if w.obj != nil {
		if t, ok := w.enc.(Tearer); ok {
			t.Tear() // the cause is already reported; a failure of Tear adds nothing
		}
		err = w.obj.Close()
		w.obj = nil
	}
	return errors.Join(err, w.sink.Abort(ctx))
}
