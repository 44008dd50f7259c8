// Package content summarizes the contents of a table, so that two readings of it can be compared without keeping
// either: number of rows, a checksum over whole rows, and one for each column that shows where a difference is.
//
// The sums depend neither on the order of the rows nor on where batches end, nor on how a type stores its values
// (dictionaries, views, large offsets, bytes below nulls). Cells that package diff calls equal count as equal: integers
// of any width, decimals of any scale, and dates and timestamps of any unit count by their value; all NaN are equal,
// and -0 is 0. Cells that differ have different hashes, except for one chance in 2^64; a row that occurs twice counts
// twice. The hashes do not protect against an attacker who searches for two tables with the same sum.
package content

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/diff"
)

// Plan records which columns of two schemas correspond, and how their cells are made comparable.
type Plan struct {
	columns      []column
	incomparable []string // names of columns that cannot be compared
}

// column is a pair of columns.
type column struct {
	name string
	at   [2]int
	path []int // of a field of a struct of side 0 that is a column of side 1: child indices, outermost first
	node *node // nil if it cannot be compared
}

// Same returns the plan for comparing a table with another reading of itself.
func Same(sc *arrow.Schema) *Plan { return Between(sc, sc) }

// Between pairs the columns of the input (side 0) with those of the output (side 1): by name, otherwise by name
// ignoring case, otherwise, if both have the same number of columns, by position.
func Between(in, out *arrow.Schema) *Plan {
	p := &Plan{}
	partner := partners(in, out)
	for i, f := range in.Fields() {
		j := partner[i]
		if j < 0 {
			if flat := flattened(f, i, nil, out); flat != nil {
				p.columns = append(p.columns, flat...)
			} else {
				p.incomparable = append(p.incomparable, f.Name)
			}
			continue
		}
		n := nodeOf(f.Type, out.Field(j).Type)
		if n == nil {
			p.incomparable = append(p.incomparable, f.Name)
			continue
		}
		p.columns = append(p.columns, column{name: f.Name, at: [2]int{i, j}, node: n})
	}
	return p
}

// flattened returns the fields of a struct, column i, that were written as columns named STRUCT.FIELD; nil if some are
// missing.
func flattened(f arrow.Field, i int, path []int, out *arrow.Schema) (all []column) {
	t, ok := f.Type.(*arrow.StructType)
	if !ok {
		return nil
	}
	for k, child := range t.Fields() {
		child.Name = f.Name + "." + child.Name
		here := append(slices.Clone(path), k)
		j := out.FieldIndices(child.Name)
		if len(j) != 1 {
			some := flattened(child, i, here, out)
			if some == nil {
				return nil
			}
			all = append(all, some...)
			continue
		}
		n := nodeOf(child.Type, out.Field(j[0]).Type)
		if n == nil {
			return nil
		}
		all = append(all, column{name: child.Name, at: [2]int{i, j[0]}, path: here, node: n})
	}
	return all
}

// partners returns, for each field of in, the index of the corresponding field of out; -1 if there is none.
func partners(in, out *arrow.Schema) []int {
	partner := make([]int, in.NumFields())
	used := make([]bool, out.NumFields())
	byName := func(same func(a, b string) bool) {
		for i, f := range in.Fields() {
			for j := 0; j < len(used) && partner[i] < 0; j++ {
				if !used[j] && same(f.Name, out.Field(j).Name) {
					partner[i], used[j] = j, true
				}
			}
		}
	}
	for i := range partner {
		partner[i] = -1
	}
	if sameNames(in, out) { // the usual case, which avoids searching all names for each name
		for i := range partner {
			partner[i] = i
		}
		return partner
	}
	byName(func(a, b string) bool { return a == b })
	byName(strings.EqualFold)
	for i := range partner {
		if in.NumFields() == out.NumFields() && partner[i] < 0 && !used[i] {
			partner[i], used[i] = i, true
		}
	}
	return partner
}

func sameNames(in, out *arrow.Schema) bool {
	if in.NumFields() != out.NumFields() {
		return false
	}
	for i, f := range in.Fields() {
		if f.Name != out.Field(i).Name {
			return false
		}
	}
	return true
}

// Leave excludes a column from the comparison because nothing is known about it.
func (p *Plan) Leave(name string) {
	if slices.Contains(p.incomparable, name) {
		return
	}
	n := len(p.columns)
	p.columns = slices.DeleteFunc(p.columns, func(c column) bool { return c.name == name })
	if len(p.columns) < n {
		p.incomparable = append(p.incomparable, name)
	}
}

// LeaveWords excludes the columns whose cells are compared as text, because their values were written as values of
// another type.
func (p *Plan) LeaveWords() {
	for _, c := range slices.Clone(p.columns) {
		if c.node.spelled() {
			p.Leave(c.name)
		}
	}
}

// Round rounds the timestamps of a field of side 0 to multiples of unit: down or, with nearest, to the nearest
// multiple, halves up.
func (p *Plan) Round(field int, unit time.Duration, nearest bool) {
	for i := range p.columns {
		if c := &p.columns[i]; c.at[0] == field && c.node != nil {
			c.node.round(rounding{int64(unit), nearest})
		}
	}
}

func (n *node) round(r rounding) {
	n.rounding = r
	for _, k := range n.children {
		k.round(r)
	}
}

// Without returns a sum of this plan that excludes the given fields of side 0.
func (p *Plan) Without(s Sum, fields []int) Sum {
	s.Columns = slices.Clone(s.Columns)
	for i, c := range p.columns {
		if slices.Contains(fields, c.at[0]) {
			s.Columns[i].Unknown, s.partial = true, true
		}
	}
	return s
}

func (n *node) spelled() bool {
	return n.way == diff.AsText || slices.ContainsFunc(n.children, (*node).spelled)
}

// Reading returns the plan for an output whose schema differs from the one that was expected when side 0 was summed.
// Columns that are now hashed in another way than before cannot be compared, and neither can the sum over whole rows.
func (p *Plan) Reading(in, out *arrow.Schema) *Plan {
	q := Between(in, out)
	r := &Plan{incomparable: slices.Clone(p.incomparable), columns: slices.Clone(p.columns)}
	for i := range r.columns {
		c := &r.columns[i]
		k := slices.IndexFunc(q.columns,
			func(x column) bool { return x.at[0] == c.at[0] && slices.Equal(x.path, c.path) })
		if k < 0 || !q.columns[k].node.sameHashes(c.node) {
			c.node = nil
			r.incomparable = append(r.incomparable, c.name)
			continue
		}
		c.at, c.node = q.columns[k].at, q.columns[k].node
	}
	return r
}

// sameHashes reports whether n and o hash cells of side 0 identically.
func (n *node) sameHashes(o *node) bool {
	if n.way == diff.AsText && o.way == diff.AsText {
		return arrow.TypeEqual(n.types[0], o.types[0]) && arrow.TypeEqual(n.types[1], o.types[1])
	}
	if n.way != o.way || len(n.children) != len(o.children) || n.way == diff.Struct && !slices.Equal(n.at[0], o.at[0]) {
		return false
	}
	return slices.EqualFunc(n.children, o.children, (*node).sameHashes)
}

// Incomparable returns the names of the columns of side 0 that have no partner, or whose partner's values have nothing
// in common with theirs.
func (p *Plan) Incomparable() []string { return p.incomparable }

// Summer returns a Summer for one side (0: input; 1: output).
func (p *Plan) Summer(side int) *Summer {
	s := &Summer{plan: p, side: side, sum: Sum{Columns: make([]Column, len(p.columns))}}
	for i, c := range p.columns {
		s.sum.Columns[i].Name, s.sum.Columns[i].Unknown = c.name, c.node == nil
		s.sum.partial = s.sum.partial || c.node == nil
	}
	return s
}

// Summers are Summers of one side of a plan, each of which may work on a goroutine of its own.
type Summers []*Summer

// Add adds a batch to one of them. The error is nil, so that Add can be what is called for each batch of a table.
func (s Summers) Add(worker int, b arrow.RecordBatch) error {
	s[worker].Add(b)
	return nil
}

// Sum returns the sum over the batches of all.
func (s Summers) Sum() Sum {
	for _, more := range s[1:] {
		s[0].AddSum(more.Sum())
		more.sum = more.plan.Summer(more.side).sum
	}
	return s[0].Sum()
}

// Summers returns n Summers for one side, at least one.
func (p *Plan) Summers(side, n int) Summers {
	out := make(Summers, n)
	for i := range out {
		own := *p
		own.columns = slices.Clone(p.columns)
		for k := range own.columns {
			own.columns[k].node = own.columns[k].node.clone()
		}
		out[i] = own.Summer(side)
	}
	return out
}

// clone returns a copy without the state of hashing.
func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := *n
	c.kept, c.children = [2]kept{}, slices.Clone(n.children)
	for i := range c.children {
		c.children[i] = c.children[i].clone()
	}
	return &c
}

// node describes how cells of two types are hashed.
type node struct {
	way      diff.Kind
	types    [2]arrow.DataType // of AsText
	children []*node
	at       [2][]int // of a struct: for each child, its index on either side
	cells    diff.Cells
	rounding
	// state of hashing, by side
	kept [2]kept
}

// nodeOf returns nil if the types have nothing in common.
func nodeOf(a, b arrow.DataType) *node {
	cells, ok := diff.Pair(a, b)
	if !ok {
		return nil
	}
	n := &node{way: diff.AsText, cells: cells, types: [2]arrow.DataType{a, b}}
	a, b = diff.Stored(a), diff.Stored(b)
	if a.ID() == arrow.NULL {
		a = b
	} else if b.ID() == arrow.NULL {
		b = a
	}
	x, y := wayOf(a), wayOf(b)
	switch {
	case x == diff.Integer && y == diff.Decimal, x == diff.Decimal && y == diff.Integer:
		n.way = diff.Decimal
	case x != y:
	case x == diff.List:
		return listNode(n, a, b)
	case x == diff.Struct:
		return recordNode(n, a.(*arrow.StructType), b.(*arrow.StructType))
	default:
		n.way = x
	}
	return n
}

func listNode(n *node, a, b arrow.DataType) *node {
	x, y := a.(arrow.ListLikeType).Elem(), b.(arrow.ListLikeType).Elem()
	var child *node
	p, ok := x.(*arrow.StructType)
	q, also := y.(*arrow.StructType)
	// whatever their names
	if ok && also && (a.ID() == arrow.MAP || b.ID() == arrow.MAP) && p.NumFields() == 2 && q.NumFields() == 2 {
		child = childrenOf(&node{way: diff.Struct, at: [2][]int{{0, 1}, {0, 1}}}, p, q)
	} else {
		child = nodeOf(x, y)
	}
	if child != nil {
		n.way, n.children = diff.List, []*node{child}
	}
	return n
}

// recordNode pairs fields by name. Repeated names are left to package diff.
func recordNode(n *node, a, b *arrow.StructType) *node {
	m := &node{way: diff.Struct, cells: n.cells}
	for i, f := range a.Fields() {
		js, ok := b.FieldIdx(f.Name)
		if is, _ := a.FieldIdx(f.Name); !ok || is != i || a.NumFields() != b.NumFields() {
			return n
		}
		m.at[0], m.at[1] = append(m.at[0], i), append(m.at[1], js)
	}
	if childrenOf(m, a, b) == nil {
		return n
	}
	return m
}

func childrenOf(m *node, a, b *arrow.StructType) *node {
	for k := range m.at[0] {
		child := nodeOf(a.Field(m.at[0][k]).Type, b.Field(m.at[1][k]).Type)
		if child == nil {
			return nil
		}
		m.children = append(m.children, child)
	}
	return m
}

// wayOf returns how cells of a type are hashed: by their kind, or in the form of package diff, which is slow but
// supports all pairs of types.
func wayOf(t arrow.DataType) diff.Kind {
	if k := diff.KindOf(t); k != diff.Other && k != diff.Union {
		return k
	}
	return diff.AsText
}
