// Package workcopy changes tables in remote stores. The functions of a format that change a table write files in place
// and rename them, which a store cannot do. So they work on a local copy of the table, in which only its metadata are
// real: the data files are empty files of the right size, and are read from the store. What the change wrote then
// becomes visible in the store: first the files that nothing refers to yet, at the end one that commits, by
// compare-and-swap. A change of the table by another writer since the copy was made is thereby noticed, and the change
// is refused. A writer that is killed leaves files that nothing refers to; the format's Clean removes them.
package workcopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/store/remote"
)

// Copy is the working copy of a table in a store.
type Copy struct {
	stores *remote.Tree
	place  *remote.Place
	change format.Changer
	single bool // nobody else writes: the store need not respect conditions

	home   string // temporary directory
	dir    string // in it, the table's
	forget func() // cancels store.AtAbort

	mu      sync.Mutex
	at      map[string]remote.Object // what the store has, by its name in the table
	was     map[string]mark          // the local files that stand for these
	stale   bool                     // the copy must be made again before the next change
	held    int                      // users of the copy, which stays as it is meanwhile
	locks   int                      // how many of them hold the table's lock
	loose   []string                 // written, and not part of the table yet
	cut     bool                     // the store may still carry out a write of such a file
	inStore map[string]func() error  // locks in the store that are held until the change ends, by name
	kept    time.Time                // files written later are not removed; zero: all may be
	probed  bool
	begun   int   // failures of the stores of which no change need be told
	settled error // why no further change is possible
}

// mark recognizes a file that has not changed.
type mark struct {
	info  fs.FileInfo
	whole bool
}

// same reports whether a file is the one that was marked.
func (m mark) same(info fs.FileInfo) bool {
	return m.info != nil && os.SameFile(m.info, info) && m.info.Size() == info.Size() &&
		m.info.ModTime().Equal(info.ModTime())
}

// Options are the options of New.
type Options struct {
	SingleWriter bool // nobody else writes there
}

// New returns a working copy of the table in the directory dir, a name in stores. The copy exists only
// during a change.
func New(stores *remote.Tree, dir string, c format.Changer, o Options) (*Copy, error) {
	place, err := stores.Place(dir)
	if err != nil {
		return nil, err
	}
	n, _ := stores.Failures()
	return &Copy{stores: stores, place: place, change: c, single: o.SingleWriter, stale: true, begun: n}, nil
}

// answered returns what a store has failed to answer since the copy was made, but for what was tried again, and what
// an earlier change has ended with. A reader that tolerates damage may have
// taken it for some, so the change is not made.
func (c *Copy) answered() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, last := c.stores.Failures(); n > c.begun {
		c.begun = n                                                            // this change ends with the error
		return fmt.Errorf("%s: nothing was changed: %s", c.place.Name(), last) // no ErrChanged, which is tried again
	}
	return nil
}

// clear removes the local files. The caller holds mu.
func (c *Copy) clear() error {
	if c.home == "" {
		return nil
	}
	home := c.home
	c.home, c.dir, c.at, c.was, c.stale = "", "", nil, nil, true
	err := os.RemoveAll(home)
	c.forget()
	return err
}

// fresh makes the copy, unless it is up to date, or must stay as it is because a lock is held.
func (c *Copy) fresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled != nil {
		return c.settled
	}
	if !c.stale {
		return nil
	}
	if err := c.clear(); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", store.TempPrefix+"*")
	if err != nil {
		return err
	}
	if c.forget, err = store.AtAbort(func(context.Context) { _ = os.RemoveAll(home) }); err != nil {
		return errors.Join(err, os.Remove(home))
	}
	c.home = home
	c.dir = filepath.Join(c.home, path.Base(c.place.Name()))
	for try := 0; ; try++ {
		if c.at, err = c.list(ctx); err == nil {
			err = c.fill(ctx)
		}
		if err == nil {
			c.stale = false
			return nil
		}
		moved := errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrChanged)
		if !moved || try == tries {
			return errors.Join(err, c.clear())
		}
		if err := os.RemoveAll(c.dir); err != nil { // somebody changed the table meanwhile
			return errors.Join(err, c.clear())
		}
	}
}

// list lists the table. No store lists a table in one moment: a listing may have a file that commits and lack one that
// it names, although that is older. So the table is listed again, until the files of higher ranks are those of the
// listing before; whatever they name was there when the last listing began.
func (c *Copy) list(ctx context.Context) (map[string]remote.Object, error) {
	before, err := c.place.List(ctx)
	for try := 0; err == nil; try++ {
		var at map[string]remote.Object
		at, err = c.place.List(ctx)
		if err != nil || c.sameRanked(before, at) {
			return at, err
		}
		if try == tries {
			return nil, fmt.Errorf("%s: %w", c.place.Name(), store.ErrChanged)
		}
		before = at
	}
	return nil, err
}

// sameRanked reports whether two listings have the same files of higher ranks.
func (c *Copy) sameRanked(a, b map[string]remote.Object) bool {
	ranked := func(all map[string]remote.Object) map[string]string {
		out := map[string]string{}
		for name, o := range all {
			if c.change.Stored.Rank(name) > 0 {
				out[name] = o.Stamp
			}
		}
		return out
	}
	return maps.Equal(ranked(a), ranked(b))
}

// fill makes the local files. The caller holds mu.
func (c *Copy) fill(ctx context.Context) error {
	var names []string
	for name := range c.at {
		if !c.change.Stored.Local(name) {
			names = append(names, name)
		}
	}
	c.was = map[string]mark{}
	var mu sync.Mutex
	return c.place.Each(ctx, len(names), func(ctx context.Context, i int) error {
		m, err := c.make(ctx, c.at[names[i]], names[i])
		mu.Lock()
		defer mu.Unlock()
		c.was[names[i]] = m
		return err
	})
}

// tries is how often a copy is made anew because the table changed meanwhile.
const tries = 10

// maxMetadata is the maximum size of a file that is read whole.
const maxMetadata = 1 << 30

// make makes a local file for an object.
func (c *Copy) make(ctx context.Context, o remote.Object, name string) (m mark, err error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return m, fault.Unsupportedf(fault.Span{Object: c.place.Name() + "/" + name}, "", "no file can have that name")
	}
	local := c.path(name)
	if err := os.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return m, err
	}
	if m.whole = c.change.Stored.Whole(name); m.whole {
		if o.Size > maxMetadata {
			return m, fault.Limitf(fault.Span{Object: c.place.Name() + "/" + name}, "", "%d bytes of metadata", o.Size)
		}
		b, err := c.place.Read(ctx, o)
		if err != nil {
			return m, err
		}
		err = os.WriteFile(local, b, 0o600)
		if err != nil {
			return m, err
		}
	} else if err := hole(local, o.Size); err != nil {
		return m, err
	}
	at := o.Changed
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	if err := os.Chtimes(local, at, at); err != nil {
		return m, err
	}
	m.info, err = os.Stat(local)
	return m, err
}

// hole makes a file of a size that takes no space.
func hole(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// hold keeps the copy as it is until release is called.
func (c *Copy) hold(ctx context.Context) error {
	if err := c.fresh(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
	return nil
}

// release ends hold. At the last one, what was written and is not part of the table is removed from the store, and the
// copy is removed: the next change begins with what the store has then.
func (c *Copy) release(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held--; c.held > 0 {
		return nil
	}
	c.unlockAll()
	err = c.removeLoose(context.WithoutCancel(ctx))
	c.loose, c.cut, c.kept = nil, false, time.Time{}
	return errors.Join(err, c.clear())
}

// removeLoose removes what was written and is not part of the table. The caller holds mu.
func (c *Copy) removeLoose(ctx context.Context) error {
	if c.settled != nil { // it may be part of the table
		return nil
	}
	err := c.place.Each(ctx, len(c.loose), func(ctx context.Context, i int) error {
		return c.place.Remove(ctx, c.loose[i])
	})
	if err == nil {
		c.loose = nil
	}
	return err
}

// pull brings the copy up to date. Files that were changed in it and in the store are store.ErrChanged, except the
// named ones, which become those of the store.
func (c *Copy) pull(ctx context.Context, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled != nil {
		return c.settled
	}
	at, err := c.list(ctx)
	if err != nil {
		return err
	}
	var changed []string
	for name, o := range at {
		if c.change.Stored.Local(name) {
			continue
		}
		touched := c.touched(name)
		switch was, known := c.at[name]; {
		case slices.Contains(names, name) && touched:
		case known && was.Stamp == o.Stamp:
			continue
		case touched:
			return c.conflict(name)
		}
		changed = append(changed, name)
	}
	for name := range c.at {
		if _, there := at[name]; !there && !c.touched(name) {
			delete(c.was, name)
			delete(c.at, name)
			if err := os.Remove(c.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	marks := make([]mark, len(changed))
	err = c.place.Each(ctx, len(changed), func(ctx context.Context, i int) (err error) {
		if err := os.Remove(c.path(changed[i])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		marks[i], err = c.make(ctx, at[changed[i]], changed[i])
		return err
	})
	for i, name := range changed { // even after an error, so that the files are recognized
		if marks[i].info != nil {
			c.was[name], c.at[name] = marks[i], at[name]
		}
	}
	if err == nil {
		c.at = at
	}
	return err
}

// touched reports whether a file of the copy is not the one that stands for the object.
func (c *Copy) touched(name string) bool {
	info, err := os.Stat(c.path(name))
	m := c.was[name]
	return err == nil && !m.same(info) || err != nil && m.info != nil
}

// path returns the local name of a file of the table.
func (c *Copy) path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// conflict returns the error for a table that somebody else changed.
func (c *Copy) conflict(name string) error {
	return fault.Invalidf("%s: another program has changed the table (%s) since this change began, so the change is "+
		"not made: try again", c.place.Name(), name)
}

// lock is hold for a change that must not be made if anything else changes.
func (c *Copy) lock(ctx context.Context) error {
	if err := c.hold(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locks++
	return nil
}

// unlock ends lock.
func (c *Copy) unlock(ctx context.Context) {
	c.mu.Lock()
	c.locks--
	c.mu.Unlock()
	_ = c.release(ctx) // what it does not remove, clean does
}

// publisher is the format.Publisher of a change. A lenient one follows the changes of others. A checked one publishes
// nothing if a store has failed to answer since the change began. A mute one publishes nothing.
type publisher struct {
	c                      *Copy
	lenient, checked, mute bool
}

// with returns the context for a change.
func (p *publisher) with(ctx context.Context) context.Context { return format.WithPublisher(ctx, p) }

func (p *publisher) Refresh(ctx context.Context, names ...string) error {
	if !p.lenient || p.mute {
		return nil
	}
	err := p.c.pull(ctx, names)
	if err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrChanged)) { // while it was read
		return fmt.Errorf("%w: %w", store.ErrChanged, err)
	}
	return err
}

func (p *publisher) Publish(ctx context.Context) error {
	if p.mute {
		return nil
	}
	if p.checked {
		if err := p.c.answered(); err != nil {
			return err
		}
		p.checked = false // what fails later does not undo it
	}
	return p.c.publish(ctx, p.lenient)
}

// local returns the place of the copy, for the functions of the format.
func (c *Copy) local(p format.TablePlace) format.TablePlace {
	p.Dir, p.Store, p.Tree = c.dir, "", tree{c}
	return p
}
