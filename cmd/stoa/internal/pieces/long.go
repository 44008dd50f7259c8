package pieces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/content"
	"stoa/pred"
	"stoa/region"
)

// Long is the writing of one table of Iceberg or Delta in one go, by units as the files of Write, such that a run that
// was killed can be resumed.
type Long struct {
	pieces
	of    string
	sink  *catchup.Building
	w     *stoa.Writer
	sum   *content.Summer // of the rows; nil: there is none
	parts []int           // of each unit that are recorded
	rows  int64           // of earlier runs
	bytes int64           // in files, as of the last pause

	damaged bool  // the source is, so that the table is not written
	lossy   bool  // rows were lost
	read    int64 // rows that this run has read
}

// taken is the part of a unit that was written until a pause.
type taken struct {
	Unit  int             `json:"unit"`
	N     int             `json:"n"` // number of the part: without those before it, its rows are not the next ones
	Rows  int64           `json:"rows"`
	Last  []pred.Value    `json:"last,omitempty"` // the primary key of the last row
	End   bool            `json:"end,omitempty"`  // there are no more
	Sum   *content.Sum    `json:"sum,omitempty"`
	State json.RawMessage `json:"state"` // of the writer
}

// Begin begins such a table, or goes on with it. It returns nil for one that is so small that it need not be resumed,
// and where there is another table already.
func Begin(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, sum *content.Summer, o Options) (*Long,
	error) {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return nil, err
	}
	l := &Long{pieces: pieces{Options: o, a: a, t: t, spec: spec, sc: sc}, sum: sum}
	if err := l.plan(ctx); err != nil { // what cannot be planned is read in one go; other errors recur
		return nil, ctx.Err()
	}
	total := int64(0)
	for _, u := range l.units {
		if total += u.Bytes; u.Sources[0].Stamp == "" { // a stream: it does not come again
			return nil, nil
		}
	}
	if total <= o.Target {
		return nil, nil
	}
	if l.of, err = sumOfValues(o.Of, l.units); err != nil {
		return nil, err
	}
	l.sink, err = catchup.Build(ctx, a.Remote(), o.Out, a.SingleWriter)
	if l.sink == nil || err != nil {
		return nil, err
	}
	if err = l.create(ctx); err != nil {
		l.sink.Release()
		return nil, err
	}
	return l, nil
}

// create creates the table, and takes over what earlier runs have recorded.
func (l *Long) create(ctx context.Context) error {
	held, err := l.sink.Held(ctx)
	if err != nil {
		return err
	}
	if held && !l.Resume {
		return Held(l.sink.Place())
	}
	l.Create.Sink = l.sink
	if l.w, err = stoa.Create(ctx, l.Out, l.sc, l.Create); err != nil {
		return err
	}
	l.done, l.parts = make([]unitDone, len(l.units)), make([]int, len(l.units))
	return l.sink.Resume(ctx, l.of, func(state []byte) (bool, error) {
		var x taken
		if json.Unmarshal(state, &x) != nil || x.Unit < 0 || x.Unit >= len(l.units) {
			return false, nil
		}
		u := &l.done[x.Unit]
		if u.end || x.N != l.parts[x.Unit] || (l.sum != nil) != (x.Sum != nil) ||
			!x.End && (len(l.key) == 0 || len(x.Last) != len(l.key)) {
			return false, nil
		}
		if err := l.w.Resume(x.State); err != nil {
			return false, err
		}
		if l.sum != nil {
			l.sum.AddSum(*x.Sum)
		}
		u.last, u.end = x.Last, x.End
		l.parts[x.Unit]++
		l.rows += x.Rows
		return true, nil
	})
}

// Write writes rows that Rows has returned.
func (l *Long) Write(ctx context.Context, b arrow.RecordBatch) error { return l.w.Write(ctx, b) }

// Close makes the table visible. What is not what went in is removed, so that no run goes on with it.
func (l *Long) Close(ctx context.Context) (format.Summary, error) {
	defer l.sink.Release()
	if n := l.rows + l.read; l.rows > 0 && !l.lossy && l.Create.Rows >= 0 && n != l.Create.Rows {
		return format.Summary{}, errors.Join(fmt.Errorf("%s: the source has %d rows, and what earlier runs have "+
			"recorded and this one has read are %d: begin anew", l.sink.Place(), l.Create.Rows, n),
			l.sink.Discard(context.WithoutCancel(ctx)))
	}
	s, err := l.w.Close(ctx)
	if wrong := new(stoa.UnprovenError); errors.As(err, &wrong) {
		err = errors.Join(err, l.sink.Discard(context.WithoutCancel(ctx)))
	}
	return s, err
}

// Abort keeps what another run can go on with, and removes the rest.
func (l *Long) Abort(ctx context.Context) error {
	defer l.sink.Release()
	ctx = context.WithoutCancel(ctx)
	if l.damaged { // another run would not come further
		return errors.Join(l.sink.Discard(ctx), l.w.Abort(ctx))
	}
	err := l.w.Abort(ctx)
	if held, heldErr := l.sink.Held(ctx); held && heldErr == nil {
		l.a.Note("%s has what was complete: --resume goes on after it", l.sink.Place())
	}
	return err
}

// Before returns how many rows earlier runs have written.
func (l *Long) Before() int64 { return l.rows }

// Rows reads the rows that earlier runs have not written. The caller writes each batch before it asks for the next one.
func (l *Long) Rows(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for i := range l.units {
			if l.done[i].end {
				continue
			}
			u := &longUnit{l: l, n: i}
			if !u.rows(ctx, yield) {
				return
			}
			if err := u.pause(ctx, true); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Written reads the rows that earlier runs have written once more, from the source.
func (l *Long) Written(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for i, d := range l.done {
			spec := l.spec
			switch {
			case d.end:
			case d.last == nil:
				continue
			default:
				spec.Filter = pred.And(spec.Filter, pred.Not(afterKey(nil, l.sc, l.key, d.last)))
			}
			spec.Lost = func(region.Loss) {}
			for b, err := range l.t.ScanSplit(ctx, l.units[i], spec) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// longUnit reads the rest of a unit.
type longUnit struct {
	l      *Long
	n      int
	rowsIn int64 // since the last pause
	sum    content.Sum
	last   []pred.Value
	lossy  bool // rows were lost: the next run has to report them, too, and so reads the unit again
}

func (u *longUnit) rows(ctx context.Context, yield func(arrow.RecordBatch, error) bool) bool {
	l, spec := u.l, u.l.spec
	if last := l.done[u.n].last; last != nil {
		spec.Filter = afterKey(spec.Filter, l.sc, l.key, last)
	}
	spec.Lost = func(x region.Loss) {
		u.lossy, l.lossy = true, true
		if l.spec.Lost != nil {
			l.spec.Lost(x)
		}
	}
	if l.sum != nil {
		u.sum = l.sum.Sum()
	}
	for b, err := range l.t.ScanSplit(ctx, l.units[u.n], spec) {
		if err == nil {
			u.rowsIn, l.read = u.rowsIn+b.NumRows(), l.read+b.NumRows()
			u.last = keyOf(b, l.key)
		}
		l.damaged = errors.Is(err, fault.Corrupt)
		if !yield(b, err) || err != nil {
			return false
		}
		if u.last == nil || l.sink.Bytes()-l.bytes < l.Target {
			continue
		}
		if err := u.pause(ctx, false); err != nil {
			yield(nil, err)
			return false
		}
	}
	return true
}

// pause ends the files, and records them unless rows were lost.
func (u *longUnit) pause(ctx context.Context, end bool) error {
	l := u.l
	state, err := l.w.Pause(ctx)
	if err != nil {
		return err
	}
	x := taken{Unit: u.n, N: l.parts[u.n], Rows: u.rowsIn, Last: u.last, End: end, State: state}
	if l.sum != nil {
		now := l.sum.Sum()
		since := now.Since(u.sum)
		x.Sum, u.sum = &since, now
	}
	u.rowsIn, l.bytes = 0, l.sink.Bytes()
	if u.lossy = u.lossy || state == nil; u.lossy {
		l.sink.Forget()
		return nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	l.parts[u.n]++
	return l.sink.Record(ctx, l.of, text)
}
