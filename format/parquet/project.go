package parquet

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
)

// fieldPart is the part of a top-level field that is read: its type, and the columns of the file.
type fieldPart struct {
	index  int // of the field in the schema
	field  arrow.Field
	leaves []int
	read   arrow.DataType // what the library should give for a field that is read in part; else nil
}

// parts are the fields of q, of which only the children that are wanted.
func (r *reader) parts(q format.Query) ([]fieldPart, error) {
	out := make([]fieldPart, len(q.Cols))
	for k, f := range q.Cols {
		p := fieldPart{index: f, field: r.schema.Field(f), leaves: r.leaves[f]}
		var want [][]int
		for _, w := range q.Want {
			if w[0] == f {
				want = append(want, w)
			}
		}
		if len(want) > 0 && !slices.ContainsFunc(want, func(w []int) bool { return len(w) == 1 }) {
			var err error
			if p.field, err = nest.Pruned(p.field, want); err != nil {
				return nil, err
			}
			read, err := nest.Pruned(*r.manifest[f].Field, want)
			if err != nil {
				return nil, err
			}
			p.read = read.Type
			for i := range want {
				want[i] = want[i][1:]
			}
			p.leaves = leavesIn(&r.manifest[f], want, nil)
		}
		out[k] = p
	}
	return out, nil
}

// leavesIn are the columns at and below the paths of want. Maps are read whole.
func leavesIn(f *pqarrow.SchemaField, want [][]int, to []int) []int {
	if f.Field.Type.ID() == arrow.MAP || slices.ContainsFunc(want, func(w []int) bool { return len(w) == 0 }) {
		return leavesOf(f, to)
	}
	for i := range f.Children {
		var below [][]int
		for _, w := range want {
			if w[0] == i {
				below = append(below, w[1:])
			}
		}
		if below != nil {
			to = leavesIn(&f.Children[i], below, to)
		}
	}
	return to
}

// pruned gives an array the type t: the library leaves in the type of a struct what it left out of a struct inside.
func pruned(a arrow.Array, t arrow.DataType) (arrow.Array, error) {
	want, ok := t.(arrow.NestedType)
	if !ok {
		a.Retain()
		return a, nil
	}
	d := a.Data()
	if len(d.Children()) != len(want.Fields()) {
		return nil, fault.Bugf("the library read %d children of %s", len(d.Children()), t)
	}
	kids := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		was := array.MakeFromData(c)
		is, err := pruned(was, want.Fields()[i].Type)
		was.Release()
		if err != nil {
			return nil, err
		}
		defer is.Release()
		kids[i] = is.Data()
	}
	return retype(a, t, kids), nil
}
