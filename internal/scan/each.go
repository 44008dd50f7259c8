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
// order: nothing is handed from one goroutine to another. A batch is valid during the call. The first error ends the
// scan and is returned. Spec.Lost is called by one goroutine at a time. A scan with Rows or a Limit has one worker.
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
	failed  error // the first error
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

// fail ends the scan with err, unless it has ended already.
func (e *each) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		e.failed = err
	}
	e.cancel()
}

func (e *each) run(ctx context.Context, r *run) error {
	work := make(chan *task)
	var all sync.WaitGroup
	for k := range r.Plan.Spec.Parallel {
		all.Go(func() {
			for t := range work {
				if err := e.read(ctx, r, k, t); err != nil {
					e.fail(err)
				}
			}
		})
	}
	for t, err := range r.tasks(ctx) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			e.fail(err)
			break
		}
		select {
		case work <- t:
		case <-ctx.Done():
		}
	}
	close(work)
	all.Wait()
	if e.failed == nil {
		return ctx.Err()
	}
	return e.failed
}

// read reads a task on worker k. It recovers from panics, which nobody could catch here.
func (e *each) read(ctx context.Context, r *run, k int, t *task) (err error) {
	if err := ctx.Err(); err != nil {
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
		return err == nil
	})
	defer out.Release()
	w := &run{Shared: window.Shared{Plan: &own, Src: r.Src, Out: out}}
	if err = w.read(ctx, t); err == nil || errors.Is(err, emit.ErrStop) {
		err = out.Flush()
	}
	e.mu.Lock()
	e.rows += rows
	e.mu.Unlock()
	if failed != nil {
		return failed
	}
	return err
}
