package stoa

import (
	"context"
	"errors"
	"iter"
	"path"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// List gives what a place holds: tables, or the file itself. An error with an entry that has a Place is about
// that file of a directory alone, which is left out of what Open makes of it, and the listing goes on.
func List(ctx context.Context, uri string, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		targets, err := resolveAll(ctx, []string{uri}, o)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		for _, tg := range targets {
			if !listTarget(ctx, tg, o, yield) {
				return
			}
		}
	}
}

// listTarget gives what a target holds, and the tables of other formats in it. It reports whether to go on.
func listTarget(ctx context.Context, tg found, o OpenOptions, yield func(format.Entry, error) bool) bool {
	for _, l := range tg.left {
		if !yield(format.Entry{Place: l.name, Rows: -1, Bytes: -1}, l.err) {
			return false
		}
	}
	all := []found{tg}
	for i := 0; i < len(all); i++ {
		one, seen := all[i], newOpened(all[i].Tree)
		holds, err := mayHold(ctx, one, o)
		if err != nil {
			return yield(format.Entry{Place: one.Name, Rows: -1, Bytes: -1}, err)
		}
		if holds {
			one.Tree = seen
		}
		for e, err := range listOne(ctx, one, o) {
			if err != nil && tg.set == "" && i == 0 {
				e.Place = "" // of the place itself
			}
			if !yield(e, err) || err != nil && e.Place == "" {
				return false
			}
		}
		if !holds {
			continue
		}
		more, left, err := others(ctx, seen, one.format, one.Name, o)
		if err != nil {
			yield(format.Entry{}, err)
			return false
		}
		for _, l := range left {
			if !yield(format.Entry{Place: l.name, Rows: -1, Bytes: -1}, l.err) {
				return false
			}
		}
		all = append(all, more...)
	}
	return true
}

// listOne is what one target holds.
func listOne(ctx context.Context, tg found, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.format.List == nil {
			yield(format.Entry{Kind: tg.format.Title, Rows: -1, Bytes: -1, Place: tg.Name, Format: tg.format.Name}, nil)
			return
		}
		tg.Opts, tg.Limits = o.Opts, o.Limits
		for e, err := range tg.format.List(ctx, tg.Target) {
			e.Place, e.Format = tg.Name, tg.format.Name
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// others are the tables of other formats in a directory that a format took for its own because its tables lie
// below it. o saw what was opened of these: a directory in which the format opened a file is the format's with
// all that is in it, and so is one with its Marker. What is nobody's is passed over. left is what could not be
// looked at.
func others(ctx context.Context, o *opened, owner *format.Format, name string, opts OpenOptions) (out []found,
	left []leftOut, err error) {
	var walk func(name string, depth int) error
	walk = func(name string, depth int) error {
		if dir := path.Clean(name); o.direct[dir] || owner.Marker != "" && o.direct[path.Join(dir, owner.Marker)] ||
			depth > deepest {
			return nil
		}
		for info, err := range o.Tree.List(ctx, name) {
			if err != nil && info.Name == "" {
				return err
			}
			child := path.Clean(info.Name)
			switch base := path.Base(child); {
			case base[0] == '.' || base[0] == '_' || o.files[child]:
				continue
			case err != nil:
				left = append(left, leftOut{name: info.Name, err: err})
				continue
			case info.Dir && o.below[child]:
				if err := walk(info.Name, depth+1); err != nil {
					return err
				}
				continue
			}
			tg := format.Target{Tree: o.Tree, Name: info.Name}
			switch f, err := Probe(ctx, tg, opts); {
			case err == nil && f.System() != owner.System():
				out = append(out, found{Target: tg, format: f})
			case store.Failing(err) && ctx.Err() == nil:
				left = append(left, leftOut{name: info.Name, err: err})
			}
		}
		return ctx.Err()
	}
	err = walk(name, 0)
	return out, left, err
}

// single is an error if what was found in a directory that is no format's own is certainly not one table: files
// of several formats, or a directory that is a table, or several, beside files.
func single(ctx context.Context, targets []found, o OpenOptions) error {
	for _, tg := range targets {
		var same []found
		for _, x := range targets {
			if x.set == tg.set {
				same = append(same, x)
			}
		}
		if tg.set != "" && len(same) > 1 && (tg.dir || tg.format != same[0].format) {
			return severalTables(ctx, tg.set, same, o)
		}
	}
	return nil
}

// severalTables is the error that names the tables of targets.
func severalTables(ctx context.Context, place string, targets []found, o OpenOptions) error {
	var names []string
	for _, tg := range targets {
		for e, err := range listOne(ctx, tg, o) {
			if err != nil { // what is wrong with it is told when it is named
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

// alone is an error if a directory that a format took for its own, and of which it opened a table, or found
// that it has several, holds tables of other formats, too. seen saw what it opened.
func alone(ctx context.Context, tg found, seen *opened, o OpenOptions) error {
	more, _, err := others(ctx, seen, tg.format, tg.Name, o) // what cannot be looked at is none of this table
	if err != nil || len(more) == 0 {
		return err
	}
	tg.Tree = o.tree()
	return severalTables(ctx, tg.Name, append([]found{tg}, more...), o)
}

// mayHold reports whether the target is a directory of which nobody said which table, or format, is meant.
func mayHold(ctx context.Context, tg found, o OpenOptions) (bool, error) {
	if tg.Table != "" || o.From != "" {
		return false, nil
	}
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if !store.Failing(err) {
		err = nil
	}
	return info.Dir, err
}

// unnamed reports whether an error may be that no table was named.
func unnamed(err error) bool { return err == nil || errors.Is(err, fault.Invalid) }
