package trevni

import (
	"fmt"
	"strings"

	"stoa/fault"
)

// Memory that a step of a column's way through the schema, and a byte of a schema's text, is taken to need.
const (
	perStep = 512
	perByte = 64
)

// perRow is what a row takes of a page's budget that takes no bytes in the file: with the usual one, 16 million rows
// may have no column.
const perRow = 64

// affordable refuses a schema that is nested deeper, or takes more memory, than the limits allow, before it is
// made: a few bytes of a column may stand for very many lists in each other.
func (f *file) affordable() error {
	h := &f.header
	if n := h.steps(); n > f.limits.Fields && !h.keepsSchema() {
		return f.limits.FitSize(n, 0, f.at.Sub(0, h.size), "column-metadata")
	}
	depth := make([]int64, len(h.Columns))
	spent := int64(0)
	for i := range h.Columns {
		c := &h.Columns[i]
		if depth[i] = int64(c.MaxRep); c.Parent >= 0 {
			depth[i] = depth[c.Parent] + 1
		}
		steps := depth[i]
		if h.Dialect == Wiki {
			steps = max(steps, int64(strings.Count(c.Name, ".")))
		}
		if steps > f.limits.Depth {
			return fault.Limitf(c.at, fmt.Sprintf("column-metadata[%d]", i),
				"the column is nested %d deep, and at most %d is read (--max-depth)", steps, f.limits.Depth)
		}
		spent += perStep * (1 + steps)
	}
	for _, p := range h.Meta {
		if p.Key == "avro.schema" || p.Key == schemaKey {
			spent += perByte * int64(len(p.Value))
		}
	}
	if most := f.limits.Page / perRow; len(h.Columns) == 0 && h.Rows > most {
		return fault.Limitf(f.at.Sub(4, 8), "header.row-count", "%d rows without a column, of which nothing but this "+
			"number is stored; at most %d are read (--max-page)", h.Rows, most)
	}
	if spent > f.limits.Opening {
		return fault.Limitf(f.at.Sub(0, h.size), "header",
			"the schema takes some %d bytes of memory, opening a file may take %d", spent, f.limits.Opening)
	}
	return nil
}

// steps is how many fields the columns' names stand for, if they are dotted paths: a step that the column before has
// as well is the same field.
func (h *Header) steps() (n int64) {
	if h.Dialect != Wiki {
		return int64(len(h.Columns))
	}
	before := ""
	for i := range h.Columns {
		name := h.Columns[i].Name
		same := 0 // bytes
		for k := 0; k < len(name) && k < len(before) && name[k] == before[k]; k++ {
			if name[k] == '.' {
				same = k + 1
			}
		}
		n += 1 + int64(strings.Count(name[same:], "."))
		before = name
	}
	return n
}

// keepsSchema reports whether the file has a schema that goes with its columns, so that names are not taken apart.
func (h *Header) keepsSchema() bool {
	sc := storedSchema(h)
	return sc != nil && planLeaves(h, sc) != nil
}
