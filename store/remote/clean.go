package remote

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"
)

// Left is something that a process has left that died while it wrote to an address.
type Left struct {
	Name   string    // of the object that it was to be, or that is there
	Begun  time.Time // when it was begun
	Upload bool      // it is an upload that was not completed: nobody sees it, and it takes room
	Ended  bool      // it says that a directory is unfinished, and all of that is there
}

// Clean removes what processes of ours have left below an address, and had begun before a time: uploads that were not
// completed, which it knows by the size of their parts, the objects of directories that are not whole, and what says
// so. What it removes it gives to found before. dry: nothing is removed.
func (t *Tree) Clean(ctx context.Context, address string, before time.Time, dry bool, found func(Left) error) error {
	name, err := t.Enter(ctx, address)
	if err != nil {
		return err
	}
	r, key, err := t.find("clean", name)
	if err != nil {
		return err
	}
	w, err := r.writer()
	if err != nil {
		return at("clean", name, err)
	}
	c := &cleaner{r, w, key, before, dry, found}
	if err := c.uploads(ctx); err != nil {
		return at("clean", name, err)
	}
	return at("clean", name, c.directories(ctx))
}

// cleaner removes what is left.
type cleaner struct {
	r      *root
	w      Writer
	key    string
	before time.Time
	dry    bool
	found  func(Left) error
}

// below reports whether a key is that of the address, or lies below it.
func (c *cleaner) below(key string) bool { return key == c.key || within(key, c.key) }

// uploads removes ours.
func (c *cleaner) uploads(ctx context.Context) error {
	var after Upload
	for {
		var page []Upload
		var more bool
		err := c.r.once(ctx, Listing, func(ctx context.Context) (err error) {
			page, more, err = c.w.Uploads(ctx, c.key, after)
			return err
		})
		if err != nil {
			return err
		}
		for _, u := range page {
			after = u
			if !c.below(u.Key) || u.First != partSize || !u.Begun.Before(c.before) {
				continue
			}
			if err := c.found(Left{Name: c.r.addr + "/" + u.Key, Begun: u.Begun, Upload: true}); err != nil {
				return err
			}
			if c.dry {
				continue
			}
			if err := c.r.discard(ctx, c.w, u); err != nil {
				return err
			}
		}
		if !more || len(page) == 0 {
			return nil
		}
	}
}

// directories removes what is there of those that are not whole.
func (c *cleaner) directories(ctx context.Context) error {
	const most = 10_000_000
	all, whole, err := c.r.ask.list(ctx, c.w, prefixOf(c.key), false, most)
	if err != nil && !isMissing(err) {
		return err
	}
	if !whole && err == nil {
		return errLong
	}
	there := map[string]Object{}
	for _, o := range all {
		there[o.Key] = o
	}
	for _, o := range all {
		if path.Base(o.Key) == Unfinished {
			if err := c.directory(ctx, o, there); err != nil {
				return err
			}
		}
	}
	return nil
}

// directory removes what is there of one: only what was written after it was begun. Where the object is there that
// comes last, all are, and only what says otherwise goes.
func (c *cleaner) directory(ctx context.Context, mark Object, there map[string]Object) error {
	text := make([]byte, min(mark.Size, maxMark))
	if err := c.r.ask.get(ctx, c.r.client, mark, "", text, 0); err != nil {
		return err
	}
	var doc unfinished
	if json.Unmarshal(text, &doc) != nil || doc.Stoa != unfinishedKind || len(doc.Objects) == 0 {
		return &Error{Reason: mark.Key + " is not what stoa writes"}
	}
	if !doc.Begun.Before(c.before) {
		return nil
	}
	var mine []Object
	ended := false
	for _, name := range doc.Objects {
		if clean(name) != name || name == "" || strings.HasPrefix(name, "/") {
			return &Error{Reason: mark.Key + " is not what stoa writes"}
		}
		o, ok := there[path.Join(dirOf(mark.Key), name)]
		if ended = ok && !o.Changed.Before(doc.Begun.Add(-skew)); ended {
			mine = append(mine, o)
		}
	}
	if ended {
		mine = nil
	}
	for _, o := range append(mine, mark) {
		l := Left{Name: c.r.addr + "/" + o.Key, Begun: doc.Begun, Ended: ended}
		if err := c.found(l); err != nil {
			return err
		}
		if c.dry {
			continue
		}
		if err := c.r.remove(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

// skew is how far the clocks of a store and of those who write to it may be apart.
const skew = 15 * time.Minute

// maxMark is how long a text of unfinished may be.
const maxMark = 256 << 20

// IsUnfinished reports whether err says that a directory is being written, or its writing was cut off.
func IsUnfinished(err error) bool { return errors.Is(err, errUnfinished) }
