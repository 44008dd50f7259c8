package scan

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/region"
	"stoa/vec"
)

// Each reads the rows that spec selects with spec.Parallel workers, each of which calls do with its own batches, in any
// order: nothing is handed from one goroutine to another. A batch is valid during the call. An error ends the scan and
// is returned; of several places that cannot be read, it is the first. Spec.Lost is called by one goroutine at a time.
// A scan with Rows or a Limit has one worker.
func Each(ctx context.Context, src fetch.Source, spec plan.Spec, do func(worker int, b arrow.RecordBatch) error) error {
	if spec.Parallel <= 1 || spec.Limit > 0 || spec.Rows != (vec.Range{}) {
		spec.Parallel = 1
		for b, err := range Run(ctx, src, spec, nil) {
			if err == nil {
				err = do(0, b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	e := &each{do: do, lost: spec.Lost}
	spec.Lost = e.lose
	p, err := plan.New(src.Reader, spec)
	if err != nil {
		return err
	}
	ctx, e.cancel = context.WithCancel(ctx)
	defer e.cancel()
	r := &run{Shared: window.Shared{Plan: p, Src: src}}
	if err := e.run(ctx, r); err != nil {
		return err
	}
	if p.Spec.Damaged != plan.Fail && p.Filter == nil && e.rows == 0 && !e.damaged {
		return e.refused // see refusal
	}
	return nil
}

// each is what the workers of Each share.
type each struct {
	do     func(worker int, b arrow.RecordBatch) error
	lost   func(region.Loss)
	cancel func()

	mu      sync.Mutex
	failed  error // what ends the scan
	at      int   // the task that failed: what comes before it is still read, unless ended
	ended   bool  // by something else than damage; what other workers then cannot read is not the cause
	refused error // the first loss of something unsupported
	damaged bool  // there were other losses
	rows    int64
}

func (e *each) lose(l region.Loss) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !errors.Is(l.Err, fault.Unsupported) {
		e.damaged = true
	} else if e.refused == nil {
		e.refused = l.Err
	}
	if e.lost != nil {
		e.lost(l)
	}
}

// damage is the error of a task that could not be read. Earlier tasks, which are being read, may have an earlier one.
type damage struct{ error }

// fail ends the scan with the error of task i. Damage leaves the tasks before it to end by themselves.
func (e *each) fail(i int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, damaged := err.(damage)
	if damaged {
		err = d.error
	} else {
		defer e.cancel()
	}
	if e.failed == nil || damaged && i < e.at && !e.ended {
		e.failed, e.at = err, i
	}
	e.ended = e.ended || !damaged
}

// over reports whether an earlier task than i has failed.
func (e *each) over(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed != nil && i >= e.at
}

func (e *each) run(ctx context.Context, r *run) error {
	type numbered struct {
		*task
		i int
	}
	work := make(chan numbered)
	var all sync.WaitGroup
	for k := range r.Plan.Spec.Parallel {
		all.Go(func() {
			for t := range work {
				if err := e.read(ctx, r, k, t.i, t.task); err != nil {
					e.fail(t.i, err)
				}
			}
		})
	}
	i := 0
	for t, err := range r.tasks(ctx) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			e.fail(i, damage{err})
			break
		}
		select {
		case work <- numbered{t, i}:
		case <-ctx.Done():
		}
		if i++; e.over(i) {
			break
		}
	}
	close(work)
	all.Wait()
	if e.failed == nil {
		return ctx.Err()
	}
	return e.failed
}

// read reads task i on worker k. It recovers from panics, which nobody could catch here.
func (e *each) read(ctx context.Context, r *run, k, i int, t *task) (err error) {
	if err := ctx.Err(); err != nil || e.over(i) {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fault.Panicked(p, "reading")
		}
	}()
	own := *r.Plan
	own.Spec.Lost = func(l region.Loss) {
		if t.clip(&l) {
			e.lose(l)
		}
	}
	var rows int64
	var failed error
	out := emit.New(&own, func(b arrow.RecordBatch, err error) bool {
		if err == nil {
			rows += b.NumRows()
			err = e.do(k, b)
		}
		failed = err
		return err == nil && !e.over(i)
	})
	defer out.Release()
	w := &run{Shared: window.Shared{Plan: &own, Src: r.Src, Out: out}}
	if err = w.read(ctx, t); err == nil || errors.Is(err, emit.ErrStop) {
		err = out.Flush()
	}
	e.mu.Lock()
	e.rows += rows
	e.mu.Unlock()
	switch {
	case failed != nil:
		return failed
	case err == nil || errors.Is(err, emit.ErrLeft):
		return nil
	}
	return damage{err}
}
