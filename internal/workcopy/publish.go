package workcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/fault"
	"stoa/internal/sorted"
	"stoa/store"
	"stoa/store/remote"
)

// difference is what a change did to the copy.
type difference struct {
	loose  []string // new files that nothing refers to yet
	ranked []string // the other new and changed files, in the order in which they become visible
	gone   []string // in the order in which they are removed
}

// difference compares the copy with what it was made of.
func (c *Copy) difference() (d difference, err error) {
	there := map[string]bool{}
	err = filepath.WalkDir(c.dir, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == c.dir {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(c.dir, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); c.change.Stored.Local(rel) {
			return nil
		}
		there[rel] = true
		info, err := e.Info()
		if err != nil || c.was[rel].same(info) {
			return err
		}
		if c.change.Stored.Rank(rel) == 0 {
			d.loose = append(d.loose, rel)
		} else {
			d.ranked = append(d.ranked, rel)
		}
		return nil
	})
	for rel := range c.was {
		if !there[rel] {
			d.gone = append(d.gone, rel)
		}
	}
	rank := func(a, b string) int {
		return cmp.Or(cmp.Compare(c.change.Stored.Rank(a), c.change.Stored.Rank(b)), strings.Compare(a, b))
	}
	sorted.By(d.ranked, rank)
	sorted.By(d.gone, func(a, b string) int { return -rank(a, b) })
	return d, err
}

// publication makes a change visible.
type publication struct {
	*Copy
	difference
	put      map[string]remote.Object // what was written
	new      []string                 // of the higher ranks; nothing had these names before
	commited bool
	lenient  bool
}

// publish makes what a change did to the copy visible in the store. If somebody else has changed the table, the error
// is store.ErrChanged for a lenient change, which can be tried again.
func (c *Copy) publish(ctx context.Context, lenient bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled != nil {
		return c.settled
	}
	d, err := c.difference()
	if err != nil {
		return c.shown(err)
	}
	if !c.kept.IsZero() {
		d.gone = slices.DeleteFunc(d.gone, func(rel string) bool { return c.young(rel, c.kept) })
	}
	if len(d.loose)+len(d.ranked)+len(d.gone) == 0 {
		return nil
	}
	p := &publication{Copy: c, difference: d, put: map[string]remote.Object{}, lenient: lenient}
	if err = p.make(ctx); err != nil && !p.commited && c.settled == nil {
		err = errors.Join(err, p.undo(context.WithoutCancel(ctx)))
	}
	c.settle(p)
	return c.shown(err)
}

// young reports whether a file was written after a time, by the clock of the store.
func (c *Copy) young(rel string, kept time.Time) bool {
	return c.change.Stored.Rank(rel) == 0 && c.at[rel].Changed.After(kept)
}

// settle records what the store has now.
func (c *Copy) settle(p *publication) {
	for rel, o := range p.put {
		c.at[rel] = o
		if info, err := os.Stat(c.path(rel)); err == nil {
			c.was[rel] = mark{info, true} // the local file is whole
		}
	}
	if !p.commited {
		return
	}
	c.loose = nil
	for _, rel := range p.gone {
		delete(c.at, rel)
		delete(c.was, rel)
	}
}

// make writes first the files that nothing refers to.
func (p *publication) make(ctx context.Context) error {
	if !p.single && !p.probed {
		if err := p.place.CheckConditions(ctx); err != nil {
			return err
		}
		p.probed = true
	}
	for _, rel := range p.difference.loose {
		if _, was := p.at[rel]; was {
			return fault.Invalidf("%s/%s was changed in place, and no file of the table says so", p.place.Name(), rel)
		}
	}
	if err := p.makeLoose(ctx); err != nil {
		return err
	}
	err := p.locked(ctx, p.commit)
	if err != nil {
		return err
	}
	p.commited = true
	if err := p.remove(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("the change is made, but files that it no longer needs are left: %w", err)
	}
	return nil
}

// makeLoose writes the files that nothing refers to. Some are named after the time in milliseconds, so that another
// writer may have taken the same name: then the change is refused, and the other writer's file stays.
func (p *publication) makeLoose(ctx context.Context) error {
	names := p.difference.loose
	objects := make([]remote.Object, len(names))
	theirs, cut := make([]bool, len(names)), make([]bool, len(names))
	err := p.place.Each(ctx, len(names), func(each context.Context, i int) (err error) {
		if err := each.Err(); err != nil {
			return err
		}
		// Not each: if another write fails, this one is not cut off, so that what it wrote is known, and removed.
		objects[i], err = p.write(ctx, names[i])
		u := (*remote.UncertainError)(nil)
		theirs[i], cut[i] = errors.Is(err, fs.ErrExist), errors.As(err, &u)
		if theirs[i] && !cut[i] {
			return p.conflict(names[i]) // at the next attempt the name would be the same
		}
		return err
	})
	p.Copy.cut = p.Copy.cut || slices.Contains(cut, true)
	for i, rel := range names {
		if objects[i].Key != "" {
			p.put[rel] = objects[i]
		}
		if !theirs[i] {
			p.Copy.loose = append(p.Copy.loose, rel)
		}
	}
	return err
}

// write writes a file under the condition that nobody else did since the copy was made.
func (p *publication) write(ctx context.Context, rel string) (o remote.Object, err error) {
	f, err := os.Open(p.path(rel))
	if err != nil {
		return o, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return o, err
	}
	var when remote.Condition
	was, existed := p.at[rel]
	switch {
	case p.single:
	case existed && !remote.Strong(was.Stamp):
		return o, fault.Unsupportedf(fault.Span{Object: p.place.Name() + "/" + rel}, "", "the store gives it no ETag, "+
			"so that a change by somebody else is not noticed")
	default:
		when = remote.Condition{Absent: !existed, Stamp: was.Stamp}
	}
	return p.place.Put(ctx, rel, f, info.Size(), when)
}

// commit makes the files of higher ranks visible, one after the other.
func (p *publication) commit(ctx context.Context) error {
	if err := p.unchanged(ctx); err != nil {
		return err
	}
	for i, rel := range p.ranked {
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := p.write(ctx, rel)
		if u := (*remote.UncertainError)(nil); errors.As(err, &u) && i == len(p.ranked)-1 {
			o, err = p.find(ctx, rel, u)
		}
		if err != nil {
			return p.refused(rel, err)
		}
		if _, was := p.at[rel]; !was {
			p.new = append(p.new, rel)
		}
		p.put[rel] = o
	}
	return nil
}

// refused returns the error for a file that was not written. A condition that does not hold means that somebody else
// has changed the table.
func (p *publication) refused(rel string, err error) error {
	u := (*remote.UncertainError)(nil)
	switch {
	case errors.As(err, &u) || !errors.Is(err, store.ErrChanged) && !errors.Is(err, fs.ErrExist):
		return err
	case p.lenient:
		return fmt.Errorf("%w: %w", store.ErrChanged, p.conflict(rel))
	}
	return p.conflict(rel)
}

// unchanged returns an error if a file of a higher rank, which the change has read but does not write, has changed.
func (p *publication) unchanged(ctx context.Context) error {
	if p.single {
		return nil
	}
	var names []string
	for rel := range p.at {
		if p.change.Stored.Rank(rel) > 0 && !slices.Contains(p.ranked, rel) {
			names = append(names, rel)
		}
	}
	return p.place.Each(ctx, len(names), func(ctx context.Context, i int) error {
		err := p.place.Check(ctx, names[i], remote.Condition{Stamp: p.at[names[i]].Stamp})
		if err != nil {
			err = p.refused(names[i], err)
		}
		return err
	})
}

// find finds out whether a commit whose answer was lost was made. If somebody else has changed the file since, it was
// if the file names a file of this change, whose names nobody else uses.
func (p *publication) find(ctx context.Context, rel string, u *remote.UncertainError) (remote.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTime)
	defer cancel()
	o, text, err := p.place.ReadNow(ctx, rel)
	if err == nil {
		for _, name := range p.difference.loose {
			if p.change.Stored.Whole(name) && strings.Contains(string(text), path.Base(name)) {
				return o, nil
			}
		}
	}
	p.Copy.settled = fmt.Errorf("%s: whether the last change was made is not known: look at the table before the "+
		"next one",
		p.place.Name())
	return o, u
}

// findTime limits how long it is tried to find out whether a commit was made.
const findTime = time.Minute

// remove removes the files that the table no longer has.
func (p *publication) remove(ctx context.Context) error {
	first := 0
	for ; first < len(p.gone) && p.change.Stored.Rank(p.gone[first]) > 0; first++ {
		if err := p.place.Remove(ctx, p.gone[first]); err != nil {
			return err
		}
	}
	rest := p.gone[first:]
	dropped := len(p.gone) > 0 && len(p.gone) == len(p.was) && len(p.put) == 0
	if dropped { // what is only in the store goes, too
		for rel := range p.at {
			if _, local := p.was[rel]; !local {
				rest = append(rest, rel)
			}
		}
	}
	err := p.place.Each(ctx, len(rest), func(ctx context.Context, i int) error {
		return p.place.Remove(ctx, rest[i])
	})
	if err == nil && dropped {
		err = p.dropped(ctx)
	}
	return err
}

// undo removes the files of higher ranks that were new. The others go when the change ends.
func (p *publication) undo(ctx context.Context) error {
	for _, rel := range slices.Backward(p.new) {
		if err := p.place.Remove(ctx, rel); err != nil {
			return err
		}
		delete(p.put, rel)
	}
	return nil
}
