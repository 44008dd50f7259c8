package store

import (
	"context"
	"sync"
	"time"
)

// endings are what AbortAll calls besides removing local files.
var endings struct {
	sync.Mutex
	next    int
	of      map[int]func(context.Context)
	stopped bool
}

// endingTime is how long all of them may take together.
const endingTime = 3 * time.Second

// AtAbort has AbortAll call f, which removes what is temporary elsewhere, as far as it can while ctx lasts: a few
// seconds. forget takes it back. After AbortAll it is an error: nothing is to be begun any more.
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

// abortElsewhere calls what AtAbort was given.
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
