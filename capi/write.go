package main

// #include "stoa.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"iter"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

// token identifies one call.
type token struct {
	ctx  context.Context
	stop context.CancelFunc
}

func (t *token) cancel() { t.stop() }
func (t *token) close()  { t.stop() }

//export goToken
func goToken(out *C.stoa_t) C.int {
	ctx, stop := context.WithCancel(context.Background())
	*out = C.stoa_t(newHandle(&token{ctx, stop}))
	return C.STOA_OK
}

// contextOf returns the context of a call that a handle may cancel; 0: none may.
func contextOf(h uint64) (context.Context, func(), error) {
	if h == 0 {
		return context.Background(), func() {}, nil
	}
	t, done, err := held[*token](h)
	if err != nil {
		return nil, nil, err
	}
	return t.ctx, done, nil
}

// during returns a context that a token cancels (0: none) during the call. What outlives the call, such as an
// open table, keeps the context, which is then no longer cancelled.
func during(h uint64) (context.Context, func(), error) {
	token, done, err := contextOf(h)
	if err != nil || h == 0 {
		return token, done, err
	}
	ctx, stop := context.WithCancel(context.Background())
	detach := context.AfterFunc(token, stop)
	return ctx, func() { detach(); done() }, nil
}

// rowsOf takes over a stream of the host; release must be called in any case.
func rowsOf(in *C.struct_ArrowArrayStream) (rows array.RecordReader, release func(), err error) {
	if in == nil || in.release == nil {
		return nil, func() {}, fault.Invalidf("rows: expected a stream, found none, or one that is released")
	}
	r, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(unsafe.Pointer(in)), nil)
	if err != nil {
		return nil, func() {}, err
	}
	rows, ok := r.(array.RecordReader)
	if !ok {
		return nil, func() {}, fault.Bugf("a stream is no reader of batches")
	}
	return rows, rows.Release, nil
}

type writeRequest struct {
	Path        string            `json:"path"`
	Format      string            `json:"format"`
	Options     map[string]string `json:"options"`
	Rows        int64             `json:"rows"`
	NoCheck     bool              `json:"no_check"`
	Environment map[string]string `json:"environment"` // as in openRequest
}

type summaryDoc struct {
	Rows      int64    `json:"rows"`
	Bytes     int64    `json:"bytes"`
	Files     []string `json:"files"`
	Checked   bool     `json:"checked"`
	Unchecked []string `json:"unchecked_columns"`
	Retyped   []string `json:"retyped"`
	Notes     []string `json:"notes"`
	Altered   any      `json:"altered"`
	Findings  any      `json:"findings"`
}

//export goWrite
func goWrite(request *C.char, in *C.struct_ArrowArrayStream, cancel C.stoa_t, out, fail **C.char) C.int {
	d, err := write(request, in, uint64(cancel))
	return give(out, d, err, fail)
}

func write(request *C.char, in *C.struct_ArrowArrayStream, cancel uint64) (d summaryDoc, err error) {
	defer guard(&err)
	rows, release, err := rowsOf(in)
	defer release()
	if err != nil {
		return d, err
	}
	var r writeRequest
	if err := ask(request, &r); err != nil {
		return d, err
	}
	ctx, done, err := contextOf(cancel)
	if err != nil {
		return d, err
	}
	defer done()
	surround(r.Environment)
	w, err := stoa.Create(ctx, r.Path, rows.Schema(), stoa.CreateOptions{Formats: verbs.Formats(), To: r.Format,
		Opts: r.Options, Rows: r.Rows, NoCheck: r.NoCheck})
	if err != nil {
		return d, err
	}
	defer w.Abort(ctx)
	for b, err := range batchesOf(ctx, rows) {
		if err != nil {
			return d, err
		}
		if err := w.Write(ctx, b); err != nil {
			return d, err
		}
	}
	s, err := w.Close(ctx)
	return summaryDoc{s.Rows, s.Bytes, s.Files, s.Checked, s.Unchecked, s.Retyped, s.Notes, s.ByOption,
		docsOfFindings(s.Altered)}, err
}

// batchesOf returns the rows of a stream; an error of the host's is not one of a file.
func batchesOf(ctx context.Context, rows array.RecordReader) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for rows.Next() {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if !yield(rows.RecordBatch(), nil) {
				return
			}
		}
		if err := rows.Err(); err != nil && !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}
