// Package scan turns pages into record batches: it plans, fetches ahead, prunes, decodes, filters and assembles.
// It knows no format.
//
// The unit is the window: rows [a,b) of one row group. All columns are decoded into the window's vectors; a page
// that crosses b is decoded whole and its tail is carried into the next window, so no page is decoded twice.
// Filter columns are decoded first; pages of the other columns without a surviving row are not even fetched.
package scan

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Damaged says what happens to rows that cannot be read. Only errors of the classes Corrupt and Unsupported are
// excused, the latter unless there was nothing else: a file that is all of a codec we do not have is refused,
// not lost.
type Damaged uint8

const (
	Fail      Damaged = iota // the scan ends with the error
	SkipRows                 // rows with a lost cell are left out
	NullCells                // lost cells are null
)

// MostWorkers is how many workers a scan has at most: each has buffers of its own, and more than a few for each
// core gain nothing.
const MostWorkers = 1024

// Spec says what to read.
type Spec struct {
	Columns []string          // dotted paths; nil = all, empty = none (rows are still counted)
	Filter  *pred.Expr        // nil = all; applied exactly
	Rows    vec.Range         // positions of the unfiltered scan; zero = all
	Limit   int64             // rows that come out at most; 0 = no limit
	Batch   int               // rows of a batch at most; 0 = 65,536
	Damaged Damaged           //
	Lost    func(region.Loss) // told of every loss, from the goroutine that ranges; may be nil
	Alloc   memory.Allocator  // of the batches; nil = Go's
	Ahead   int64             // bytes read ahead per column; 0 = 256 KiB, -1 = none
	// Unordered gives up the order that the table promises: row groups come one after the other, which is faster.
	Unordered bool
	// Parallel is how many workers read, MostWorkers at most; 0 or 1: the goroutine that ranges does. Batches
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
	defaultAhead = 256 << 10 // of all columns together it should stay in the cache of a core
	// A window ends early when one column's vector is this large, so that strings fit Arrow's 32-bit offsets.
	maxVector = 256 << 20
	// What a budget of memory leaves at least: of a window's column, and of what is read ahead of one.
	leastVector = 64 << 10
	leastAhead  = 16 << 10
)

// Source is an open reader and what a scan needs beside it.
type Source struct {
	Reader   format.Reader
	Objects  *Objects   // opens data objects
	Dicts    *Dicts     // decoded dictionaries, shared by all scans
	Pages    *vec.Cache // decoded pages of which scans wanted only a few rows; nil = none is kept
	Limits   format.Limits
	NoVerify bool
}

// Schema is the schema of the batches that spec gives.
func Schema(r format.Reader, spec Spec) (*arrow.Schema, error) {
	p, err := newPlan(r, spec)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// Run reads. At most one error comes, last, with a nil batch. A batch is valid until the next step of the loop;
// who needs it longer calls Retain. Ranging again scans again. passed, if not nil, receives the number of rows
// (before the filter) of everything that was gone through.
func Run(ctx context.Context, src Source, spec Spec, passed *int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var s *sieve
		if spec.Damaged != Fail {
			s = &sieve{lost: spec.Lost, yield: yield}
			spec.Lost, yield = s.tell, s.give
		}
		p, err := newPlan(src.Reader, spec)
		if err != nil {
			yield(nil, err)
			return
		}
		r := &run{plan: p, src: src, out: newCollector(p, yield)}
		err = r.all(ctx)
		if passed != nil {
			*passed = r.base
		}
		if err == nil || errors.Is(err, errStop) {
			err = r.out.flush()
		}
		r.out.release()
		if err == nil && s != nil && p.filter == nil && p.spec.Rows == (vec.Range{}) {
			err = s.nothing()
		}
		if err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// sieve notes whether anything was read besides what needs something that is not known here.
type sieve struct {
	lost    func(region.Loss) // who else is told of losses; may be nil
	yield   func(arrow.RecordBatch, error) bool
	rows    int64 // that were given
	refused error // the first error of class Unsupported among the losses
	damaged bool  // there were others
}

func (s *sieve) tell(l region.Loss) {
	if !errors.Is(l.Err, fault.Unsupported) {
		s.damaged = true
	} else if s.refused == nil {
		s.refused = l.Err
	}
	if s.lost != nil {
		s.lost(l)
	}
}

func (s *sieve) give(b arrow.RecordBatch, err error) bool {
	if b != nil {
		s.rows += b.NumRows()
	}
	return s.yield(b, err)
}

// nothing is why nothing at all could be read, if that is no damage.
func (s *sieve) nothing() error {
	if s.rows > 0 || s.damaged {
		return nil
	}
	return s.refused
}

// Two ways to end without an error: there is nothing more to read, or nobody listens any more.
var (
	errStop = errors.New("stop")
	errLeft = errors.New("the loop was left")
)

type run struct {
	plan *plan
	src  Source
	out  *collector
	base int64 // rows of the row groups gone through
}

func (r *run) all(ctx context.Context) error {
	if r.plan.spec.Parallel > 1 && r.plan.spec.Rows == (vec.Range{}) { // positions are counted one by one
		return r.together(ctx)
	}
	if r.plan.spec.Pieces != nil {
		return r.pieces(ctx, func(t *task) error {
			if t.lost != nil {
				r.lose(*t.lost)
				return nil
			}
			return r.do(ctx, t)
		})
	}
	for part, err := range r.src.Reader.Parts(ctx, r.plan.query) {
		if err != nil {
			return err
		}
		groups, lost, err := r.groups(ctx, part)
		if err != nil {
			return err
		}
		if lost != nil {
			r.lose(*lost)
			r.base += max(0, part.Rows)
		}
		for _, c := range r.plan.clusters(groups, r.src.Reader.Order()) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := r.cluster(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups are the row groups of a part. A part whose row groups cannot even be listed is lost as a whole, if the
// damage policy reads on.
func (r *run) groups(ctx context.Context, part format.Part) ([]format.RowGroup, *region.Loss, error) {
	groups, err := r.src.Reader.RowGroups(ctx, part, r.plan.query)
	if err == nil || !r.excused(err) {
		return groups, nil, err
	}
	l := &region.Loss{Part: part.Ref, Rows: [2]int64{-1, -1}, Err: err}
	if part.Rows >= 0 {
		l.Rows, l.Exact = [2]int64{0, part.Rows}, true
	}
	return nil, l, nil
}

// cluster reads row groups whose keys overlap, or one.
func (r *run) cluster(ctx context.Context, groups []format.RowGroup) error {
	if len(groups) == 1 {
		return r.group(ctx, groups[0])
	}
	return r.merge(ctx, groups)
}

// group reads the rows of one row group that the spec wants.
func (r *run) group(ctx context.Context, g format.RowGroup) error {
	local := r.plan.rowsOf(r.base)
	if local.To <= 0 {
		return errStop // the wanted rows are behind us
	}
	local.From = max(0, local.From)
	if r.plan.logical {
		local = vec.Range{From: 0, To: math.MaxInt64}
	}
	if g.Rows >= 0 {
		local.To = min(local.To, g.Rows)
		if local.Len() == 0 {
			r.base += g.Rows
			return nil
		}
	}
	n, err := r.read(ctx, g, local)
	if err != nil {
		return err
	}
	if g.Rows >= 0 && !r.plan.logical {
		n = g.Rows
	}
	r.base += n
	return nil
}

// read dispatches on what the reader can do. It returns how many rows it went through, counted from row 0.
func (r *run) read(ctx context.Context, g format.RowGroup, rows vec.Range) (int64, error) {
	ranges, overlay, err := r.narrow(ctx, g, rows)
	if err != nil {
		return 0, err
	}
	if len(ranges) == 0 {
		if r.plan.logical {
			return 0, nil
		}
		return rows.To, nil
	}
	if b, ok := r.src.Reader.(format.Batcher); ok {
		return r.batched(ctx, b, g, ranges)
	}
	w, err := newWindows(ctx, r, g, ranges, overlay)
	if err != nil {
		return 0, err
	}
	defer w.release()
	for _, rg := range ranges {
		if err := w.through(ctx, rg); err != nil {
			return 0, err
		}
	}
	if r.plan.logical {
		return w.live, nil
	}
	return w.at, nil
}

// narrow is which of the rows of g have to be looked at, and what changed in g. What it passes over it tells,
// if somebody listens.
func (r *run) narrow(ctx context.Context, g format.RowGroup, rows vec.Range) (ranges vec.Ranges,
	overlay format.Overlay, err error) {
	ranges = vec.Ranges{rows}
	if o, ok := r.src.Reader.(format.Overlayer); ok {
		overlay, err = o.Overlay(ctx, g, r.plan.query.Cols)
		if err != nil && r.excused(err) { // nobody knows which of the rows are as they were
			l := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name,
				Rows: [2]int64{rows.From, min(rows.To, g.Rows)}, Exact: true, Err: err}
			if g.Rows < 0 {
				l.Rows, l.Exact = [2]int64{-1, -1}, false
			}
			r.lose(l)
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if r.plan.filter == nil || r.plan.logical && r.plan.spec.Rows != (vec.Range{}) {
		return ranges, overlay, nil
	}
	if r.plan.prunes(g, overlay, -1, nil) {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: r.plan.whyGroup(g, overlay)})
		return nil, overlay, nil
	}
	nw, ok := r.src.Reader.(format.Narrower)
	if !ok {
		return ranges, overlay, nil
	}
	narrowed, err := nw.Narrow(ctx, g, r.plan.filter)
	switch {
	case err == nil:
		ranges = ranges.Intersect(narrowed)
	case r.plan.spec.Damaged == Fail || !errors.Is(err, fault.Corrupt):
		return nil, nil, err
	} // a damaged index narrows nothing; the data is read instead
	return ranges, overlay, nil
}

// rowsOf is the wanted rows, counted from base.
func (p *plan) rowsOf(base int64) vec.Range {
	if p.spec.Rows == (vec.Range{}) {
		return vec.Range{From: 0, To: math.MaxInt64}
	}
	return vec.Range{From: p.spec.Rows.From - base, To: p.spec.Rows.To - base}
}
