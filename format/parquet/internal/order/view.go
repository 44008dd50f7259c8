package order

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/nest"
	"stoa/pred"
	"stoa/vec"
)

// View is a view of the values of one leaf in some rows. Its entries are those that the file counts: one for every
// value, null, null list and empty list.
type View struct {
	Leaf      arrow.Array
	live      []bool  // entries of Leaf with no null above them; nil if all
	nullAbove int64   // entries that are null because something above them is null or an empty list
	owner     []int64 // the row of each entry of Leaf; nil if entry and row numbers are the same
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
				v.enterField(x, path[0])
				path = path[1:]
				continue
			}
		case *array.DenseUnion:
			if len(path) > 0 {
				v.enterMember(x, path[0])
				path = path[1:]
				continue
			}
		case array.ListLike:
			if len(path) > 0 {
				v.enterItems(x)
				path = path[1:]
				continue
			}
		}
		return v
	}
}

// alive reports whether nothing above entry i is null.
func (v *View) alive(i int) bool { return v.live == nil || v.live[i] }

// Has reports whether entry i is a value, not a null.
func (v *View) Has(i int) bool { return v.alive(i) && v.Leaf.IsValid(i) }

// Row returns the row of entry i.
func (v *View) Row(i int) int64 {
	if v.owner == nil {
		return int64(i)
	}
	return v.owner[i]
}

// enterField descends into field i of a struct.
func (v *View) enterField(x *array.Struct, i int) {
	if x.NullN() > 0 {
		live := make([]bool, x.Len())
		for k := range live {
			live[k] = v.alive(k) && x.IsValid(k)
			v.nullAbove += BoolInt(v.alive(k) && !live[k])
		}
		v.live = live
	}
	v.Leaf = x.Field(i)
}

// enterMember descends into member i of a union. As in the file, the member is null in rows where the union holds
// another one.
func (v *View) enterMember(x *array.DenseUnion, i int) {
	idx := make([]int32, x.Len())
	for k := range idx {
		if idx[k] = -1; x.ChildID(k) == i {
			idx[k] = x.ValueOffset(k)
		}
	}
	spaced, err := nest.Take(x.Field(i), idx, memory.DefaultAllocator)
	if err != nil { // only a nested union would be an error, and there is none
		spaced = array.MakeArrayOfNull(memory.DefaultAllocator, x.Field(i).DataType(), x.Len())
	}
	v.Leaf = spaced
}

// enterItems descends into the items of a list. Arrow allows items that belong to no list; these are not entries.
func (v *View) enterItems(x array.ListLike) {
	items := x.ListValues()
	live, owner := make([]bool, items.Len()), make([]int64, items.Len())
	for k := range x.Len() {
		if !v.alive(k) {
			continue
		}
		from, to := x.ValueOffsets(k)
		if x.IsNull(k) || from == to {
			v.nullAbove++
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
		return v.nullAbove + int64(v.Leaf.NullN())
	}
	n := v.nullAbove
	for i := range v.Leaf.Len() {
		n += BoolInt(v.alive(i) && v.Leaf.IsNull(i) || v.alive(i) && v.Leaf.DataType().ID() == arrow.NULL)
	}
	return n
}

// Entries counts the values and the nulls.
func (v *View) Entries() int64 {
	if v.live == nil {
		return v.nullAbove + int64(v.Leaf.Len())
	}
	n := v.nullAbove
	for _, alive := range v.live {
		n += BoolInt(alive)
	}
	return n
}

// First returns the index of the first value for which e is true and, unless also is nil, also returns true; -1 if
// there is none, or if e cannot be applied to the type.
func (v *View) First(e *pred.Expr, also func(arrow.Array, int) bool) (int, error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: LeafName, Type: v.Leaf.DataType(), Nullable: true}}, nil)
	bound, err := pred.Bind(e, sc)
	if err != nil {
		return -1, nil // a predicate that does not apply cannot mislead
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

// LeafName is the column name that predicates about a leaf use.
const LeafName = "v"

// BoolInt returns 1 for true, 0 for false.
func BoolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
