package read

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/present"
)

// Reader is an open file as a format.Reader.
type Reader struct {
	*file.File
	Lost   map[file.ChunkKey]error // missing chunks of a recovered file
	tables tables
	// what Columns returns: callers ask for it again for each chunk. They do not change it
	columns atomic.Pointer[[]format.Column]

	proving sync.Mutex
	proven  int64        // see ProvenBefore; 0 if it is not known yet
	gap     *int64       // see GapBeforeFooter; nil likewise
	whole   *wholeChunks // nil likewise
}

// NewReader returns a reader of f; lost holds the error of each missing chunk.
func NewReader(f *file.File, lost map[file.ChunkKey]error) *Reader {
	return &Reader{File: f, Lost: lost}
}

func (r *Reader) Schema() *arrow.Schema { return r.Shown }

func (r *Reader) Order() []format.Key { return nil }

// Columns are the leaves of the schema.
func (r *Reader) Columns() []format.Column {
	if known := r.columns.Load(); known != nil {
		return *known
	}
	out := make([]format.Column, len(r.Leaves))
	for i, c := range r.Leaves {
		out[i] = c.Column
		out[i].Facts = r.facts(i)
	}
	r.columns.Store(&out)
	return out
}

// facts returns the facts of the column in the first row group.
func (r *Reader) facts(col int) (f format.ColumnFacts) {
	if len(r.Footer.RowGroups) == 0 {
		return f
	}
	m := r.Footer.RowGroups[0].Columns[col].MetaData
	for k, e := range m.Encodings {
		if k > 0 {
			f.Encoding += ","
		}
		f.Encoding += e.String()
	}
	f.Codec = m.Codec.String()
	return f
}

// Stored returns the schema to which columns are decoded.
func (r *Reader) Stored() *arrow.Schema { return r.Decoded }

// Present converts an array to its type in the schema.
func (r *Reader) Present(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	return present.As(a, to, mem)
}

var _ format.Presenter = (*Reader)(nil)

func (r *Reader) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.Target.Name, Rows: r.Footer.NumRows}
		if info, err := r.Target.Tree.Stat(ctx, r.Target.Name); err == nil {
			p.Stamp = info.Stamp
		}
		for i := range r.Footer.RowGroups {
			p.Bytes += r.bytes(i, q.Cols)
		}
		yield(p, nil)
	}
}

// bytes returns the compressed size of columns in a row group.
func (r *Reader) bytes(group int, cols []int) (n int64) {
	for _, c := range cols {
		n += r.Footer.RowGroups[group].Columns[c].MetaData.TotalCompressedSize
	}
	return n
}

func (r *Reader) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(r.Footer.RowGroups))
	for i, g := range r.Footer.RowGroups {
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: g.NumRows, Bytes: r.bytes(i, q.Cols),
			Bounds: r.bounds(i, q.Cols)}
	}
	return out, nil
}

// Meta returns facts about the file.
func (r *Reader) Meta() []format.KeyValue {
	out := []format.KeyValue{
		{Key: "created by", Value: r.Footer.CreatedBy},
		{Key: "version", Value: strconv.Itoa(int(r.Footer.Version))},
		{Key: "rows", Value: strconv.FormatInt(r.Footer.NumRows, 10)},
		{Key: "row groups", Value: strconv.Itoa(len(r.Footer.RowGroups))},
		{Key: "columns", Value: strconv.Itoa(r.Footer.Schema.NumColumns())},
		{Key: "footer", Value: fmt.Sprintf("%d bytes", r.FooterAt.Len)},
	}
	for _, p := range r.Footer.KeyValues {
		if p.Key != meta.StoredSchema && p.Key != meta.SealKey && p.Value != nil {
			out = append(out, format.KeyValue{Key: "metadata: " + p.Key, Value: *p.Value})
		}
	}
	return out
}

var _ format.Narrower = (*Reader)(nil)
