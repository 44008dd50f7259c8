package nest

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
)

// Assembler builds the arrays of one top-level field from its physical columns. It is immutable: any number of
// goroutines may share one.
type Assembler struct {
	root   *node
	cols   []format.Column // the given columns, in order
	use    []int           // their numbers in the reader
	leaves []*node         // by levels: nodes of the same columns
	needs  []*[256]byte
	joins  []join
	levels bool
}

// Input is the entries of one physical column.
type Input struct {
	Array    arrow.Array
	Def, Rep []byte // of a column with levels, one per entry; may be nil if the maximum is 0
}

// NewAssembler plans the assembly of f from the columns use (indices into all, which is a reader's Columns). want is as
// for Pruned, but its paths must begin with the field's own index. If the columns do not fit the type, the error is of
// class Bug, because the format's code is wrong.
func NewAssembler(f arrow.Field, all []format.Column, use []int, want [][]int) (*Assembler, error) {
	root, err := newTree(f, want)
	if err != nil {
		return nil, err
	}
	a := &Assembler{root: root, cols: make([]format.Column, len(use)), use: slices.Clone(use),
		leaves: make([]*node, len(use))}
	for i, c := range use {
		if c < 0 || c >= len(all) {
			return nil, fault.Bugf("field %q: no column %d", f.Name, c)
		}
		a.cols[i] = all[c]
		a.levels = a.levels || all[c].Has&format.Levels != 0
	}
	for i := range a.cols {
		if err := a.place(i, use); err != nil {
			return nil, err
		}
	}
	if a.levels {
		if err := a.checkLevels(root); err != nil {
			return nil, err
		}
		for _, n := range a.leaves {
			a.needs = append(a.needs, root.needs(n))
		}
		a.joins = findJoins(root, nil)
		return a, nil
	}
	if err := a.checkLengths(root, -1, use); err != nil {
		return nil, err
	}
	return a, nil
}

// Field returns the field of the arrays that Assemble returns, pruned as by Pruned.
func (a *Assembler) Field() arrow.Field { return a.root.field }

// place assigns column i to its node.
func (a *Assembler) place(i int, use []int) error {
	c := &a.cols[i]
	if len(c.Path) == 0 {
		return fault.Bugf("column %s has no path", c.Name)
	}
	n := a.root.at(c.Path[1:])
	switch {
	case n == nil:
		return fault.Bugf("column %s: field %q has nothing at its path", c.Name, a.root.name)
	case a.levels && c.Has != format.Values|format.Levels:
		return fault.Bugf("column %s has no levels, others of field %q do", c.Name, a.root.name)
	case a.levels && (n.own >= 0 || n.shape != shapeLeaf && n.shape != shapeNull):
		return fault.Bugf("column %s: %s is not a leaf, or has two columns", c.Name, n.name)
	case a.levels && (c.MaxDef != n.def || c.MaxRep != n.rep):
		return fault.Bugf("column %s: levels %d and %d, its type has %d and %d", c.Name, c.MaxDef, c.MaxRep, n.def,
			n.rep)
	case a.levels:
		n.own, a.leaves[i] = i, n
		return a.checkType(n, c)
	}
	// Without levels a node has its own column, preceded by another one if its presence is stored separately.
	other := n.own
	if other < 0 {
		n.own = i
		return nil
	}
	if n.presence >= 0 {
		return fault.Bugf("column %s: %s has two columns already", c.Name, n.name)
	}
	n.presence, n.own = other, i
	if a.cols[other].Parent == use[i] {
		n.presence, n.own = i, other
	}
	return nil
}

// checkType compares the type of a leaf's column with the field's.
func (a *Assembler) checkType(n *node, c *format.Column) error {
	if !arrow.TypeEqual(c.Type, n.field.Type) {
		return fault.Bugf("column %s is of type %s, %s of type %s", c.Name, c.Type, n.name, n.field.Type)
	}
	return nil
}

// checkLevels checks that every leaf has its column, and finds the first leaf below each node.
func (a *Assembler) checkLevels(n *node) error {
	if n.shape == shapeLeaf && n.own < 0 {
		return fault.Bugf("field %s has no column", n.name)
	}
	n.leaf = n.own
	for _, c := range n.children {
		if err := a.checkLevels(c); err != nil {
			return err
		}
		if n.leaf < 0 {
			n.leaf = c.leaf
		}
	}
	if n.leaf < 0 && n.shape != shapeNull {
		return fault.Unsupportedf(fault.Span{}, n.name, "nothing at or below it has a column")
	}
	return nil
}

// checkLengths checks that the columns of n and of the nodes below fit. parent is the number of the column whose
// lengths count the entries of n.
func (a *Assembler) checkLengths(n *node, parent int, use []int) error {
	is := func(i int, has format.Has) bool { return i >= 0 && a.cols[i].Has == has }
	if i := n.own; n.presence < 0 && is(i, format.Lengths) && (n.shape == shapeStruct || n.shape == shapeUnion) {
		n.presence, n.own = i, -1
	}
	for _, i := range []int{n.presence, n.own} {
		if i < 0 {
			continue
		}
		if a.cols[i].Parent != parent {
			return fault.Bugf("column %s: its parent is column %d, not %d", a.cols[i].Name, a.cols[i].Parent, parent)
		}
		if a.cols[i].Has&format.Lengths != 0 {
			parent = use[i]
		}
	}
	fits := n.presence < 0 || is(n.presence, format.Lengths)
	switch n.shape {
	case shapeLeaf:
		if !is(n.own, format.Values) {
			return fault.Bugf("field %s needs a column of values", n.name)
		}
		if err := a.checkType(n, &a.cols[n.own]); err != nil {
			return err
		}
	case shapeNull:
		fits = fits && n.own < 0
	case shapeStruct, shapeUnion:
		fits = fits && n.own < 0
	case shapeList:
		if is(n.own, format.Values|format.Lengths) {
			return a.checkListValues(n)
		}
		fits = fits && is(n.own, format.Lengths)
	case shapeMap, shapeFixedList:
		fits = fits && is(n.own, format.Lengths)
	}
	if !fits {
		// A schema that its columns contradict: formats do not check all of this when they open a file.
		return fault.Corruptf(fault.Span{}, n.name, "of type %s: its columns do not fit", n.field.Type)
	}
	for _, c := range n.children {
		if err := a.checkLengths(c, parent, use); err != nil {
			return err
		}
	}
	if n.shape == shapeUnion && !n.hasColumn() {
		return fault.Unsupportedf(fault.Span{}, n.name, "a union without columns")
	}
	return nil
}

// checkListValues checks a list whose items are in the same column as its lengths.
func (a *Assembler) checkListValues(n *node) error {
	c, ok := a.cols[n.own].Type.(arrow.ListLikeType)
	item := n.children[0]
	if !ok || n.field.Type.ID() != arrow.LIST || a.cols[n.own].Type.ID() != arrow.LIST || item.shape != shapeLeaf ||
		!arrow.TypeEqual(c.Elem(), item.field.Type) {
		return fault.Bugf("column %s of type %s does not fit %s of type %s", a.cols[n.own].Name, a.cols[n.own].Type,
			n.name, n.field.Type)
	}
	if item.own >= 0 || item.presence >= 0 {
		return fault.Bugf("column %s has items already, and %s has columns", a.cols[n.own].Name, item.name)
	}
	return nil
}

// hasColumn reports whether n or a node below has a column.
func (n *node) hasColumn() bool {
	return n.own >= 0 || n.presence >= 0 || slices.ContainsFunc(n.children, (*node).hasColumn)
}

// Assemble returns the field's array with the given number of rows. in is parallel to the columns that were passed to
// NewAssembler and contains exactly these rows; its arrays are borrowed. The caller releases the result.
//
// Columns that contradict themselves or each other are an error of class Corrupt, whose path is the names of the
// columns: levels that are possible in no tree, leaves of one list with different numbers of items, lengths that do not
// add up.
func (a *Assembler) Assemble(in []Input, rows int, mem memory.Allocator) (arrow.Array, error) {
	if len(in) != len(a.cols) {
		return nil, fault.Bugf("field %s: %d inputs for %d columns", a.root.name, len(in), len(a.cols))
	}
	for i := range in {
		if in[i].Array == nil || in[i].Array.Len() > math.MaxInt32-1 {
			return nil, fault.Limitf(fault.Span{}, a.cols[i].Name, "more than 2^31-2 entries at once")
		}
		if !arrow.TypeEqual(in[i].Array.DataType(), a.cols[i].Type) {
			return nil, fault.Bugf("column %s gave type %s instead of %s", a.cols[i].Name, in[i].Array.DataType(),
				a.cols[i].Type)
		}
	}
	b := &build{a: a, in: in, mem: mem}
	if a.levels {
		if err := b.check(rows); err != nil {
			return nil, err
		}
		return b.byLevels(a.root, rows)
	}
	out, err := b.byLengths(a.root, rows)
	if err != nil {
		return nil, err
	}
	if err := a.root.checkNulls(out); err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}

// build is the state of one assembly.
type build struct {
	a   *Assembler
	in  []Input
	mem memory.Allocator
}

func (b *build) name(i int) string { return b.a.cols[i].Name }

// newArray makes an array of n's type from buffers and children, and takes ownership of them all.
func (n *node) newArray(length int, bufs []*memory.Buffer, children []arrow.Array, nulls int) arrow.Array {
	data := make([]arrow.ArrayData, len(children))
	for i, k := range children {
		data[i] = k.Data()
	}
	d := array.NewData(n.field.Type, length, bufs, data, nulls, 0)
	defer d.Release()
	out := array.MakeFromData(d)
	for _, x := range bufs {
		if x != nil {
			x.Release()
		}
	}
	for _, k := range children {
		k.Release()
	}
	return out
}

// retyped returns x with the type of n's field: names and nullability below it may differ.
func (n *node) retyped(x arrow.Array) arrow.Array {
	d := x.Data()
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		x.Retain()
		return x
	}
	y := array.NewData(n.field.Type, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset())
	defer y.Release()
	return array.MakeFromData(y)
}
