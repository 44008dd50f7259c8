package stoa

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/glob"
	"stoa/internal/watched"
	"stoa/store"
)

// List lists the contents of a place, at any depth: tables, or the file itself. An error whose entry has a Place
// concerns that file or directory only, which is skipped while the listing goes on. Everything that Verify calls a
// table is listed, or named as skipped.
//
// It is not inlined, as Verify and Describe are not: the loops over it would hold copies of all this, 100 kB together.
//
//go:noinline
func List(ctx context.Context, uri string, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		uri, o, err := o.placedOne(ctx, uri)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		l := lister{yield: func(e format.Entry, err error) bool {
			e.Meta = address.Facts(e.Meta)
			return yield(e, err)
		}}
		p := places{ctx: ctx, o: o, left: l.leave}
		p.table = func(tg found) *opened { return l.list(ctx, tg, o) }
		if walksInto(ctx, uri, o) {
			if err = p.dir(o.tree(), glob.DotDot(o.tree(), uri), 0); err == nil && !l.any && !l.done {
				err = nothingReadable(ctx, format.Target{Tree: o.tree(), Name: uri}, l.left)
			}
		} else {
			err = l.targets(&p, uri)
		}
		if err != nil && !l.done {
			yield(format.Entry{}, err)
		}
	}
}

// Named returns the name and the options with which to open an entry of List: on its own, whatever else is in its
// directory, and with only those options that its format knows, or that no format knows.
func Named(e format.Entry, o OpenOptions) (uri string, _ OpenOptions) {
	if o.From == "" && e.Table == "" {
		o.From = e.Format
	}
	formats := o.formats()
	knows := func(f format.Format, key string) bool {
		return slices.ContainsFunc(f.ReadKeys, func(k format.OptionKey) bool { return k.Name == key })
	}
	k := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name == e.Format })
	o.Opts, o.Typed = maps.Clone(o.opts()), nil
	maps.DeleteFunc(o.Opts, func(key, _ string) bool {
		return k >= 0 && !knows(formats[k], key) &&
			slices.ContainsFunc(formats, func(f format.Format) bool { return knows(f, key) })
	})
	return nameOf(e), o
}

// walksInto reports whether a directory is no format's. Failures in it are reported when the name is resolved.
func walksInto(ctx context.Context, uri string, o OpenOptions) bool {
	if info, err := o.tree().Stat(ctx, uri); err != nil || !info.Dir || o.From != "" {
		return false
	}
	_, err := Probe(ctx, format.Target{Tree: o.tree(), Name: glob.DotDot(o.tree(), uri)}, o)
	return err != nil && ctx.Err() == nil && (!store.Failing(err) || watched.Denied(err))
}

// lister yields the entries of tables, and what is left out.
type lister struct {
	yield func(format.Entry, error) bool
	root  string    // the target that was asked for: its errors concern the whole place
	any   bool      // a table has been listed
	left  []leftOut // recorded only until a table is listed
	done  bool
}

// targets lists the targets of a name that is not a directory of files.
func (l *lister) targets(p *places, uri string) error {
	targets, err := resolveAll(p.ctx, []string{uri}, p.o)
	if err != nil {
		return err
	}
	for _, tg := range targets {
		if l.root = tg.Name; tg.set != "" {
			l.root = ""
		}
		for _, x := range tg.left {
			l.leave(x)
		}
		if l.done {
			return nil
		}
		if err := p.target(tg, 0); err != nil {
			return err
		}
		for _, name := range tg.below {
			if err := p.dir(tg.Tree, name, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lister) leave(x leftOut) bool {
	if !l.any {
		l.left = append(l.left, x)
	}
	l.done = l.done || !l.yield(format.Entry{Place: x.name, Rows: -1, Bytes: -1}, x.err)
	return !l.done
}

// list yields the entries of one target. It returns what its format opened, or nil if the listing ends.
func (l *lister) list(ctx context.Context, tg found, o OpenOptions) *opened {
	seen := newOpened(tg.Tree)
	plain := tg.Tree
	if tg.Tree = seen; tg.Table != "" || o.From != "" {
		tg.Tree = plain
	}
	for e, err := range listOne(ctx, tg, o) {
		if err != nil && tg.Name == l.root {
			e.Place = ""
		} else if err != nil {
			e.Place = tg.Name
		}
		l.any = true
		if l.done = l.done || !l.yield(e, err) || err != nil && e.Place == ""; l.done {
			return nil
		}
	}
	return seen
}

// listOne lists the contents of one target.
func listOne(ctx context.Context, tg found, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.format.List == nil {
			yield(entryOf(ctx, tg, o))
			return
		}
		tg.Opts, tg.Limits = o.opts(), o.Limits
		for e, err := range tg.format.List(ctx, tg.Target) {
			e.Place, e.Format = tg.Name, tg.format.Name
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// entryOf returns the entry of a target whose format has no List: it is made from the parts.
func entryOf(ctx context.Context, tg found, o OpenOptions) (format.Entry, error) {
	e := format.Entry{Kind: tg.format.Title, Rows: -1, Bytes: -1, Place: tg.Name, Format: tg.format.Name}
	if !tg.format.ByPages() {
		return e, nil
	}
	s, _, err := openOne(ctx, tg, o)
	if err != nil {
		return e, err
	}
	e.Rows, e.Bytes, e.Meta = 0, 0, s.reader.Meta()
	for p, perr := range s.reader.Parts(ctx, format.Query{}) {
		if err = perr; err != nil {
			break
		}
		if e.Rows, e.Bytes = e.Rows+p.Rows, e.Bytes+p.Bytes; p.Rows < 0 || p.Bytes < 0 {
			e.Rows, e.Bytes = -1, -1
			break
		}
	}
	return e, errors.Join(err, s.close())
}

// single returns an error if the targets found in a directory that no format owns are certainly not one table: files of
// several formats, or a directory that holds one or more tables, next to files.
func single(ctx context.Context, targets []found, o OpenOptions) error {
	sets := map[string][]int{} // of what is in a directory, the places in targets
	for i, tg := range targets {
		sets[tg.set] = append(sets[tg.set], i)
	}
	for _, tg := range targets {
		same := sets[tg.set]
		if tg.set == "" || len(same) < 2 || !tg.dir && tg.format == targets[same[0]].format {
			continue
		}
		var all []found
		for _, i := range same {
			all = append(all, targets[i])
		}
		return severalTables(ctx, tg.set, all, o)
	}
	return nil
}

// severalTables returns the error that names the tables of targets.
func severalTables(ctx context.Context, place string, targets []found, o OpenOptions) error {
	var names []string
	for _, tg := range targets {
		for e, err := range listOne(ctx, tg, o) {
			if err != nil { // its fault is reported when it is opened by name
				names = append(names, tg.Name)
				break
			}
			names = append(names, nameOf(e))
		}
	}
	return errors.Join(ctx.Err(), format.Several(place, names))
}

func nameOf(e format.Entry) string {
	if e.Table == "" {
		return e.Place
	}
	return e.Place + "#" + e.Table
}

// checkOnlyTable returns an error if a directory that a format owns, and in which it opened a table or found several,
// has other tables as well. seen recorded what the format opened.
func checkOnlyTable(ctx context.Context, tg found, seen *opened, o OpenOptions) error {
	more := []found{tg}
	var failed error
	// an object that cannot be read is not part of this table
	p := places{ctx: ctx, o: o, left: func(l leftOut) bool {
		if failed == nil && store.Failing(l.err) && !watched.Denied(l.err) {
			failed = l.err
		}
		return true
	}}
	p.table = func(x found) *opened {
		more = append(more, x)
		return nil
	}
	if err := p.siblings(tg, seen, 0); err != nil || len(more) == 1 {
		return err
	}
	if failed != nil { // part of the table might then be listed as a table of its own
		return failed
	}
	more[0].Tree = o.tree()
	return severalTables(ctx, tg.Name, more, o)
}

// mayHoldSeveral reports whether the target is a directory, given without a table name or a format.
func mayHoldSeveral(ctx context.Context, tg found, o OpenOptions) (bool, error) {
	if tg.Table != "" || o.From != "" {
		return false, nil
	}
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if !store.Failing(err) {
		err = nil
	}
	return info.Dir, err
}

// unnamed reports whether an error may mean that no table was named.
func unnamed(err error) bool { return err == nil || errors.Is(err, fault.Invalid) }
