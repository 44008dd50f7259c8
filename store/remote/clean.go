package remote

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"
)

// Leftover is what a process left behind that was killed while it wrote to an address.
type Leftover struct {
	Name     string    // of the object, complete or not
	Begun    time.Time // when the process began it
	Upload   bool      // an incomplete upload: it is invisible, but takes up space
	Complete bool      // a mark that a directory is unfinished, although all of its objects exist
}

// Clean removes what killed processes of stoa left behind below an address, if they began it before a time: incomplete
// uploads, which it recognizes by the size of their parts, and the objects and marks of unfinished directories. It
// calls found before each removal. With dry nothing is removed.
func (t *Tree) Clean(ctx context.Context, address string, before time.Time, dry bool,
	found func(Leftover) error) error {
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
		return pathError("clean", name, err)
	}
	c := &cleaner{r, w, key, before, dry, found}
	if err := c.uploads(ctx); err != nil {
		return pathError("clean", name, err)
	}
	return pathError("clean", name, c.directories(ctx))
}

// cleaner removes leftovers.
type cleaner struct {
	r      *root
	w      Writer
	key    string
	before time.Time
	dry    bool
	found  func(Leftover) error
}

// below reports whether a key is that of the address or below it.
func (c *cleaner) below(key string) bool { return key == c.key || within(key, c.key) }

// uploads removes incomplete uploads made by stoa.
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
			if !c.below(u.Key) || u.First != partSize && !u.Ours || !u.Begun.Before(c.before) {
				continue
			}
			if err := c.found(Leftover{Name: c.r.addr + "/" + u.Key, Begun: u.Begun, Upload: true}); err != nil {
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

// directories removes the objects of unfinished directories, and those with which the store was tested.
func (c *cleaner) directories(ctx context.Context) error {
	const most = 10_000_000
	all, whole, err := c.r.listBelow(ctx, c.key, most)
	if err != nil && !isMissing(err) {
		return err
	}
	if !whole && err == nil {
		return errTooManyKeys
	}
	there := map[string]Object{}
	for _, o := range all {
		there[o.Key] = o
	}
	for _, o := range all {
		switch base := path.Base(o.Key); {
		case base == Unfinished:
			err = c.directory(ctx, o, there)
		case strings.HasPrefix(base, probe) && o.Size == 1 && o.Changed.Before(c.before):
			err = c.drop(ctx, o, Leftover{Name: c.r.addr + "/" + o.Key, Begun: o.Changed})
		default:
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop removes an object.
func (c *cleaner) drop(ctx context.Context, o Object, l Leftover) error {
	if err := c.found(l); err != nil || c.dry {
		return err
	}
	return c.r.remove(ctx, o.Key)
}

// directory removes those objects of an unfinished directory that were written after it was begun. If the object that
// is written last exists, all do, and only the mark is removed.
func (c *cleaner) directory(ctx context.Context, mark Object, there map[string]Object) error {
	text := make([]byte, min(mark.Size, maxMark))
	if err := c.r.requests.get(ctx, c.r.client, mark, "", text, 0, nil); err != nil {
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
	if ended = ended && len(mine) == len(doc.Objects); ended { // the last one alone may have appeared late
		mine = nil
	}
	for _, o := range append(mine, mark) {
		l := Leftover{Name: c.r.addr + "/" + o.Key, Begun: doc.Begun, Complete: ended}
		if err := c.drop(ctx, o, l); err != nil {
			return err
		}
	}
	return nil
}

// skew is the maximum difference between the clocks of a store and of its writers.
const skew = 15 * time.Minute

// maxMark is the maximum size of a mark in bytes.
const maxMark = 256 << 20

// IsUnfinished reports whether err is about a directory that is being written, or whose writing was interrupted.
func IsUnfinished(err error) bool { return errors.Is(err, errUnfinished) }
