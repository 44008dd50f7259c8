package parquet

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/pred"
	"stoa/vec"
)

// view is the values of one leaf in some rows, as the file counts them: an entry for every value, and one for
// every null, null list and empty list.
type view struct {
	leaf  arrow.Array
	live  []bool  // whose entry of leaf is below nothing that is null; nil: all
	dead  int64   // entries that are null because something above them is null or an empty list
	owner []int64 // the row of each entry of leaf; nil: it is its own
}

// leafView follows path from a column down to a leaf.
func leafView(a arrow.Array, path []int) *view {
	v := &view{leaf: a}
	for {
		switch x := v.leaf.(type) {
		case array.ExtensionArray:
			v.leaf = x.Storage()
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
func (v *view) alive(i int) bool { return v.live == nil || v.live[i] }

// has reports whether entry i is a value.
func (v *view) has(i int) bool { return v.alive(i) && v.leaf.IsValid(i) }

// row is the row of entry i.
func (v *view) row(i int) int64 {
	if v.owner == nil {
		return int64(i)
	}
	return v.owner[i]
}

// under goes into field i of a struct.
func (v *view) under(x *array.Struct, i int) {
	if x.NullN() > 0 {
		live := make([]bool, x.Len())
		for k := range live {
			live[k] = v.alive(k) && x.IsValid(k)
			v.dead += one(v.alive(k) && !live[k])
		}
		v.live = live
	}
	v.leaf = x.Field(i)
}

// items goes into the items of a list. Those that no list has, as there may be in Arrow, are no entries.
func (v *view) items(x array.ListLike) {
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
			live[i], owner[i] = true, v.row(k)
		}
	}
	v.leaf, v.live, v.owner = items, live, owner
}

// nulls counts the entries that are null.
func (v *view) nulls() int64 {
	if v.live == nil && v.leaf.DataType().ID() != arrow.NULL {
		return v.dead + int64(v.leaf.NullN())
	}
	n := v.dead
	for i := range v.leaf.Len() {
		n += one(v.alive(i) && v.leaf.IsNull(i) || v.alive(i) && v.leaf.DataType().ID() == arrow.NULL)
	}
	return n
}

// entries counts the values and the nulls.
func (v *view) entries() int64 {
	if v.live == nil {
		return v.dead + int64(v.leaf.Len())
	}
	n := v.dead
	for _, alive := range v.live {
		n += one(alive)
	}
	return n
}

// first is the first value for which e is true, and also, if it is not nil; -1: there is none, or e says
// nothing of such a type.
func (v *view) first(e *pred.Expr, also func(arrow.Array, int) bool) (int, error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: leafName, Type: v.leaf.DataType(), Nullable: true}}, nil)
	bound, err := pred.Bind(e, sc)
	if err != nil {
		return -1, nil // no predicate can be misled by it
	}
	var sel *vec.Sel
	if sel, err = bound.Eval(v.leaf.Len(), func(string) arrow.Array { return v.leaf }, nil); err != nil ||
		sel.Count == 0 {
		return -1, err
	}
	for i := range v.leaf.Len() {
		if sel.Has(i) && v.has(i) && (also == nil || also(v.leaf, i)) {
			return i, nil
		}
	}
	return -1, nil
}

// leafName is the column that the predicates of claims name.
const leafName = "v"

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
