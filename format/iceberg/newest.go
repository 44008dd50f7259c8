package iceberg

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/store"
)

// Metadata files are named vN.metadata.json, if the directory itself says which are the newest, or
// NUMBER-UUID.metadata.json, if a catalogue does. Where a table was first without a catalogue and is then registered in
// one, both are there, and their numbers have nothing to do with each other.

// versionOf returns the number with which the name of a metadata file begins: v3.metadata.json, or 00003-….
func versionOf(name string) int {
	base := strings.TrimPrefix(path.Base(name), "v")
	n, err := strconv.Atoi(base[:len(base)-len(strings.TrimLeft(base, "0123456789"))])
	if err != nil {
		return -1
	}
	return n
}

// isOwn reports whether a metadata file has a name of the directory, not of a catalogue.
func isOwn(name string) bool { return strings.HasPrefix(path.Base(name), "v") }

// candidate is a file that may have the newest metadata.
type candidate struct {
	name  string
	table *meta.Table // nil: it cannot be read
}

// newestOf returns the newest of the metadata files in a directory. A file that cannot be read is taken for the newest
// if it may be: the table may have other rows than by the others, so that opening it has to tell.
func newestOf(ctx context.Context, tree store.Tree, dir string, names []string) (string, error) {
	var own, others []string
	for _, n := range names {
		if isOwn(n) {
			own = append(own, n)
		} else {
			others = append(others, n)
		}
	}
	first, hinted := hintedFile(ctx, tree, dir, names), false
	if hinted = slices.Contains(names, first); !hinted {
		tops := highest(own)
		if len(tops) > 0 && versionOf(tops[0]) >= versionOf(first) { // the hint is old, and its file may be gone
			first = tops[0]
		}
	}
	if len(others) == 0 {
		return first, nil
	}
	var list []candidate
	for _, name := range highest(others) {
		list = append(list, candidateOf(ctx, tree, name))
	}
	switch {
	case first == "":
	case slices.Contains(names, first):
		c := candidateOf(ctx, tree, first)
		if hinted { // the hint is not about another table in the same directory
			list = slices.DeleteFunc(list, func(x candidate) bool { return x.foreign(c) })
		}
		list = append([]candidate{c}, list...)
	case len(own) > 0 && !slices.ContainsFunc(list, func(x candidate) bool { return x.logs(first) }):
		return first, nil // it is lost, and nothing follows it
	}
	return newestAmong(dir, list)
}

// highest returns the files with the highest number, in the order of their names.
func highest(names []string) (out []string) {
	for _, n := range names {
		switch v := versionOf(n); {
		case len(out) == 0 || v > versionOf(out[0]):
			out = []string{n}
		case v == versionOf(out[0]):
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func candidateOf(ctx context.Context, tree store.Tree, name string) candidate {
	b, err := readMetadata(ctx, tree, name, format.Limits{}.WithDefaults().Metadata)
	c := candidate{name, &meta.Table{}}
	if err != nil || json.Unmarshal(b, c.table) != nil {
		c.table = nil
	}
	return c
}

// newestAmong returns the only one of the files that no other follows.
func newestAmong(dir string, list []candidate) (string, error) {
	var last []candidate
	for _, c := range list {
		if c.table == nil {
			return c.name, nil
		}
		if !slices.ContainsFunc(list, func(o candidate) bool { return o.follows(c) }) &&
			!slices.ContainsFunc(last, c.same) {
			last = append(last, c)
		}
	}
	switch len(last) {
	case 0: // each follows another one
		last = list[:2]
	case 1:
		return last[0].name, nil
	}
	return "", fault.Unsupportedf(fault.Span{Object: dir}, "", "%s and %s may each be the newest metadata, and only a "+
		"catalogue knows which is: name the one to read", path.Base(last[0].name), path.Base(last[1].name))
}

// logs reports whether the metadata say that they follow those of a file.
func (c candidate) logs(name string) bool {
	return c.table != nil && slices.ContainsFunc(c.table.MetadataLog, func(e meta.MetadataEntry) bool {
		return path.Base(e.File) == path.Base(name)
	})
}

// follows reports whether the metadata are a later state of the table than those of o. The log has only the last ones
// before; else the time decides between a file of the directory and one of a catalogue. It does not between two of a
// catalogue with the same number: one of them was never committed.
func (c candidate) follows(o candidate) bool {
	if c.table == nil || o.table == nil || c.table.UUID != o.table.UUID || o.logs(c.name) {
		return false
	}
	return c.logs(o.name) || isOwn(c.name) != isOwn(o.name) && c.table.LastUpdated > o.table.LastUpdated
}

// foreign reports whether two files that can be read are about different tables.
func (c candidate) foreign(o candidate) bool {
	return c.table != nil && o.table != nil && c.table.UUID != o.table.UUID
}

// same reports whether two files have the same rows and columns.
func (c candidate) same(o candidate) bool {
	at := func(t *meta.Table) int64 {
		if t.CurrentSnapshot == nil {
			return -1
		}
		return *t.CurrentSnapshot
	}
	return c.table.UUID == o.table.UUID && c.table.CurrentSchema == o.table.CurrentSchema &&
		at(c.table) == at(o.table)
}
