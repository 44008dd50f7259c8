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
	Chunk    int // index of the column chunk in a blocklet of the file
	Children []*Column
	Parent   *Column // nil: a top-level column
	// Cardinality is the cardinality in the file's segment_info, -1 if it has none; in formats 1 and 2 readers derive
	// the widths of keys from it.
	Cardinality int32
}

// LeafName is the column's name without that of its parent.
func (c *Column) LeafName() string {
	if c.Parent != nil && len(c.Name) > len(c.Parent.Name)+1 && c.Name[:len(c.Parent.Name)] == c.Parent.Name {
		return c.Name[len(c.Parent.Name)+1:]
	}
	return c.Name
}

const maxNesting = 32

// ColumnTree builds the trees of columns from a depth-first list, and numbers their chunks: dimensions in list order,
// then measures. chunks is the number of chunks. Errors are Corrupt, Unsupported (a type) or Limit (nested too deep);
// they have the place at and path.
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
		c := &Column{ColumnSchema: &list[pos], Parent: parent, Cardinality: -1}
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
			if !strings.HasPrefix(k.Name, c.prefix()) { // one of the two names is damaged
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

// ByChunk returns the columns of the trees, including children, indexed by chunk. n is the number of chunks that
// ColumnTree returned.
func ByChunk(roots []*Column, n int) []*Column {
	out := make([]*Column, n)
	for _, r := range roots {
		r.Walk(func(c *Column) { out[c.Chunk] = c })
	}
	return out
}

// prefix is the common prefix of the names of a column's children. The struct in a map has an arbitrary name, which the
// names of key and value do not include.
func (c *Column) prefix() string {
	if c.Parent != nil && c.Parent.Type == layout.TypeMap {
		return c.Parent.prefix()
	}
	return c.Name + "."
}

// CheckLimits returns Limit if there are more columns, or more deeply nested columns, than l allows.
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

// check checks a column's type, and the number of children against it.
func (c *Column) check(at fault.Span, path string) error {
	if c.Name == "" {
		return fault.Corruptf(at, path, "a column of type %s has no name", c.Type)
	}
	want := -1
	switch c.Type {
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
		return fault.Corruptf(at, path, "column %s of type %s: expected %d children, found %d", c.Name, c.Type, want,
			len(c.Children))
	}
	if c.Type == layout.TypeMap && (c.Children[0].Type != layout.TypeStruct || len(c.Children[0].Children) != 2) {
		return fault.Corruptf(at, path, "map %s: expected a struct of key and value", c.Name)
	}
	if _, ok := layout.TypeNames[c.Type]; !ok {
		return fault.Unsupportedf(at, path, "column %s: %s", c.Name, c.Type)
	}
	return nil
}

// Walk calls f with c and every column below it, depth first.
func (c *Column) Walk(f func(*Column)) {
	f(c)
	for _, k := range c.Children {
		k.Walk(f)
	}
}

// SetCardinality sets the cardinality that a writer records: the number of codes for a global dictionary, the maximum
// int for a direct one, 0 for a nested column with a dictionary, else -1.
func (c *Column) SetCardinality(codes int) {
	switch {
	case c.Type.Complex() && c.Encoders.Has(layout.EncDictionary):
		c.Cardinality = 0
	case !c.Encoders.Has(layout.EncDictionary):
		c.Cardinality = -1
	case c.Encoders.Has(layout.EncDirectDictionary):
		c.Cardinality = math.MaxInt32
	default:
		c.Cardinality = int32(codes)
	}
}

// HasGlobalCodes reports whether the pages of a column hold codes of a global dictionary.
func HasGlobalCodes(c *Column) bool {
	return c.Dimension && !c.Type.Complex() && c.HasGlobalDictionary()
}
