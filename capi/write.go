package main

// #include "stoa.h"
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

// token stands for one call.
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

// contextOf is the context of a call that may be cancelled by a handle; 0: it may not.
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

// rowsOf takes over a stream of the host; release is to be called whatever happens.
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
	Path    string            `json:"path"`
	Format  string            `json:"format"`
	Options map[string]string `json:"options"`
	Rows    int64             `json:"rows"`
	NoCheck bool              `json:"no_check"`
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
	if err == nil {
		give(out, d)
	}
	return answer(err, fail)
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

// batchesOf are the rows of a stream; an error of the host's is not one of a file.
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

type changeRequest struct {
	Change  string            `json:"change"`
	Table   string            `json:"table"`
	Format  string            `json:"format"`
	Options map[string]string `json:"options"`
	With    json.RawMessage   `json:"with"`
}

//export goChange
func goChange(request *C.char, in *C.struct_ArrowArrayStream, cancel C.stoa_t, out, fail **C.char) C.int {
	d, err := change(request, in, uint64(cancel))
	if err == nil {
		give(out, d)
	}
	return answer(err, fail)
}

func change(request *C.char, in *C.struct_ArrowArrayStream, cancel uint64) (d any, err error) {
	defer guard(&err)
	var r changeRequest
	if err := ask(request, &r); err != nil {
		return nil, err
	}
	ctx, done, err := contextOf(cancel)
	if err != nil {
		return nil, err
	}
	defer done()
	var rows array.RecordReader
	if r.Change == "append" || r.Change == "create" || r.Change == "add_column" {
		var release func()
		rows, release, err = rowsOf(in)
		defer release()
		if err != nil {
			return nil, err
		}
	}
	o := stoa.OpenOptions{Formats: verbs.Formats(), From: r.Format, Opts: r.Options}
	if r.Change == "create" {
		var with stoa.CreateTableOptions
		if err := r.with(&with); err != nil {
			return nil, err
		}
		return nil, stoa.CreateTable(ctx, r.Table, rows.Schema(), with, o)
	}
	c, err := stoa.OpenChanger(ctx, r.Table, o)
	if err != nil {
		return nil, err
	}
	if do := changes[r.Change]; do != nil {
		return do(ctx, c, &r, rows)
	}
	return nil, fault.Invalidf("change: expected one of those in stoa.h, found %q", r.Change)
}

// with reads the options of a change.
func (r *changeRequest) with(to any) error {
	if len(r.With) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(r.With)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fault.Invalidf("with: %v", err)
	}
	return nil
}

type changeFunc func(context.Context, *stoa.Changer, *changeRequest, array.RecordReader) (any, error)

// changing makes a function of a change with options of type O.
func changing[O any](do func(context.Context, *stoa.Changer, O) (any, error)) changeFunc {
	return func(ctx context.Context, c *stoa.Changer, r *changeRequest, _ array.RecordReader) (any, error) {
		var o O
		if err := r.with(&o); err != nil {
			return nil, err
		}
		return do(ctx, c, o)
	}
}

type rowsDoc struct {
	Rows int64 `json:"rows"`
}

var changes = map[string]changeFunc{
	"append": func(ctx context.Context, c *stoa.Changer, r *changeRequest, rows array.RecordReader) (any, error) {
		var o stoa.AppendOptions
		if err := r.with(&o); err != nil {
			return nil, err
		}
		return c.Append(ctx, rows.Schema(), batchesOf(ctx, rows), o)
	},
	"delete": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DeleteOptions) (any, error) {
		n, err := c.Delete(ctx, o)
		return rowsDoc{n}, err
	}),
	"update": changing(func(ctx context.Context, c *stoa.Changer, o stoa.UpdateOptions) (any, error) {
		n, err := c.Update(ctx, o)
		return rowsDoc{n}, err
	}),
	"delete_segments": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DeleteSegmentsOptions) (any, error) {
		return nil, c.DeleteSegments(ctx, o)
	}),
	"compact": changing(func(ctx context.Context, c *stoa.Changer, o stoa.CompactOptions) (any, error) {
		return c.Compact(ctx, o)
	}),
	"merge_indexes": changing(func(ctx context.Context, c *stoa.Changer, o stoa.MergeIndexesOptions) (any, error) {
		return c.MergeIndexes(ctx, o)
	}),
	"drop_column": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DropColumnOptions) (any, error) {
		return nil, c.DropColumn(ctx, o)
	}),
	"clean": changing(func(ctx context.Context, c *stoa.Changer, o stoa.CleanOptions) (any, error) {
		return c.Clean(ctx, o)
	}),
	"drop": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DropOptions) (any, error) {
		return c.Drop(ctx, o)
	}),
	"add_column": func(ctx context.Context, c *stoa.Changer, r *changeRequest, rows array.RecordReader) (any, error) {
		var o stoa.AddColumnOptions
		if err := r.with(&o); err != nil {
			return nil, err
		}
		if n := rows.Schema().NumFields(); n != 1 {
			return nil, fault.Invalidf("add_column: expected one column, found %d", n)
		}
		return nil, c.AddColumn(ctx, rows.Schema().Field(0), o)
	},
}
