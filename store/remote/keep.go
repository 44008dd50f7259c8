package remote

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"stoa/store"
)

// runCache is the in-memory cache of the most recently used runs.
type runCache struct {
	max int64

	mu       sync.Mutex
	size     int64
	order    *list.List // of *run, most recently used first
	elements map[*run]*list.Element
}

func newRunCache(most int64) *runCache {
	return &runCache{max: most, order: list.New(), elements: map[*run]*list.Element{}}
}

// add adds a run, and drops the least recently used ones beyond the limit.
func (k *runCache) add(r *run) {
	k.mu.Lock()
	k.elements[r] = k.order.PushFront(r)
	k.size += int64(len(r.buf))
	k.mu.Unlock()
	k.shrink(0)
}

// shrink drops the least recently used runs until there is room for n more bytes, except those that will be read soon
// and the last one that was used.
func (k *runCache) shrink(n int64) {
	k.mu.Lock()
	var old []*run
	for e := k.order.Back(); e != nil && e != k.order.Front() && k.size+n > k.max; {
		x := e.Value.(*run)
		if e = e.Prev(); x.held.Load() == 0 {
			k.remove(x)
			old = append(old, x)
		}
	}
	k.mu.Unlock()
	for _, x := range old {
		x.o.forget(x)
	}
}

// remove removes a run. The caller holds mu.
func (k *runCache) remove(r *run) {
	if e := k.elements[r]; e != nil {
		k.order.Remove(e)
		delete(k.elements, r)
		k.size -= int64(len(r.buf))
	}
}

// drop drops a run that is not needed any more.
func (k *runCache) drop(r *run) {
	k.mu.Lock()
	k.remove(r)
	k.mu.Unlock()
	r.o.forget(r)
}

func (k *runCache) touch(r *run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.elements[r]; e != nil {
		k.order.MoveToFront(e)
	}
}

// spooled returns a whole object of a store without range requests, or nil if it was not read that way.
func (o *object) spooled() store.Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.whole
}

// spoolMemory is how many bytes of a spooled object are kept in memory; the rest is in a temporary file.
const spoolMemory = 16 << 20

// spool reads a whole object.
func (o *object) spool(ctx context.Context) error {
	o.root.lookupMu.Lock() // one at a time
	defer o.root.lookupMu.Unlock()
	if o.spooled() != nil {
		return nil
	}
	a := o.root.requests
	return gone(a.try(ctx, Get, func(ctx context.Context) (bool, error) {
		return false, a.watched(ctx, func(ctx context.Context, alive func(io.Reader) io.Reader) error {
			body, err := o.root.client.Get(ctx, o.Object, o.version, 0, -1)
			if err != nil {
				return err
			}
			defer body.Close()
			if err := sameObject(o.Object, body.Object); err != nil {
				return err
			}
			s := store.Spool(countingReader{alive(body), a}, spoolMemory, store.NewScratch)
			if got := s.Size(); got != o.Size {
				return errors.Join(fmt.Errorf("%w: expected %d bytes, received %d", errTruncated, o.Size, got),
					s.Close())
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.whole = s
			return nil
		})
	}))
}

// countingReader counts the bytes received.
type countingReader struct {
	io.Reader
	requests *requester
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.requests.received(n)
	return n, err
}
