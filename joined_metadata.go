package stoa

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// MetadataConflict is a key of the schema's metadata of which a source has another value than one before it.
type MetadataConflict struct {
	Key        string
	Kept, Left string // names of the sources whose value is taken, and is not
}

// MetadataConflicts are those of the table's sources: the schema has the first value of each key.
func (t *Table) MetadataConflicts() (out []MetadataConflict) {
	type taken struct{ value, source string }
	first := map[string]taken{}
	for _, s := range t.sources {
		md := s.reader.Schema().Metadata()
		for i, key := range md.Keys() {
			was, ok := first[key]
			switch {
			case !ok:
				first[key] = taken{md.Values()[i], s.name}
			case was.value != md.Values()[i]:
				out = append(out, MetadataConflict{key, was.source, s.name})
			}
		}
	}
	return out
}

// joinedMetadata has the keys of both, with the values of the first one.
func joinedMetadata(a, b arrow.Metadata) arrow.Metadata {
	keys, values := slices.Clone(a.Keys()), slices.Clone(a.Values())
	for i, key := range b.Keys() {
		if !slices.Contains(keys, key) {
			keys, values = append(keys, key), append(values, b.Values()[i])
		}
	}
	if len(keys) == a.Len() {
		return a
	}
	return arrow.NewMetadata(keys, values)
}
