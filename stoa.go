// Package stoa opens, writes, verifies, recovers and converts columnar files without the systems that wrote them.
//
//	t, err := stoa.Open(ctx, "block.cfile", stoa.OpenOptions{})
//	for batch, err := range t.Scan(ctx, stoa.ScanSpec{Columns: []string{"price"}}) { … }
//
// A file is a table; a table of many files is a table. In memory everything is Apache Arrow.
//
// # Ownership of batches
//
// A batch that a scan yields is valid until the next step of the loop. To keep it longer, call Retain inside the loop
// and Release when done. With the default allocator, values taken from a batch remain valid forever, also strings and
// []byte; but what shows a whole column, such as Int64Values or ValueOffsets, is valid only with the batch, because its
// memory is used for later batches. With a pool (see NewPool) strings, too, become invalid with the batch.
//
// # Errors
//
// Errors about the content of a file are *fault.Error, with a class (errors.Is(err, fault.Corrupt)) and the position.
package stoa

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/arrowschema"
	"stoa/internal/parked"
	"stoa/internal/positions"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Damaged is what happens to rows that cannot be read.
type Damaged = scan.Damaged

// The damage policies. They tolerate errors of class fault.Corrupt only; other errors always end a scan.
const (
	Fail      = scan.Fail
	SkipRows  = scan.SkipRows
	NullCells = scan.NullCells
)

// ScanSpec selects what a scan reads. The zero value reads everything.
type ScanSpec struct {
	Columns []string          // dotted paths; nil = all, empty = none (rows are still counted)
	Filter  *pred.Expr        // nil = all rows; applied exactly, see package pred
	Rows    vec.Range         // positions of the unfiltered scan, half-open; zero = all
	Limit   int64             // largest number of rows returned; 0: no limit
	Batch   int               // largest number of rows in a batch; 0: 65,536
	Damaged Damaged           // default Fail
	Lost    func(region.Loss) // called for every loss, on the goroutine that ranges; may be nil
	Alloc   memory.Allocator  // of the batches; nil = Go's
	Ahead   int64             // bytes a request per column; 0 = 256 KiB, -1 = a page; local files are not read ahead
	// Loose allows rows for which the filter is not true, where leaving them out costs more than passing them on: for
	// callers that filter again. Not with a Limit.
	Loose bool
	// Unordered gives up the order that the table promises (see Table.Keys): row groups whose keys overlap are not
	// merged, which is faster. Positions then count in the unmerged order.
	Unordered bool
	// Parallel is the number of workers, at most 1,024; with 0 or 1 only the goroutine that ranges reads. Batches come
	// in the same order, though not necessarily cut at the same rows. Alloc must then be safe for concurrent use, as
	// Go's allocator and NewPool's are. A scan with Rows is not divided.
	Parallel int
	// Memory is roughly how many bytes the scan may hold at a time, over all workers: windows become shorter, less is
	// read ahead, and if that is not enough fewer workers read. 0 limits only batches, to Batch rows and 256 MiB per
	// column. Pages are always decoded whole, and formats that return finished batches (Arrow, text) ignore Memory.
	Memory int64
	Work   *Work // counts pages that are read and skipped; may be nil
	// Dictionaries is how columns of strings are returned that are stored as codes of dictionaries. Splits ignore it.
	Dictionaries Dictionaries
}

// Dictionaries is how a scan returns dictionaries.
type Dictionaries uint8

const (
	DictionaryValues Dictionaries = iota // as strings
	// DictionaryCodes returns top-level columns of strings, whose metadata say that they have dictionaries, as
	// dictionary arrays with int32 indices, in every batch. Codes of one file share one dictionary, as it is stored:
	// values may be there that no row has, or twice. A batch whose strings are not all codes of one dictionary has
	// one of its own. Files that have no pages, such as Arrow's, and tables of lakes are returned as without.
	DictionaryCodes
)

// Work counts pages: see ScanSpec.
type Work = scan.Work

// NewPool returns an allocator that reuses the buffers of released batches and keeps up to 256 MiB of them. Reused
// buffers are several times faster to fill than fresh ones. It is safe for concurrent use.
func NewPool() memory.Allocator { return vec.NewPool(256 << 20) }

// Table is an open source: a file, several files with the same schema, or a directory that a format understands. It is
// safe for concurrent scans. Footers and indexes are read once.
type Table struct {
	schema   *arrow.Schema
	sources  []*source
	findings []region.Finding
	opened   OpenOptions
	parked   parked.Readers // of sources that are closed until they are planned
}

// Schema returns the table's schema.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// Findings returns the problems found so far that did not end anything: by opening with OpenOptions.Recover, and by
// readers that look at more than the selected rows (a log, a list of replicas). A scan may add to them.
func (t *Table) Findings() []region.Finding {
	out := slices.Clone(t.findings)
	for _, s := range t.sources {
		out = append(out, parked.Findings(s.reader)...)
	}
	for i := range out {
		out[i] = address.Finding(out[i])
	}
	return out
}

// Layout returns the layout of a table with one source; that of others is not known.
func (t *Table) Layout() (l format.Layout) {
	if len(t.sources) == 1 {
		l = format.LayoutOf(t.sources[0].reader)
	}
	return l
}

// Sources returns the table's files (or places) in the order of their rows, each with its format.
func (t *Table) Sources() (out []SourceInfo) {
	for _, s := range t.sources {
		out = append(out, SourceInfo{Name: s.name, Format: s.format.Name, Meta: address.Facts(s.reader.Meta()),
			Columns: s.reader.Columns(), Layout: format.LayoutOf(s.reader), Reached: format.ReachOf(s.reader)})
	}
	return out
}

// SourceInfo describes one of a table's sources.
type SourceInfo struct {
	Name    string
	Format  string
	Meta    []format.KeyValue
	Columns []format.Column
	Layout  format.Layout  // zero if there is none, or if it is not known
	Reached format.Reached // how far it was read; nil if its format does not know that
}

// ScanSchema returns the schema of the batches that Scan(spec) yields. A column is nullable if it is nullable in any of
// the sources.
func (t *Table) ScanSchema(spec ScanSpec) (*arrow.Schema, error) {
	sc, err := scan.Schema(t.sources[0].reader, t.internal(spec))
	if err != nil || len(t.sources) == 1 {
		return sc, err
	}
	fields, meta := slices.Clone(sc.Fields()), sc.Metadata()
	for i, s := range t.sources[1:] {
		if s.reopen != nil && s.reader == t.sources[i].reader {
			continue // it has the same columns as the one before
		}
		other, err := scan.Schema(s.reader, t.internal(spec))
		if err != nil {
			return nil, err
		}
		meta = arrowschema.Joined(meta, other.Metadata())
		for k, f := range other.Fields() {
			fields[k].Nullable = fields[k].Nullable || f.Nullable
		}
	}
	return arrow.NewSchema(fields, &meta), nil
}

func (s ScanSpec) internal() scan.Spec {
	return scan.Spec{Columns: s.Columns, Filter: s.Filter, Rows: s.Rows, Limit: s.Limit, Batch: s.Batch,
		Damaged: s.Damaged, Lost: address.Losses(s.Lost), Loose: s.Loose && s.Limit == 0,
		Alloc: s.Alloc, Ahead: s.Ahead, Unordered: s.Unordered, Parallel: s.Parallel, Memory: s.Memory,
		Work: s.Work}
}

// internal is spec.internal, with the names of the columns that are codes in some source.
func (t *Table) internal(spec ScanSpec) scan.Spec {
	out := spec.internal()
	for _, s := range t.sources {
		if spec.Dictionaries == DictionaryCodes && s.reader != nil {
			out.Codes = append(out.Codes, scan.Coded(s.reader)...)
		}
	}
	return out
}

// Scan reads the rows that spec selects, in order. At most one error is yielded, last, with a nil batch. If it is
// store.ErrChanged, a file changed while it was read, and earlier batches may come from both versions. Ranging again
// scans again.
func (t *Table) Scan(ctx context.Context, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	if len(t.sources) == 1 { // no schemas have to be reconciled
		return t.sources[0].run(ctx, t.internal(spec), nil)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		sc, err := t.ScanSchema(spec)
		if err != nil {
			yield(nil, err)
			return
		}
		left := spec
		for _, s := range t.sources {
			var passed, given int64
			for b, err := range s.run(ctx, t.internal(left), &passed) {
				if err != nil {
					yield(nil, err)
					return
				}
				given += b.NumRows()
				if !yieldAs(sc, b, yield) {
					return
				}
			}
			var more bool
			if left, more = left.after(passed, given); !more {
				return
			}
		}
	}
}

// yieldAs yields b under the table's schema, which may allow nulls where the source's does not.
func yieldAs(sc *arrow.Schema, b arrow.RecordBatch, yield func(arrow.RecordBatch, error) bool) bool {
	if b.Schema() == sc || b.Schema().Equal(sc) {
		return yield(b, nil)
	}
	as := array.NewRecordBatch(sc, b.Columns(), b.NumRows())
	defer as.Release()
	return yield(as, nil)
}

// after returns what remains to be read after a source of passed rows, of which given were returned; false: nothing.
func (s ScanSpec) after(passed, given int64) (ScanSpec, bool) {
	if s.Limit > 0 {
		if s.Limit -= given; s.Limit <= 0 {
			return s, false
		}
	}
	if s.Rows != (vec.Range{}) {
		s.Rows.From = max(0, s.Rows.From-passed)
		if s.Rows.To -= passed; s.Rows.To <= 0 {
			return s, false
		}
	}
	return s, true
}

// Count returns how many rows Scan(spec) yields. Where metadata suffice, no data is read; under SkipRows everything is,
// because rows may be lost in any column.
func (t *Table) Count(ctx context.Context, spec ScanSpec) (int64, error) {
	if n, known, err := t.countKnown(ctx, spec); known || err != nil {
		return n, err
	}
	if spec.Damaged != SkipRows {
		spec.Columns = []string{}
	}
	var n atomic.Int64
	if spec.Damaged == Fail && spec.divides() { // otherwise losses are told in order
		err := t.Each(ctx, spec, func(_ int, b arrow.RecordBatch) error { n.Add(b.NumRows()); return nil })
		return n.Load(), err
	}
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return n.Load(), err
		}
		n.Add(b.NumRows())
	}
	return n.Load(), nil
}

// countKnown is Count for a scan without a filter where metadata have the number of rows. As after every scan, the
// files must be unchanged.
func (t *Table) countKnown(ctx context.Context, spec ScanSpec) (n int64, known bool, err error) {
	for _, s := range t.sources {
		rows, known := scan.Count(ctx, s.reader, spec.internal())
		if !known || s.closed.Load() {
			return 0, false, nil
		}
		n += rows
	}
	if r := spec.Rows; r != (vec.Range{}) {
		n = max(0, min(n, r.To)-max(0, r.From))
	}
	if spec.Limit > 0 {
		n = min(n, spec.Limit)
	}
	for _, s := range t.sources {
		if err := s.checkUnchanged(ctx); err != nil {
			return 0, false, err
		}
	}
	return n, true, nil
}

// Rows returns how many rows the table has before any filter; -1 if that is known only by reading. No data is read.
func (t *Table) Rows(ctx context.Context) (int64, error) {
	var sum int64
	for i := range t.sources {
		n, err := t.SourceRows(ctx, i)
		if err != nil || n < 0 {
			return -1, err
		}
		sum += n
	}
	return sum, nil
}

// SourceRows is Rows of the i-th of Sources.
func (t *Table) SourceRows(ctx context.Context, i int) (int64, error) {
	return positions.Rows(ctx, t.sources[i].reader)
}

// Close closes the table's files. Batches remain valid; a scan that begins later yields an error of class Invalid.
func (t *Table) Close() error {
	var first error
	for _, s := range t.sources {
		if err := s.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
