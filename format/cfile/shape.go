package cfile

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"
	"stoa/pred"
)

// shape is the schema of a set of CFiles, and where in it each of them is.
type shape struct {
	stored []arrow.Field // as the files' values are decoded
	shown  []arrow.Field // as they were written
	places []place
	next   int // the file that comes next
	own    func(i int, name string) arrow.Field
}

// place is what a file is in the schema.
type place struct {
	path     []int          // child indices from the root
	typ      arrow.DataType // of the values that are decoded
	validity bool           // they say whether the struct at path is there
}

// flatShape shows so many files side by side, under their names, with types, nullability and metadata from the schema
// that was written, where that is known (nil: not) and fits what they hold. own is file i's field, of the given name.
func flatShape(sc *arrow.Schema, names []string, own func(i int, name string) arrow.Field) *shape {
	s := &shape{}
	for i, name := range names {
		stored := own(i, name)
		shown := stored
		if sc != nil {
			if was, ok := fieldAt(sc.Fields(), name); ok {
				stored, shown = restored(stored, was, true)
			}
		}
		s.stored, s.shown = append(s.stored, stored), append(s.shown, shown)
		s.places = append(s.places, place{path: []int{i}, typ: stored.Type})
	}
	return s
}

// nestedShape shows files as the schema that was written has them: leaves are its columns, one a file.
func nestedShape(sc *arrow.Schema, leaves []write.Leaf, own func(i int, name string) arrow.Field) *shape {
	s := &shape{own: own}
	for i, f := range sc.Fields() {
		stored, shown := s.field(f, []int{i}, leaves)
		s.stored, s.shown = append(s.stored, stored), append(s.shown, shown)
	}
	return s
}

// field returns f as it is decoded and as it is shown, and its files their places.
func (s *shape) field(f arrow.Field, path []int, leaves []write.Leaf) (stored, shown arrow.Field) {
	st := write.Struct(f.Type)
	if st == nil {
		stored, shown = restored(s.own(s.next, f.Name), f, !leaves[s.next].Inside)
		s.add(place{path: path, typ: stored.Type})
		return stored, shown
	}
	if f.Nullable {
		s.add(place{path: path, typ: arrow.FixedWidthTypes.Boolean, validity: true})
	}
	stored, shown = f, f
	var in, out []arrow.Field
	for i, kid := range st.Fields() {
		a, b := s.field(kid, append(path[:len(path):len(path)], i), leaves)
		in, out = append(in, a), append(out, b)
	}
	stored.Type, shown.Type = arrow.StructOf(in...), arrow.StructOf(out...)
	if arrow.TypeEqual(shown.Type, st) && st != f.Type { // an extension, all of whose storage comes back
		shown.Type = f.Type
	}
	return stored, shown
}

func (s *shape) add(p place) {
	s.places = append(s.places, p)
	s.next++
}

// restored is the field of a column as it is decoded and as it was written: the file's, with name, type, nullability
// and metadata of the field that was written where that fits what the file holds. nulls: that the file has a place for
// nulls says that there may be some.
func restored(own, was arrow.Field, nulls bool) (stored, shown arrow.Field) {
	stored = own
	stored.Type = block.Decoded(was.Type, own.Type)
	stored.Nullable = was.Nullable || nulls && own.Nullable
	stored.Metadata = joined(was.Metadata, own.Metadata)
	shown = stored
	shown.Type = block.Shown(was.Type, stored.Type)
	return stored, shown
}

// fieldAt finds a field by its dotted path; names may have dots themselves.
func fieldAt(fields []arrow.Field, dotted string) (arrow.Field, bool) {
	for _, f := range fields {
		if f.Name == dotted || pred.JoinPath(f.Name) == dotted {
			return f, true
		}
	}
	for _, f := range fields {
		st := write.Struct(f.Type)
		if st == nil {
			continue
		}
		for _, prefix := range []string{f.Name, pred.JoinPath(f.Name)} {
			if rest, ok := strings.CutPrefix(dotted, prefix+"."); ok {
				if x, ok := fieldAt(st.Fields(), rest); ok {
					return x, true
				}
			}
		}
	}
	return arrow.Field{}, false
}

// joined is a with the pairs of b over it.
func joined(a, b arrow.Metadata) arrow.Metadata {
	m := a.ToMap()
	for i, k := range b.Keys() {
		m[k] = b.Values()[i]
	}
	return arrow.MetadataFrom(m)
}
