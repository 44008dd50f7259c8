package ipc

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/vec"
)

// maxRows is the maximum number of rows of a returned batch; longer batches are sliced.
const maxRows = 64 << 10

// lostBatch is the error of a damaged record batch of a file. Some of its columns may be intact: only wanted columns
// are checked.
type lostBatch struct {
	error
	rows vec.Range
}

func (e *lostBatch) Unwrap() error { return e.error }

// LostRows returns the wanted rows of the batch.
func (e *lostBatch) LostRows() (from, to int64) { return e.rows.From, e.rows.To }

// projected returns the schema with only the fields cols.
func projected(sc *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for k, c := range cols {
		fields[k] = sc.Field(c)
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// errStop ends reading without an error: the caller stopped, or has all wanted rows.
var errStop = errors.New("stop")

// output cuts batches to the wanted rows and columns and yields them.
type output struct {
	cols   []int
	schema *arrow.Schema
	rows   vec.Range
	at     int64 // number of rows passed
	yield  func(arrow.RecordBatch, error) bool
}

func (o *output) emit(b arrow.RecordBatch) error {
	n := b.NumRows()
	want := vec.Range{From: o.rows.From - o.at, To: o.rows.To - o.at}.Intersect(vec.Range{From: 0, To: n})
	o.at += n
	for ; want.Len() > 0; want.From += maxRows {
		to := min(want.To, want.From+maxRows)
		cols := make([]arrow.Array, len(o.cols))
		for k, c := range o.cols {
			cols[k] = array.NewSlice(b.Column(c), want.From, to)
		}
		part := array.NewRecordBatch(o.schema, cols, to-want.From)
		for _, c := range cols {
			c.Release()
		}
		ok := o.yield(part, nil)
		part.Release()
		if !ok {
			return errStop
		}
	}
	if o.at >= o.rows.To {
		return errStop
	}
	return nil
}
