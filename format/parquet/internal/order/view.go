package order

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/pred"
	"stoa/vec"
)

// View is the values of one leaf in some rows, as the file counts them: an entry for every value, and one for
// every null, null list and empty list.
type View struct {
	Leaf  arrow.Array
	live  []bool  // whose entry of leaf is below nothing that is null; nil: all
	dead  int64   // entries that are null because something above them is null or an empty list
	owner []int64 // the row of each entry of leaf; nil: it is its own
}

// LeafView follows path from a column down to a leaf.
func LeafView(a arrow.Array, path []int) *View {
	v := &View{Leaf: a}
	for {
		switch x := v.Leaf.(type) {
		case array.ExtensionArray:
			v.Leaf = x.Storage()
			continue
		case *array.Struct:
			if len(path) > 0 {
				v.under(x, path[0])
				path = path[1:]
				continue
			}
		case array.ListLike:
			if len(path) > 0 {
				v.items(x)
				path = path[1:]
				continue
			}
		}
		return v
	}
}

// alive reports whether entry i is below nothing that is null.
func (v *View) alive(i int) bool { return v.live == nil || v.live[i] }

// Has reports whether entry i is a value.
func (v *View) Has(i int) bool { return v.alive(i) && v.Leaf.IsValid(i) }

// Row is the row of entry i.
func (v *View) Row(i int) int64 {
	if v.owner == nil {
		return int64(i)
	}
	return v.owner[i]
}

// under goes into field i of a struct.
func (v *View) under(x *array.Struct, i int) {
	if x.NullN() > 0 {
		live := make([]bool, x.Len())
		for k := range live {
			live[k] = v.alive(k) && x.IsValid(k)
			v.dead += One(v.alive(k) && !live[k])
		}
		v.live = live
	}
	v.Leaf = x.Field(i)
}

// items goes into the items of a list. Those that no list has, as there may be in Arrow, are no entries.
func (v *View) items(x array.ListLike) {
	items := x.ListValues()
	live, owner := make([]bool, items.Len()), make([]int64, items.Len())
	for k := range x.Len() {
		if !v.alive(k) {
			continue
		}
		from, to := x.ValueOffsets(k)
		if x.IsNull(k) || from == to {
			v.dead++
			continue
		}
		for i := from; i < to; i++ {
			live[i], owner[i] = true, v.Row(k)
		}
	}
	v.Leaf, v.live, v.owner = items, live, owner
}

// Nulls counts the entries that are null.
func (v *View) Nulls() int64 {
	if v.live == nil && v.Leaf.DataType().ID() != arrow.NULL {
		return v.dead + int64(v.Leaf.NullN())
	}
	n := v.dead
	for i := range v.Leaf.Len() {
		n += One(v.alive(i) && v.Leaf.IsNull(i) || v.alive(i) && v.Leaf.DataType().ID() == arrow.NULL)
	}
	return n
}

// Entries counts the values and the nulls.
func (v *View) Entries() int64 {
	if v.live == nil {
		return v.dead + int64(v.Leaf.Len())
	}
	n := v.dead
	for _, alive := range v.live {
		n += One(alive)
	}
	return n
}

// First is the first value for which e is true, and also, if it is not nil; -1: there is none, or e says
// nothing of such a type.
func (v *View) First(e *pred.Expr, also func(arrow.Array, int) bool) (int, error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: LeafName, Type: v.Leaf.DataType(), Nullable: true}}, nil)
	bound, err := pred.Bind(e, sc)
	if err != nil {
		return -1, nil // no predicate can be misled by it
	}
	var sel *vec.Sel
	if sel, err = bound.Eval(v.Leaf.Len(), func(string) arrow.Array { return v.Leaf }, nil); err != nil ||
		sel.Count == 0 {
		return -1, err
	}
	for i := range v.Leaf.Len() {
		if sel.Has(i) && v.Has(i) && (also == nil || also(v.Leaf, i)) {
			return i, nil
		}
	}
	return -1, nil
}

// LeafName is the column that the predicates of claims name.
const LeafName = "v"

func One(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
