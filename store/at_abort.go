package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// endings are the functions that AbortAll calls besides removing local files.
var endings struct {
	sync.Mutex
	next    int
	of      map[int]func(context.Context)
	stopped bool
}

// endingTime is how long all of them together may take.
const endingTime = 3 * time.Second

// Committed counts the commits of all sinks of the process: one that ends early thus knows whether what it was writing
// became whole at the last moment.
var Committed atomic.Int64

// Stopped reports whether an error is that of something that was to be written after AbortAll.
func Stopped(err error) bool { return errors.Is(err, errStopped) }

// AtAbort makes AbortAll call f, which removes temporary data outside of the local file system as far as it can within
// a few seconds, the lifetime of ctx. forget cancels that. After AbortAll it returns an error: nothing new may be
// started.
func AtAbort(f func(ctx context.Context)) (forget func(), err error) {
	endings.Lock()
	defer endings.Unlock()
	if endings.stopped {
		return func() {}, errStopped
	}
	if endings.of == nil {
		endings.of = map[int]func(context.Context){}
	}
	no := endings.next
	endings.next++
	endings.of[no] = f
	return func() {
		endings.Lock()
		defer endings.Unlock()
		delete(endings.of, no)
	}, nil
}

// abortElsewhere calls the functions that were passed to AtAbort.
func abortElsewhere() {
	endings.Lock()
	endings.stopped = true
	all := endings.of
	endings.of = nil
	endings.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endingTime)
	defer cancel()
	done := make(chan struct{})
	var work sync.WaitGroup
	for _, f := range all {
		work.Go(func() { f(ctx) })
	}
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
