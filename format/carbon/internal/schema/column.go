package schema

import (
	"math"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
)

// Column is a column of a table or file, with its children.
type Column struct {
	*layout.ColumnSchema
	Chunk    int // number of the column chunk in a blocklet of its file
	Children []*Column
	Parent   *Column
	// card is the cardinality that a file's segment_info says, -1 if none; formats 1 and 2 make key widths of it.
	Card int32
}

// LeafName is the last part of a child's name.
func (c *Column) LeafName() string {
	if c.Parent != nil && len(c.Name) > len(c.Parent.Name)+1 && c.Name[:len(c.Parent.Name)] == c.Parent.Name {
		return c.Name[len(c.Parent.Name)+1:]
	}
	return c.Name
}

const maxNesting = 32

// ColumnTree makes trees of columns that are listed depth first, and numbers their chunks: dimensions in the
// order of the list, then measures.
func ColumnTree(list []layout.ColumnSchema, at fault.Span, path string) (roots []*Column, chunks int, err error) {
	dims := 0
	for i := range list {
		if list[i].Dimension {
			dims++
		}
	}
	dim, measure := 0, dims
	pos := 0
	var next func(parent *Column, depth int) (*Column, error)
	next = func(parent *Column, depth int) (*Column, error) {
		if pos >= len(list) {
			return nil, fault.Corruptf(at, path, "column %s has more children than follow it", parent.Name)
		}
		c := &Column{ColumnSchema: &list[pos], Parent: parent, Card: -1}
		pos++
		if c.Dimension {
			c.Chunk = dim
			dim++
		} else {
			c.Chunk = measure
			measure++
		}
		if depth > maxNesting {
			return nil, fault.Limitf(at, path, "column %s: columns nested deeper than %d are not read", c.Name,
				maxNesting)
		}
		if c.NumChild < 0 || int(c.NumChild) > len(list)-pos {
			return nil, fault.Corruptf(at, path, "column %s has %d children, %d columns follow", c.Name, c.NumChild,
				len(list)-pos)
		}
		for range c.NumChild {
			k, err := next(c, depth+1)
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(k.Name, c.prefix()) { // one of the two names is another now
				return nil, fault.Corruptf(at, path, "column %s is within column %s, whose name it does not begin with",
					k.Name, c.Name)
			}
			c.Children = append(c.Children, k)
		}
		return c, c.check(at, path)
	}
	for pos < len(list) {
		c, err := next(nil, 0)
		if err != nil {
			return nil, 0, err
		}
		roots = append(roots, c)
	}
	return roots, len(list), nil
}

// prefix is what the names of a column's children begin with. The pairs of a map are called as one likes: they are
// left out.
func (c *Column) prefix() string {
	if c.Parent != nil && c.Parent.Typ == layout.TypeMap {
		return c.Parent.prefix()
	}
	return c.Name + "."
}

// CheckLimits refuses columns that are more, or nested deeper, than the limits allow.
func CheckLimits(roots []*Column, l format.Limits, at fault.Span, path string) error {
	fields, depth := int64(0), int64(0)
	var walk func(c *Column, above int64)
	walk = func(c *Column, above int64) {
		fields++
		depth = max(depth, above)
		for _, k := range c.Children {
			walk(k, above+1)
		}
	}
	for _, r := range roots {
		walk(r, 0)
	}
	return l.FitSize(fields, depth, at, path)
}

// check says whether a column can be what it says.
func (c *Column) check(at fault.Span, path string) error {
	if c.Name == "" {
		return fault.Corruptf(at, path, "a column of type %s has no name", c.Typ)
	}
	want := -1
	switch c.Typ {
	case layout.TypeArray, layout.TypeMap:
		want = 1
	case layout.TypeStruct:
		if len(c.Children) == 0 {
			want = 1
		}
	default:
		want = 0
	}
	if want >= 0 && len(c.Children) != want {
		return fault.Corruptf(at, path, "column %s, of type %s, has %d children", c.Name, c.Typ, len(c.Children))
	}
	if c.Typ == layout.TypeMap && (c.Children[0].Typ != layout.TypeStruct || len(c.Children[0].Children) != 2) {
		return fault.Corruptf(at, path, "the map %s has no struct of key and value", c.Name)
	}
	if _, ok := layout.TypeNames[c.Typ]; !ok {
		return fault.Unsupportedf(at, path, "column %s: %s", c.Name, c.Typ)
	}
	return nil
}

// All calls f with c and every column below it, depth first.
func (c *Column) All(f func(*Column)) {
	f(c)
	for _, k := range c.Children {
		k.All(f)
	}
}

// SetCard reports a column how many codes it has: of a direct dictionary as many as there are numbers.
func (c *Column) SetCard(codes int) {
	switch {
	case c.Typ.Complex() && c.Encoders.Has(layout.EncDictionary):
		c.Card = 0
	case !c.Encoders.Has(layout.EncDictionary):
		c.Card = -1
	case c.Encoders.Has(layout.EncDirectDictionary):
		c.Card = math.MaxInt32
	default:
		c.Card = int32(codes)
	}
}

// GlobalCodes reports whether the pages of a column hold codes of a dictionary of the table.
func GlobalCodes(c *Column) bool {
	return c.Dimension && !c.Typ.Complex() && c.Encoders.Has(layout.EncDictionary) &&
		!c.Encoders.Has(layout.EncDirectDictionary)
}
