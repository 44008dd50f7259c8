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

// keeper keeps the runs that were read last.
type keeper struct {
	most int64

	mu   sync.Mutex
	held int64
	in   *list.List // of *run, most recent in front
	at   map[*run]*list.Element
}

func newKeeper(most int64) *keeper {
	return &keeper{most: most, in: list.New(), at: map[*run]*list.Element{}}
}

// add keeps a run, and forgets those that were not looked at for the longest time.
func (k *keeper) add(r *run) {
	k.mu.Lock()
	k.at[r] = k.in.PushFront(r)
	k.held += int64(len(r.buf))
	var old []*run
	for k.held > k.most && k.in.Len() > 1 {
		e := k.in.Back()
		x := k.in.Remove(e).(*run)
		delete(k.at, x)
		k.held -= int64(len(x.buf))
		old = append(old, x)
	}
	k.mu.Unlock()
	for _, x := range old {
		x.o.forget(x)
	}
}

func (k *keeper) touch(r *run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.at[r]; e != nil {
		k.in.MoveToFront(e)
	}
}

// spooled is all of an object whose store knows no ranges; nil: it was not read so.
func (o *object) spooled() store.Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.whole
}

// spoolMemory is how much of an object is held in memory that has to be read as a whole; the rest is in a temporary
// file.
const spoolMemory = 16 << 20

// spool reads an object from its beginning to its end.
func (o *object) spool(ctx context.Context) error {
	o.root.asking.Lock() // one at a time
	defer o.root.asking.Unlock()
	if o.spooled() != nil {
		return nil
	}
	a := o.root.ask
	return a.try(ctx, Get, func(ctx context.Context) (bool, error) {
		return false, a.watched(ctx, func(ctx context.Context, alive func(io.Reader) io.Reader) error {
			body, err := o.root.client.Get(ctx, o.Object, o.version, 0, -1)
			if err != nil {
				return err
			}
			defer body.Close()
			if err := same(o.Object, body.Object); err != nil {
				return err
			}
			s := store.Spool(counted{alive(body), a}, spoolMemory, store.NewScratch)
			if got := s.Size(); got != o.Size {
				return errors.Join(fmt.Errorf("%w: %d of %d bytes came", errCut, got, o.Size), s.Close())
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.whole = s
			return nil
		})
	})
}

// counted counts what is received.
type counted struct {
	io.Reader
	a *asker
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.a.received(n)
	return n, err
}
