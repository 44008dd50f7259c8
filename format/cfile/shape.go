package cfile

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"
	"stoa/pred"
)

// shape is the schema of a set of CFiles, and the position of each file in it.
type shape struct {
	stored  []arrow.Field // types to which the files' values are decoded
	shown   []arrow.Field // types in which they were written
	places  []place       // one for each file
	next    int           // index of the next file
	fieldOf func(i int, name string) arrow.Field
}

// place is the position and role of a file in the schema.
type place struct {
	path     []int          // child indices from the root
	typ      arrow.DataType // of the values that are decoded
	validity bool           // the values are the validity of the struct at path
}

// flatShape makes each file a column of the table under its name. Type, nullability and metadata come from sc, the
// original schema (nil if unknown), where they fit the contents of the file. fieldOf returns the field of file i under
// the given name.
func flatShape(sc *arrow.Schema, names []string, fieldOf func(i int, name string) arrow.Field) *shape {
	s := &shape{}
	for i, name := range names {
		stored := fieldOf(i, name)
		shown := stored
		if sc != nil {
			if written, ok := fieldAt(sc.Fields(), name); ok {
				stored, shown = restored(stored, written, true)
			}
		}
		s.stored, s.shown = append(s.stored, stored), append(s.shown, shown)
		s.places = append(s.places, place{path: []int{i}, typ: stored.Type})
	}
	return s
}

// nestedShape arranges files as the fields of sc, the original schema; leaves are its columns, one for each file.
func nestedShape(sc *arrow.Schema, leaves []write.Leaf, fieldOf func(i int, name string) arrow.Field) *shape {
	s := &shape{fieldOf: fieldOf}
	for i, f := range sc.Fields() {
		stored, shown := s.field(f, []int{i}, leaves)
		s.stored, s.shown = append(s.stored, stored), append(s.shown, shown)
	}
	return s
}

// field returns field f with its decoded and with its final type, and appends the places of its files.
func (s *shape) field(f arrow.Field, path []int, leaves []write.Leaf) (stored, shown arrow.Field) {
	st := write.Struct(f.Type)
	if st == nil {
		stored, shown = restored(s.fieldOf(s.next, f.Name), f, !leaves[s.next].Inside)
		s.add(place{path: path, typ: stored.Type})
		return stored, shown
	}
	if f.Nullable {
		s.add(place{path: path, typ: arrow.FixedWidthTypes.Boolean, validity: true})
	}
	stored, shown = f, f
	var in, out []arrow.Field
	for i, child := range st.Fields() {
		a, b := s.field(child, append(path[:len(path):len(path)], i), leaves)
		in, out = append(in, a), append(out, b)
	}
	stored.Type, shown.Type = arrow.StructOf(in...), arrow.StructOf(out...)
	if arrow.TypeEqual(shown.Type, st) && st != f.Type { // an extension whose whole storage is restored
		shown.Type = f.Type
	}
	return stored, shown
}

func (s *shape) add(p place) {
	s.places = append(s.places, p)
	s.next++
}

// restored returns the field of a column with its decoded and with its final type: ofFile, the file's own field, with
// the type, nullability and metadata of written, the schema's field, where they fit the contents of the file. If nulls
// is true, a nullable file makes the field nullable.
func restored(ofFile, written arrow.Field, nulls bool) (stored, shown arrow.Field) {
	stored = ofFile
	stored.Type = block.Decoded(written.Type, ofFile.Type)
	stored.Nullable = written.Nullable || nulls && ofFile.Nullable
	stored.Metadata = overlaid(written.Metadata, ofFile.Metadata)
	shown = stored
	shown.Type = block.Shown(written.Type, stored.Type)
	return stored, shown
}

// fieldAt finds a field by its dotted path; names may contain dots themselves.
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

// overlaid returns the pairs of a and b; if both have a key, b's value is used.
func overlaid(a, b arrow.Metadata) arrow.Metadata {
	m := a.ToMap()
	for i, k := range b.Keys() {
		m[k] = b.Values()[i]
	}
	return arrow.MetadataFrom(m)
}
