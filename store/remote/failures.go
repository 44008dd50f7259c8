package remote

import (
	"context"
	"errors"
	"sync"

	"stoa/store"
)

// failures keeps the first failure of a store that is not forgotten, and the last one.
type failures struct {
	mu          sync.Mutex
	first, last error
	n           int // forgotten ones, too
	at          int // number of the first
}

// forget forgets the failures after the first n.
func (f *failures) forget(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at > n {
		f.first = nil
	}
}

func (f *failures) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// note records err if it is a failure, and returns it. A lookup that is denied is none: many stores deny that of what
// is not there.
func (f *failures) note(ctx context.Context, err error) error {
	var e *Error
	if isMissing(err) || isDenied(err) && !(errors.As(err, &e) && e.Credentials) {
		return err
	}
	return f.noteRead(ctx, err)
}

// noteRead is note for a read of an object that is there.
func (f *failures) noteRead(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !store.Failing(err) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.first == nil {
		f.first, f.at = err, f.n
	}
	f.last = err
	return err
}
