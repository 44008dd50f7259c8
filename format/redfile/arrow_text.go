package redfile

import (
	"fmt"
	"slices"
	"stoa/fault"
	"stoa/format"

	"github.com/apache/arrow-go/v18/arrow"
)

// The Arrow schema that our writer keeps says what no other part of the file says: what the numbers of a
// decimal, or of a time, mean. One wrong bit in it would give other values in every row, so it has a checksum
// of its own beside it, also where pages and metadata have none.
const sumKey = "stoa.schema.crc"

func sumOf(text string) string { return fmt.Sprintf("%08x", crcOf([]byte(text))) }

// arrowOf is the Arrow schema that the writer kept in the metadata at a place; nil if there is none.
func arrowOf(m *fileMeta, l format.Limits, at fault.Span) (*arrow.Schema, error) {
	text, ok := m.pair(schemaKey)
	sum, summed := m.pair(sumKey)
	switch {
	case !ok && summed:
		return nil, fmt.Errorf("it is missing, and its checksum is there")
	case !ok:
		return nil, nil
	case summed && sum != sumOf(text):
		return nil, fmt.Errorf("its checksum is %s, and %s is stored", sumOf(text), sum)
	}
	return schemaOfText(text, l, at)
}

// arrowTree is the schema, in RedFile's words, that the writer kept in Arrow's; nil if there is none, or it
// is more than the limits allow.
func arrowTree(m *fileMeta, l format.Limits) *node {
	sc, err := arrowOf(m, l, fault.Span{})
	if sc == nil || err != nil {
		return nil
	}
	t, err := treeOf(sc)
	if err != nil {
		return nil
	}
	return t
}

// sameNames holds the names in an Arrow schema without checksum against those of the leaves.
func sameNames(sc *arrow.Schema, stored []leaf) error {
	t, err := treeOf(sc)
	if err != nil {
		return err
	}
	for i, l := range leavesOf(t) {
		if i < len(stored) && !slices.Equal(l.path, stored[i].path) {
			return fmt.Errorf("it calls column %d %q, which is %q", i, l.path, stored[i].path)
		}
	}
	return nil
}
