package page

import (
	"encoding/binary"
	"time"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
)

// In formats 1 and 2 structs are stored like lists: the number of their children, and the ordinal of the first child's
// entry (two i32, big-endian). The writer counts entries across all blocklets of a load, so only differences of
// ordinals can be compared with the children.

// listBase is the ordinal of the first item of a page: 0 in format 3.
func listBase(raw []byte, version int) int64 {
	if version == 3 {
		return 0
	}
	for i := 0; i+8 <= len(raw); i += 8 {
		if binary.BigEndian.Uint32(raw[i:]) != 0 {
			return int64(int32(binary.BigEndian.Uint32(raw[i+4:])))
		}
	}
	return 0
}

// structs12 checks that each struct has all its children, and sets each count to 1.
func (p *StoredPage) structs12(raw []byte, counts []int32, base int64) error {
	for i := range counts {
		if k := int(int32(binary.BigEndian.Uint32(raw[8*i:]))); k != len(p.Col.Children) {
			return fault.Rel(8*i, 4, "", "struct %d of %s: expected %d children, found %d", i, p.Col.Name,
				len(p.Col.Children), k)
		}
		if first := int64(int32(binary.BigEndian.Uint32(raw[8*i+4:]))); first != base+int64(i) {
			return fault.Rel(8*i+4, 4, "", "struct %d of %s: expected entry %d of its children, found %d", i,
				p.Col.Name,
				i, first-base)
		}
		counts[i] = 1
	}
	return nil
}

// keepsText reports whether values of a type other than string are stored as text, as they are in formats 1 and 2 for
// dimensions without a dictionary.
func (p *StoredPage) keepsText(t arrow.DataType) bool {
	return p.Version < 3 && p.Col.Dimension && !p.Encoders.Has(layout.EncDictionary) && t.ID() != arrow.STRING &&
		t.ID() != arrow.BINARY
}

// textLeaf parses text and sets entry i to its value.
func (c *Content) textLeaf(dst *vec.Vector, i int, text []byte) error {
	v, err := schema.ParseValue(c.P.Col, string(text), time.UTC)
	if err != nil {
		return Relative(err)
	}
	v.Set(dst, i)
	return nil
}
