package trevni

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// planLevels shows columns with Dremel levels.
func planLevels(h *Header) *plan {
	p := &plan{h: h, how: "columns"}
	for i := range h.Columns {
		c := &h.Columns[i]
		at := []int{len(p.fields)}
		t := types[c.Type].arrow
		f := arrow.Field{Name: c.Name, Type: t, Nullable: c.MaxDef > 0 || c.Type == Null, Metadata: metadataOf(c)}
		switch {
		case c.Width > 0:
			f.Type = arrow.ListOfNonNullable(t)
			ph := p.add(i, shapeMatrix, format.Values|format.Lengths, -1, at, f.Type)
			ph.size = c.Width
		case c.MaxDef == 0:
			p.add(i, shapeFlat, format.Values, -1, at, t)
		default:
			p.add(i, shapeNullable, format.Values, -1, at, t)
		}
		p.fields = append(p.fields, f)
	}
	return p
}
