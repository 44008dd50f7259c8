package arrowschema

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Joined returns the keys of both metadata. If both have a key, the value is the one in a.
func Joined(a, b arrow.Metadata) arrow.Metadata {
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
