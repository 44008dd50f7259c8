package workcopy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"stoa/fault"
)

// lockWait is how long a lock of the format's own programs is waited for.
const lockWait = 30 * time.Second

// locked calls do while holding the locks of the table, in a store that has locks.
func (p *publication) locked(ctx context.Context, do func(context.Context) error) (err error) {
	if p.single {
		return do(ctx)
	}
	if err := p.holdLocal(ctx); err != nil {
		return err
	}
	for _, rel := range p.change.Stored.Locks {
		unlock, err := p.lock(ctx, rel)
		if err != nil {
			return err
		}
		if unlock != nil {
			defer func() { _ = unlock() }() // it ends with this process, at the latest
		}
	}
	return do(ctx)
}

func (p *publication) lock(ctx context.Context, rel string) (unlock func() error, err error) {
	for end := time.Now().Add(lockWait); ; {
		unlock, err = p.place.Lock(ctx, rel)
		if !errors.Is(err, fs.ErrExist) {
			return unlock, err
		}
		if time.Now().After(end) {
			return nil, fault.Invalidf("%s/%s: another program holds this lock", p.place.Name(), rel)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// holdLocal takes those locks in the store that the change holds locally, until it ends.
func (p *publication) holdLocal(ctx context.Context) error {
	entries, err := os.ReadDir(p.path(lockDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		rel := path.Join(lockDir, e.Name())
		if _, held := p.inStore[rel]; held || !p.change.Stored.Held(rel) {
			continue
		}
		unlock, err := p.lock(ctx, rel)
		if err != nil {
			return err
		}
		if unlock == nil {
			return nil
		}
		if p.inStore == nil {
			p.inStore = map[string]func() error{}
		}
		p.inStore[rel] = unlock
	}
	return nil
}

// lockDir has the locks of a table.
const lockDir = "LockFiles"

// unlockAll ends the locks that a change held. The caller holds mu.
func (c *Copy) unlockAll() {
	for _, unlock := range c.inStore {
		_ = unlock() // it ends with this process, at the latest
	}
	c.inStore = nil
}

// dropped removes what is left of a table without files: its locks, and empty directories.
func (p *publication) dropped(ctx context.Context) error {
	for _, rel := range p.change.Stored.Locks {
		if err := p.place.Remove(ctx, rel); err != nil {
			return err
		}
	}
	return p.place.Prune(ctx)
}
