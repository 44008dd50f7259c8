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

// A parallel scan is divided into tasks: a cluster of row groups, or some rows of one row group. Workers start tasks in
// order, each keeps a few batches ready, and the goroutine that ranges yields them in order. The worker of the task
// whose batches are due never waits for another, so there is no deadlock, and memory is limited to a few batches per
// worker.

// result is a batch, the losses before it, or the error that ends the task.
type result struct {
	batch  arrow.RecordBatch
	losses []region.Loss
	err    error
}

// parallel runs the scan with several workers.
func (r *run) parallel(outer context.Context) error {
	ctx, cancel := context.WithCancel(outer)
	cut := true                                     // the queue ends before the scan; valid once the queue is closed
	queue := make(chan *task, r.Plan.Spec.Parallel) // in row order
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
		if !t.whole { // a worker gives up only when the scan is cancelled, which must not look like the end
			return ended(outer)
		}
	}
	all.Wait()
	if cut {
		return ended(outer)
	}
	return nil
}

// ended returns why a scan stopped before its end.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fault.Bugf("a worker ended before its task")
}

// dispatch sends every task to the queue first, so that the order is kept, then to a worker. It reports whether it sent
// all of them.
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

// heldLosses is how many losses wait for the next batch: millions of losses may follow each other without a row between
// them.
const heldLosses = 1024

// worker reads a task into its channel. It recovers from panics, which nobody could catch here and which would end the
// program.
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
			send(nil, nil) // if the consumer is gone, sending the next batch fails, too
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

// clip cuts a loss to the task's rows, because a page that two tasks read is lost only once. It reports whether
// anything is left.
func (t *task) clip(l *region.Loss) bool {
	if t.rows == (vec.Range{}) || l.Rows[1] < 0 {
		return true
	}
	l.Rows[0], l.Rows[1] = max(l.Rows[0], t.rows.From), min(l.Rows[1], t.rows.To)
	return l.Rows[0] < l.Rows[1]
}

// collect emits the batches of a task.
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

// emit emits a batch, or as much of it as the limit allows.
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

// drain releases the remaining results. The worker ends because the scan's context is cancelled.
func (t *task) drain() {
	for x := range t.out {
		if x.batch != nil {
			x.batch.Release()
		}
	}
}
