package plan

import (
	"slices"
	"sync/atomic"

	"stoa/fault"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Piece is a part of a scan that can be read on its own: row groups of one part, whose rows are merged if their keys
// overlap, or some rows of one row group. The pieces of a scan, in order, make up the scan.
type Piece struct {
	Part   string    `json:"part"`            // the reader's name for it
	Stamp  string    `json:"stamp,omitempty"` // the state of the part when the piece was cut; another one is an error
	Groups []int     `json:"groups"`          // by index, in order
	Rows   vec.Range `json:"rows,omitzero"`   // of the only row group; zero = all
	Bytes  int64     `json:"bytes"`           // stored, approximately
	Count  int64     `json:"count"`           // physical rows; -1: not known
}

// Check returns an error, naming the invalid field below field, if Cut cannot have returned the piece.
func (p Piece) Check(field string) error {
	bad := func(name, format string, args ...any) error {
		return fault.New(fault.Invalid, fault.Span{Object: p.Part}, field+"."+name, format, args...)
	}
	if len(p.Groups) == 0 {
		return bad("groups", "the piece names no row group")
	}
	for i, g := range p.Groups {
		if slices.Contains(p.Groups[:i], g) {
			return bad("groups", "row group %d is named twice", g)
		}
	}
	if p.Rows == (vec.Range{}) { // all rows
		return nil
	}
	if p.Rows.From < 0 || p.Rows.From >= p.Rows.To {
		return bad("rows", "from %d to %d are no rows", p.Rows.From, p.Rows.To)
	}
	if len(p.Groups) > 1 {
		return bad("rows", "rows %d to %d are of one row group, %d are named", p.Rows.From, p.Rows.To, len(p.Groups))
	}
	return nil
}

// Divide divides the rows of a single row group into equal pieces.
func (p Piece) Divide(target int64, single bool) []Piece {
	n := int64(1)
	if single && p.Count > 0 && target > 0 {
		n = min((p.Bytes+target-1)/target, p.Count)
	}
	if n <= 1 {
		return []Piece{p}
	}
	var out []Piece
	for i := range n {
		one := p
		one.Rows = vec.Range{From: p.Rows.From + p.Count*i/n, To: p.Rows.From + p.Count*(i+1)/n}
		one.Count, one.Bytes = one.Rows.Len(), p.Bytes/n
		out = append(out, one)
	}
	return out
}

// Damaged is what happens to rows that cannot be read. It excuses only errors of the classes Corrupt and Unsupported,
// and the latter only if some of the data could be read or is corrupt: a file that uses only a codec we lack is
// refused, not lost.
type Damaged uint8

const (
	Fail      Damaged = iota // the scan ends with the error
	SkipRows                 // rows with a lost cell are left out
	NullCells                // lost cells are null
)

// MaxWorkers is the maximum number of workers of a scan: each has buffers of its own, and more than a few per core gain
// nothing.
const MaxWorkers = 1024

// Spec selects what to read.
type Spec struct {
	Columns []string          // dotted paths; nil = all, empty = none (rows are still counted)
	Filter  *pred.Expr        // nil = all; applied exactly
	Rows    vec.Range         // positions of the unfiltered scan; zero = all
	Limit   int64             // largest number of rows returned; 0 = no limit
	Batch   int               // largest number of rows in a batch; 0 = 65,536
	Damaged Damaged           //
	Lost    func(region.Loss) // called for every loss, on the goroutine that ranges; may be nil
	Alloc   memory.Allocator  // of the batches; nil = Go's
	Ahead   int64             // bytes read ahead per column; 0 = 256 KiB, -1 = none
	// Loose allows rows for which the filter is not true: the caller filters again.
	Loose bool
	// Unordered gives up the order that the table promises: row groups follow one another, which is faster.
	Unordered bool
	// Parallel is the number of workers, at most MaxWorkers; with 0 or 1 the goroutine that ranges reads. Batches come
	// in the same order, though not necessarily cut at the same rows. Alloc must then be safe for concurrent use, as
	// Go's allocator and a Pool are.
	Parallel int
	// Memory is roughly how many bytes all workers together may hold: windows become shorter, less is read ahead, and
	// if that is not enough fewer workers read. 0 = no such limit: windows of Batch rows. Pages are always decoded
	// whole. A Batcher is told how large its batches may be.
	Memory int64
	// Pieces are the parts of the table to read, in the order in which Cut returned them; nil = all. Rows must then be
	// zero.
	Pieces []Piece
	// Trace, if not nil, records which pages are read, and how.
	Trace *Trace
	Work  *Work // counts pages; may be nil
	// Codes are top-level columns of strings that are returned as dictionary arrays: see Coded.
	Codes []string
}

// Work counts the pages of the wanted rows, in the columns of a scan. Formats that return finished batches have none.
// It is safe for concurrent use, and may count several scans.
type Work struct {
	Read    atomic.Int64
	Skipped atomic.Int64 // because bounds, an index or the filter's other columns exclude their rows
}

const (
	defaultBatch = 64 << 10
	DefaultAhead = 256 << 10 // those of all columns together should fit into the cache of a core
	// A window ends early when the vector of one column reaches this size, so that strings fit Arrow's 32-bit offsets.
	maxVector = 256 << 20
	// The minimum that a memory budget leaves for a window's column, and for reading ahead in one.
	MinVector = 64 << 10
	MinAhead  = 16 << 10
)
