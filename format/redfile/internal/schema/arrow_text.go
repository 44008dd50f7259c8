package schema

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"

	"github.com/apache/arrow-go/v18/arrow"
)

// SumKey is the metadata key of the checksum of the Arrow schema that our writer stores. Only that schema contains
// scales of decimals and units of times, where one wrong bit would change the values of every row. So it has a checksum
// even if pages and metadata have none.
const SumKey = "stoa.schema.crc"

// SumOf returns the checksum of the text of an Arrow schema, a CRC-32 in hexadecimal.
func SumOf(text string) string { return fmt.Sprintf("%08x", layout.CRC([]byte(text))) }

// ArrowOf returns the Arrow schema in the metadata of a file, whose span is at; nil if there is none. A wrong checksum,
// or text that cannot be decoded, is an error.
func ArrowOf(m *layout.FileMeta, l format.Limits, at fault.Span) (*arrow.Schema, error) {
	text, ok := m.Pair(SchemaKey)
	sum, summed := m.Pair(SumKey)
	switch {
	case !ok && summed:
		return nil, fmt.Errorf("it is missing, and its checksum is there")
	case !ok:
		return nil, nil
	case summed && sum != SumOf(text):
		return nil, fmt.Errorf("checksum: expected %s, computed %s", sum, SumOf(text))
	}
	return schemaOfText(text, l, at)
}

// ArrowTree returns the tree of the Arrow schema in the metadata; nil if there is none or it cannot be used.
func ArrowTree(m *layout.FileMeta, l format.Limits) *Node {
	sc, err := ArrowOf(m, l, fault.Span{})
	if sc == nil || err != nil {
		return nil
	}
	t, err := TreeOf(sc)
	if err != nil {
		return nil
	}
	return t
}

// SameNames returns an error if the names in an Arrow schema without a checksum differ from those of the leaves.
func SameNames(sc *arrow.Schema, stored []Leaf) error {
	t, err := TreeOf(sc)
	if err != nil {
		return err
	}
	for i, l := range LeavesOf(t) {
		if i < len(stored) && !slices.Equal(l.Path, stored[i].Path) {
			return fmt.Errorf("column %d: expected %q, found %q", i, stored[i].Path, l.Path)
		}
	}
	return nil
}
