// Package parked keeps what a plan needs to know of a closed file.
package parked

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// Reader has the columns of a file that is closed. Files with the same columns share one.
type Reader struct {
	schema  *arrow.Schema
	columns []format.Column
}

// distinct is how many Readers are compared with a file: a table of files usually has one or two.
const distinct = 64

// Readers are the Readers of a table's files.
type Readers []*Reader

// Of returns the Reader of a file.
func (rs *Readers) Of(r format.Reader) *Reader {
	sc, columns := r.Schema(), slices.Clone(r.Columns())
	for i := range columns {
		columns[i].Facts = format.ColumnFacts{} // of the file, and not of the table
	}
	for _, x := range *rs {
		if x.schema.Equal(sc) && x.schema.Metadata().Equal(sc.Metadata()) && reflect.DeepEqual(x.columns, columns) {
			return x
		}
	}
	out := &Reader{sc, columns}
	if *rs = append(*rs, out); len(*rs) > distinct {
		*rs = (*rs)[1:]
	}
	return out
}

// May reports whether a file may be closed until it is planned: not places that are parts of one.
func May(f *format.Format, r format.Reader) bool {
	_, batches := r.(format.Batcher)
	return !batches && !f.Together
}

// Findings returns the findings of a reader.
func Findings(r format.Reader) []region.Finding {
	if f, ok := r.(format.Finder); ok {
		return f.Findings()
	}
	return nil
}

func errClosed() error { return fault.Invalidf("the table was opened to be planned, not to be read") }

func (r *Reader) Schema() *arrow.Schema    { return r.schema }
func (r *Reader) Columns() []format.Column { return r.columns }
func (r *Reader) Order() []format.Key      { return nil }
func (r *Reader) Meta() []format.KeyValue  { return nil }
func (r *Reader) Close() error             { return nil }

func (r *Reader) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) { yield(format.Part{}, errClosed()) }
}

func (r *Reader) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	return nil, errClosed()
}

func (r *Reader) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, errClosed()
}
