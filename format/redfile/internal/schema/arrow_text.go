package schema

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"

	"github.com/apache/arrow-go/v18/arrow"
)

// The Arrow schema that our writer keeps says what no other part of the file says: what the numbers of a
// decimal, or of a time, mean. One wrong bit in it would give other values in every row, so it has a checksum
// of its own beside it, also where pages and metadata have none.
const SumKey = "stoa.schema.crc"

func SumOf(text string) string { return fmt.Sprintf("%08x", layout.CRC([]byte(text))) }

// ArrowOf is the Arrow schema that the writer kept in the metadata at a place; nil if there is none.
func ArrowOf(m *layout.FileMeta, l format.Limits, at fault.Span) (*arrow.Schema, error) {
	text, ok := m.Pair(SchemaKey)
	sum, summed := m.Pair(SumKey)
	switch {
	case !ok && summed:
		return nil, fmt.Errorf("it is missing, and its checksum is there")
	case !ok:
		return nil, nil
	case summed && sum != SumOf(text):
		return nil, fmt.Errorf("its checksum is %s, and %s is stored", SumOf(text), sum)
	}
	return schemaOfText(text, l, at)
}

// ArrowTree is the schema, in RedFile's words, that the writer kept in Arrow's; nil if there is none, or it
// is more than the limits allow.
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

// SameNames compares the names in an Arrow schema without checksum with those of the leaves.
func SameNames(sc *arrow.Schema, stored []Leaf) error {
	t, err := TreeOf(sc)
	if err != nil {
		return err
	}
	for i, l := range LeavesOf(t) {
		if i < len(stored) && !slices.Equal(l.Path, stored[i].Path) {
			return fmt.Errorf("it calls column %d %q, which is %q", i, l.Path, stored[i].Path)
		}
	}
	return nil
}
