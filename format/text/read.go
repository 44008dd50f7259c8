package text

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

const (
	maxRows = 64 << 10 // of a batch
	maxText = 32 << 20 // weight (see records) at which a batch ends

	// Numbers of rows and bytes from which schemas are inferred.
	sampleRows  = 1000
	sampleBytes = 4 << 20

	// inOrder is the number of bad rows that are reported in order, between the rows before and after them. Each of
	// them ends a batch; if every other row were bad, each row would be a batch, at the cost of all its columns. The
	// errors of further bad rows are reported at once, ahead of the good rows that were gathered before them.
	inOrder = 16
)

// records are the rows of a text.
type records interface {
	// next moves to the next row; io.EOF after the last.
	next() error
	// into returns a function that appends the current row to builders by field, nil for fields that are not read. rows
	// is the number of rows in the builders; the builder of a column that is null in all of them may be empty. If rows
	// is nil it is a dry run, which may skip values that cannot fail.
	into(cols []array.Builder, rows *int) (row func() error)
	// weight returns the number of bytes read, plus the estimated size of values without a text.
	weight() int64
}

// reader is an open text. Every call of Batches reads from the start.
type reader struct {
	kind   string
	target format.Target
	src    store.Source
	limits format.Limits
	schema *arrow.Schema
	meta   []format.KeyValue

	records func(in *input) (records, error) // starts at the first row
}

func newReader(ctx context.Context, kind string, t format.Target, o format.OpenOptions) (*reader, error) {
	src, err := t.Tree.Open(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	return &reader{kind: kind, target: t, src: src, limits: o.Limits}, nil
}

func (r *reader) input(ctx context.Context) (*input, error) {
	return newInput(ctx, r.src, r.target, r.limits)
}

func (r *reader) Schema() *arrow.Schema   { return r.schema }
func (r *reader) Order() []format.Key     { return nil }
func (r *reader) Close() error            { return r.src.Close() }
func (r *reader) Meta() []format.KeyValue { return r.meta }

// Columns returns the top-level fields.
func (r *reader) Columns() []format.Column {
	out := make([]format.Column, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type}
	}
	return out
}

func (r *reader) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.target.Name, Rows: -1, Bytes: -1}
		if info, err := r.target.Tree.Stat(ctx, r.target.Name); err == nil {
			p.Stamp, p.Bytes = info.Stamp, info.Size
		}
		yield(p, nil)
	}
}

// RowGroups implements format.Reader: one row group with an unknown number of rows.
func (r *reader) RowGroups(_ context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	return []format.RowGroup{{Part: p.Ref, Rows: -1, Bytes: p.Bytes}}, nil
}

// Chunk returns an error of class Unsupported: the reader is a format.Batcher.
func (r *reader) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(fault.Span{Object: r.target.Name}, "",
		"text is read row by row, not by column chunk")
}

// Batches implements format.Batcher. A row that does not fit the schema is an error, after which the loop may continue.
func (r *reader) Batches(ctx context.Context, _ format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		if rows == (vec.Range{}) {
			rows.To = math.MaxInt64
		}
		b := newBatcher(r.schema, q.Cols, mem)
		defer b.release()
		in, err := r.input(ctx)
		if err == nil {
			b.from, err = r.records(in)
		}
		if err == nil {
			b.row = b.from.into(b.cols, &b.n)
			err = b.run(ctx, rows, yield)
		}
		if err != nil && err != errStop {
			yield(nil, err)
		}
	}
}

var errStop = errors.New("stop")

// batcher gathers rows into batches.
type batcher struct {
	from   records
	row    func() error // appends the current row of from to the builders
	schema *arrow.Schema
	made   []array.Builder // of the fields read, in the order of the query
	cols   []array.Builder // the same by field; nil: not read
	n      int             // rows in the builders
	alike  []int           // for each of made, the first builder of the same type
	mem    memory.Allocator

	bad    int // number of rows that did not fit
	dryRun dryRun
}

func newBatcher(sc *arrow.Schema, cols []int, mem memory.Allocator) *batcher {
	b := &batcher{cols: make([]array.Builder, sc.NumFields()), dryRun: dryRun{mem: mem}, mem: mem}
	first := map[string]int{}
	fields := make([]arrow.Field, len(cols))
	for k, c := range cols {
		fields[k] = sc.Field(c)
		if b.cols[c] == nil {
			b.cols[c] = array.NewBuilder(mem, fields[k].Type)
		}
		b.made = append(b.made, b.cols[c])
		print := fields[k].Type.Fingerprint()
		if _, ok := first[print]; !ok || print == "" {
			first[print] = k
		}
		b.alike = append(b.alike, first[print])
	}
	meta := sc.Metadata()
	b.schema = arrow.NewSchema(fields, &meta)
	return b
}

func (b *batcher) release() {
	for _, c := range b.cols {
		if c != nil {
			c.Release()
		}
	}
	b.dryRun.release()
}

// append appends the current row. clean: a row that failed left nothing in the builders.
func (b *batcher) append() (clean bool, err error) {
	if b.bad >= inOrder {
		if err := b.dryRun.row(b); err != nil {
			return true, err
		}
	}
	return false, b.row()
}

func (b *batcher) run(ctx context.Context, rows vec.Range, yield func(arrow.RecordBatch, error) bool) error {
	start := b.from.weight()
	for at := int64(0); at < rows.To; at++ {
		err := b.from.next()
		if err == io.EOF {
			break
		}
		clean := true
		if err == nil && at >= rows.From {
			clean, err = b.append()
			if err == nil {
				b.n++
			}
		}
		if err != nil {
			var one *rowError
			final := !errors.Is(err, fault.Corrupt) || !errors.As(err, &one) // not about one row
			if final || !clean || b.bad < inOrder {
				if err := b.flush(yield); err != nil {
					return err
				}
			}
			if final {
				return err
			}
			b.bad++
			one.row = at
			if !yield(nil, err) {
				return errStop
			}
		}
		if b.n == maxRows || b.from.weight()-start >= maxText || at < rows.From && at%maxRows == 0 {
			start = b.from.weight()
			if err := b.flush(yield); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return b.flush(yield)
}

// flush yields the complete rows in the builders as a batch; the values of a failed row after them are discarded.
func (b *batcher) flush(yield func(arrow.RecordBatch, error) bool) error {
	if b.n == 0 { // makes no new arrays: there may be very many bad rows, and columns
		empty(b.made)
		return nil
	}
	cols := make([]arrow.Array, len(b.made))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	nulls := map[int]arrow.Array{} // columns without a value share one array per type, by alike
	defer func() {
		for _, a := range nulls {
			a.Release()
		}
	}()
	for k, m := range b.made {
		if m.Len() == 0 {
			first := b.alike[k]
			if nulls[first] == nil {
				nulls[first] = array.MakeArrayOfNull(b.mem, m.Type(), b.n)
			}
			cols[k] = nulls[first]
			cols[k].Retain()
			continue
		}
		balance(m)
		whole := m.NewArray()
		cols[k] = array.NewSlice(whole, 0, int64(b.n))
		whole.Release()
	}
	n := b.n
	b.n = 0
	batch := array.NewRecordBatch(b.schema, cols, int64(n))
	defer batch.Release()
	if !yield(batch, nil) {
		return errStop
	}
	return nil
}

// balance appends to the children of a builder in which a row failed, so that their lengths agree.
func balance(b array.Builder) {
	switch b := b.(type) {
	case *array.StructBuilder:
		for i := range b.NumField() {
			fillUp(b.FieldBuilder(i), b.Len())
		}
	case *array.MapBuilder:
		n := max(b.KeyBuilder().Len(), b.ItemBuilder().Len())
		fillUp(b.KeyBuilder(), n)
		fillUp(b.ItemBuilder(), n)
	case *array.FixedSizeListBuilder:
		fillUp(b.ValueBuilder(), b.Len()*int(b.Type().(*arrow.FixedSizeListType).Len()))
	case array.ListLikeBuilder:
		balance(b.ValueBuilder())
	}
}

func fillUp(b array.Builder, n int) {
	balance(b)
	for b.Len() < n {
		b.AppendEmptyValue()
	}
}

// rowError is the cause of an error about one row.
type rowError struct {
	err error
	row int64 // ordinal in the file
}

// LostRows returns the rows that the error costs, as ordinals in the row group, which is the file.
func (e *rowError) LostRows() (from, to int64) { return e.row, e.row + 1 }

func (e *rowError) Error() string { return e.err.Error() }
func (e *rowError) Unwrap() error { return e.err }

// linePath returns the path of a line, or of a column in it, in errors.
func linePath(line int64, column string) string {
	if column == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("line %d, column %q", line, column)
}

// types returns a schema for messages.
func types(sc *arrow.Schema) string {
	var b strings.Builder
	for i, f := range sc.Fields() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", f.Name, f.Type)
	}
	return b.String()
}
