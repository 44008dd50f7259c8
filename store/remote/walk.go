package remote

import (
	"context"
	"strings"
	"sync"
)

// listBelow lists all keys below a directory, up to roughly limit. whole reports whether these are all. A store that
// lists one directory at a time is asked for many of them in parallel.
func (r *root) listBelow(ctx context.Context, dir string, limit int) (all []Object, whole bool, err error) {
	if !r.client.Traits().Flat {
		return r.requests.list(ctx, r.client, prefixOf(dir), false, limit)
	}
	w := &walk{r: r, limit: limit, places: make(chan struct{}, r.requests.AtATime)}
	var cancel context.CancelFunc
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	w.cancel = cancel
	w.list(ctx, prefixOf(dir), true)
	w.work.Wait()
	return w.all, w.err == nil && !w.denied && len(w.all) < limit, w.err
}

// walk is a recursive listing.
type walk struct {
	r      *root
	limit  int
	places chan struct{}
	work   sync.WaitGroup
	cancel context.CancelFunc

	mu     sync.Mutex
	all    []Object
	denied bool // some directory cannot be listed: reading that one is an error
	err    error
}

// list lists a directory and starts the listing of those in it. One that disappears meanwhile has no keys; the first
// one must exist.
func (w *walk) list(ctx context.Context, prefix string, first bool) {
	w.places <- struct{}{}
	page, _, err := w.r.requests.list(ctx, w.r.client, prefix, true, w.limit)
	<-w.places
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil || len(w.all) >= w.limit:
		return
	case isDenied(err) && !first:
		w.denied = true
		return
	case err != nil && (first || !isMissing(err)):
		w.err = err
		w.cancel()
		return
	}
	for _, o := range page {
		if !o.Dir {
			w.all = append(w.all, o)
		} else if strings.HasPrefix(o.Key, prefix) && o.Key != prefix {
			w.work.Go(func() { w.list(ctx, o.Key, false) })
		}
	}
	if len(w.all) >= w.limit {
		w.cancel()
	}
}
