package remote

import (
	"context"
	"sync"

	"stoa/store"
)

// failures keeps the first failure of a store, and the last one.
type failures struct {
	mu          sync.Mutex
	first, last error
	n           int
}

func (f *failures) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// note records err if it is a failure, and returns it.
func (f *failures) note(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || isMissing(err) || isDenied(err) || !store.Failing(err) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.first == nil {
		f.first = err
	}
	f.last = err
	return err
}
