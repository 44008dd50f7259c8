package scan

import (
	"context"
	"errors"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/region"
	"stoa/vec"
)

// A parallel scan is cut into tasks: a cluster of row groups, or some rows of one row group. Workers take tasks in
// order, each keeps a few batches ready, and the goroutine that ranges gives them out in order. The worker of the task
// whose batches are due never waits for another, so nothing can lock up, and memory is that of a few batches a worker.

// result is a batch, what was lost before it, or why there is no more.
type result struct {
	batch  arrow.RecordBatch
	losses []region.Loss
	err    error
}

// parallel reads by several workers.
func (r *run) parallel(outer context.Context) error {
	ctx, cancel := context.WithCancel(outer)
	cut := true                                     // the queue ends before the scan does; good once it is closed
	queue := make(chan *task, r.Plan.Spec.Parallel) // in the order of rows
	work := make(chan *task)
	var all sync.WaitGroup
	defer func() {
		cancel()
		for t := range queue {
			t.drain()
		}
		all.Wait()
	}()
	all.Go(func() { cut = !r.dispatch(ctx, queue, work) })
	for range r.Plan.Spec.Parallel {
		all.Go(func() {
			for t := range work {
				r.worker(ctx, t)
			}
		})
	}
	for t := range queue {
		if err := r.collect(t); err != nil {
			t.drain()
			return err
		}
		if !t.whole { // a worker gives up only when the scan is cancelled, and that must not look like the end
			return ended(outer)
		}
	}
	all.Wait()
	if cut {
		return ended(outer)
	}
	return nil
}

// ended is why a scan ended before its end.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fault.Bugf("a worker ended before its task")
}

// dispatch gives every task to the queue first, so that the order is kept, then to a worker. It reports whether it gave
// all.
func (r *run) dispatch(ctx context.Context, queue, work chan<- *task) bool {
	defer close(queue)
	defer close(work)
	for t, err := range r.tasks(ctx) {
		t.out = make(chan result, plan.Ready)
		if err == nil {
			err = ctx.Err()
		}
		select {
		case queue <- t:
		case <-ctx.Done():
			return false
		}
		if err != nil {
			t.out <- result{err: err}
			close(t.out)
			return true
		}
		select {
		case work <- t:
		case <-ctx.Done():
			close(t.out)
			return false
		}
	}
	return true
}

// heldLosses is how many losses wait for the batch that they are given on with: there may be no row between
// millions of them.
const heldLosses = 1024

// worker reads a task into its channel. A panic must not end the program from here, where nobody can catch it.
func (r *run) worker(ctx context.Context, t *task) {
	defer close(t.out)
	defer func() {
		if p := recover(); p != nil {
			select {
			case t.out <- result{err: fault.Panicked(p, "reading")}:
			case <-ctx.Done():
			}
		}
	}()
	var losses []region.Loss
	workerPlan := *r.Plan
	send := func(b arrow.RecordBatch, err error) bool {
		if b != nil {
			b.Retain()
		}
		select {
		case t.out <- result{b, losses, err}:
			losses = nil
			return true
		case <-ctx.Done():
			if b != nil {
				b.Release()
			}
			return false
		}
	}
	workerPlan.Spec.Lost = func(l region.Loss) {
		if t.clip(&l) {
			losses = append(losses, l)
		}
		if len(losses) >= heldLosses {
			send(nil, nil) // if nobody takes them any more, the next batch says so
		}
	}
	w := &run{Shared: window.Shared{Plan: &workerPlan, Src: r.Src, Out: emit.New(&workerPlan, send)}}
	err := w.read(ctx, t)
	if err == nil || errors.Is(err, emit.ErrStop) {
		err = w.Out.Flush()
	}
	w.Out.Release()
	switch {
	case errors.Is(err, emit.ErrLeft): // cancelled
	case err == nil || errors.Is(err, emit.ErrStop):
		t.whole = len(losses) == 0 || send(nil, nil)
	default:
		t.whole = send(nil, err)
	}
}

// clip cuts a loss to the task's rows: a page that two tasks read is lost once.
// It reports whether anything is left.
func (t *task) clip(l *region.Loss) bool {
	if t.rows == (vec.Range{}) || l.Rows[1] < 0 {
		return true
	}
	l.Rows[0], l.Rows[1] = max(l.Rows[0], t.rows.From), min(l.Rows[1], t.rows.To)
	return l.Rows[0] < l.Rows[1]
}

// collect gives out a task's batches.
func (r *run) collect(t *task) error {
	for x := range t.out {
		for _, l := range x.losses {
			r.Lose(l)
		}
		if x.err != nil {
			return x.err
		}
		if x.batch == nil {
			continue
		}
		err := r.emit(x.batch)
		x.batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// emit gives out a batch, or what the limit leaves of it.
func (r *run) emit(b arrow.RecordBatch) error {
	c := r.Out
	n := b.NumRows()
	if limit := r.Plan.Spec.Limit; limit > 0 && c.Given+n > limit {
		n = limit - c.Given
		b = b.NewSlice(0, n)
		defer b.Release()
	}
	c.Given += n
	if !c.Yield(b, nil) {
		return emit.ErrLeft
	}
	if c.Full() {
		return emit.ErrStop
	}
	return nil
}

// drain releases what nobody will read. Its worker ends because the scan's context is cancelled.
func (t *task) drain() {
	for x := range t.out {
		if x.batch != nil {
			x.batch.Release()
		}
	}
}
