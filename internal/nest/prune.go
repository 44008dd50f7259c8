package nest

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// Pruned returns f with only those children of structs that want requests. The paths of want begin with the field's
// index in the schema, which is ignored; nil means everything. Paths may go through lists. Maps and unions are kept
// whole if any part of them is requested. A path that does not exist in f is an error of class Invalid.
func Pruned(f arrow.Field, want [][]int) (arrow.Field, error) {
	n, err := newTree(f, want)
	if err != nil {
		return arrow.Field{}, err
	}
	return n.field, nil
}

// Needed lists the physical columns of a top-level field that want needs, including their parents, in ascending order.
// columns are the indices in all, a reader's columns, of those that store the field.
func Needed(f arrow.Field, want [][]int, all []format.Column, columns []int) ([]int, error) {
	n, err := newTree(f, want)
	if err != nil {
		return nil, err
	}
	need := map[int]bool{}
	for _, i := range columns {
		if !n.has(all[i].Path[1:]) {
			continue
		}
		for ; i >= 0 && i < len(all) && !need[i]; i = all[i].Parent {
			need[i] = true
		}
	}
	out := make([]int, 0, len(need))
	for i := range need {
		out = append(out, i)
	}
	slices.Sort(out)
	return out, nil
}

// node is a field of the requested part of a type, with its levels and its columns.
type node struct {
	field    arrow.Field // pruned
	name     string      // joined from the root field down
	shape    shape
	index    int  // child index in the whole type
	optional bool // by levels: it may be absent, because it is nullable or a branch of a union
	children []*node

	// Levels. A place for a value exists if an entry's repetition level is at most rep and its definition level is at
	// least above. The value itself exists from def on, the items of a list from def+1 on, and these repeat at rep+1.
	above, def, rep uint8

	// Columns, by their position among the columns passed; -1 if none.
	presence int // no or one item for each place
	own      int // lengths of a list, values of a leaf
	leaf     int // by levels: the first leaf at or below
}

// newTree makes the nodes of the parts of f to which want refers.
func newTree(f arrow.Field, want [][]int) (*node, error) {
	below := make([][]int, 0, len(want))
	for _, w := range want {
		if len(w) == 0 {
			return nil, fault.Invalidf("column %q: a wanted path without its first index", f.Name)
		}
		if !reaches(f.Type, w[1:]) {
			return nil, fault.Invalidf("column %q has nothing at path %v", f.Name, w)
		}
		below = append(below, w[1:])
	}
	if len(want) == 0 {
		below = [][]int{{}}
	}
	return newNode(f, &node{name: ""}, below, 0)
}

func reaches(t arrow.DataType, path []int) bool {
	for _, i := range path {
		c := children(t)
		if i < 0 || i >= len(c) {
			return false
		}
		t = c[i].Type
	}
	return true
}

// newNode makes the node of f below up. At least one path of want leads to it or through it.
func newNode(f arrow.Field, up *node, want [][]int, depth int) (*node, error) {
	n := &node{field: f, name: f.Name, shape: shapeOf(f.Type), presence: -1, own: -1, leaf: -1}
	if up.name != "" {
		n.name = up.name + "." + f.Name
	}
	if depth > maxDepth {
		return nil, fault.Unsupportedf(fault.Span{}, n.name, "types nested deeper than %d", maxDepth)
	}
	n.above, n.def, n.rep = up.above, up.def, up.rep
	if up.isList() {
		n.above, n.def, n.rep = up.def+1, up.def+1, up.rep+1
	}
	if n.optional = f.Nullable || up.shape == shapeUnion; n.optional {
		n.def++
	}
	fields := children(f.Type)
	if n.shape == shapeOther {
		return nil, fault.Unsupportedf(fault.Span{}, n.name, "type %s is not assembled from columns", f.Type)
	}
	if n.shape == shapeLeaf || n.shape == shapeNull {
		return n, nil
	}
	whole := n.shape == shapeMap || n.shape == shapeUnion ||
		slices.ContainsFunc(want, func(w []int) bool { return len(w) == 0 })
	for i, c := range fields {
		sub := through(want, i)
		if whole {
			sub = [][]int{{}}
		}
		if len(sub) == 0 {
			continue
		}
		child, err := newNode(c, n, sub, depth+1)
		if err != nil {
			return nil, err
		}
		child.index = i
		n.children = append(n.children, child)
	}
	if m, ok := f.Type.(*arrow.MapType); ok {
		n.children[0].field.Type = m.Elem()
	}
	n.field.Type = n.prunedType(len(fields))
	return n, nil
}

func (n *node) isList() bool {
	return n.shape == shapeList || n.shape == shapeFixedList || n.shape == shapeMap
}

// through returns the rest of the paths that go through child i.
func through(want [][]int, i int) (out [][]int) {
	for _, w := range want {
		if len(w) > 0 && w[0] == i {
			out = append(out, w[1:])
		}
	}
	return out
}

// prunedType returns the type with the children that n has; all is their number in the file.
func (n *node) prunedType(all int) arrow.DataType {
	t := n.field.Type
	switch n.shape {
	case shapeStruct:
		kept := make([]arrow.Field, len(n.children))
		same := len(kept) == all
		for i, c := range n.children {
			kept[i] = c.field
			same = same && c.field.Type == t.(*arrow.StructType).Field(c.index).Type
		}
		if same {
			return t
		}
		return arrow.StructOf(kept...)
	case shapeList, shapeFixedList:
		item := n.children[0].field
		if item.Type == children(t)[0].Type {
			return t
		}
		switch l := t.(type) {
		case *arrow.LargeListType:
			return arrow.LargeListOfField(item)
		case *arrow.FixedSizeListType:
			return arrow.FixedSizeListOfField(l.Len(), item)
		}
		return arrow.ListOfField(item)
	}
	return t
}

// has reports whether the path leads to n or a node below it.
func (n *node) has(path []int) bool { return n.at(path) != nil }

func (n *node) at(path []int) *node {
	for _, i := range path {
		k := slices.IndexFunc(n.children, func(c *node) bool { return c.index == i })
		if k < 0 {
			return nil
		}
		n = n.children[k]
	}
	return n
}
