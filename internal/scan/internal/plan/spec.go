package plan

import (
	"slices"

	"stoa/fault"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Piece is a part of a scan that can be read by itself: row groups of one part, whose rows come merged if their keys
// overlap, or some rows of one row group. The pieces of a scan, in order, are the scan.
type Piece struct {
	Part   string    `json:"part"`            // as the reader names it
	Stamp  string    `json:"stamp,omitempty"` // what the part was when the piece was cut; another one is an error
	Groups []int     `json:"groups"`          // by index, in order
	Rows   vec.Range `json:"rows,omitzero"`   // of the only group; zero = all
	Bytes  int64     `json:"bytes"`           // stored, about
	Count  int64     `json:"count"`           // physical rows; -1 not known
}

// Check is an error, with the name of its field below field, if the piece is none that Cut gives.
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
	if p.Rows == (vec.Range{}) { // all
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

// Divide cuts the rows of a single row group into equal pieces.
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

// Damaged says what happens to rows that cannot be read. Only errors of the classes Corrupt and Unsupported are
// excused, the latter unless there was nothing else: a file that is all of a codec we do not have is refused,
// not lost.
type Damaged uint8

const (
	Fail      Damaged = iota // the scan ends with the error
	SkipRows                 // rows with a lost cell are left out
	NullCells                // lost cells are null
)

// MaxWorkers is how many workers a scan has at most: each has buffers of its own, and more than a few for each
// core gain nothing.
const MaxWorkers = 1024

// Spec says what to read.
type Spec struct {
	Columns []string          // dotted paths; nil = all, empty = none (rows are still counted)
	Filter  *pred.Expr        // nil = all; applied exactly
	Rows    vec.Range         // positions of the unfiltered scan; zero = all
	Limit   int64             // rows that come out at most; 0 = no limit
	Batch   int               // rows of a batch at most; 0 = 65,536
	Damaged Damaged           //
	Lost    func(region.Loss) // receives every loss, from the goroutine that ranges; may be nil
	Alloc   memory.Allocator  // of the batches; nil = Go's
	Ahead   int64             // bytes read ahead per column; 0 = 256 KiB, -1 = none
	// Unordered gives up the order that the table promises: row groups come one after the other, which is faster.
	Unordered bool
	// Parallel is how many workers read, MaxWorkers at most; 0 or 1: the goroutine that ranges does. Batches
	// come in the same order, though not cut in the same places. Alloc must then be safe for concurrent use, as
	// Go's and a Pool are.
	Parallel int
	// Memory is about how many bytes all workers together may hold: windows end earlier, less is read ahead,
	// and if that is not enough fewer workers read. 0 = no such limit: windows of Batch rows. Pages are decoded
	// whole. A Batcher is told how large its batches may be.
	Memory int64
	// Pieces are what of the table is read, in the order in which Cut gave them; nil = all. Rows must then be zero.
	Pieces []Piece
	// Trace, if not nil, notes which pages are read, and how.
	Trace *Trace
}

const (
	defaultBatch = 64 << 10
	DefaultAhead = 256 << 10 // of all columns together it should stay in the cache of a core
	// A window ends early when one column's vector is this large, so that strings fit Arrow's 32-bit offsets.
	maxVector = 256 << 20
	// What a budget of memory leaves at the minimum: of a window's column, and of what is read ahead of one.
	MinVector = 64 << 10
	MinAhead  = 16 << 10
)
