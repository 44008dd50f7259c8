package parquet

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/vec"
)

// The library finds the rows of a column with repeated values only where a page begins: within one it loses items of later lists, and without
// an offset index it counts entries instead of rows. A field is therefore read from where pages of all of its columns begin, and rows are passed
// over from there. Where the pages of one column do not begin with those of another, as within a list of structs, the columns
// are read by themselves and put together: else a damaged page would cost rows that have no part in it. (It can where there is a map in the
// field: the library reads a map whatever columns it is asked for.)

// unit are columns of a field that the library reads together, from a row on.
type unit struct {
	leaves []int
	row    int64
	col    *pqarrow.ColumnReader
}

// unitsOf are those of a field of which rows from on are wanted.
func (c *columns) unitsOf(ctx context.Context, p *fieldPart, from int64) ([]unit, error) {
	row, together, err := c.seekRow(ctx, p.leaves, from)
	recoded := slices.ContainsFunc(p.leaves, func(leaf int) bool { return c.needsRecoding(leaf) })
	if err != nil || together || recoded || hasMap(&c.r.manifest[p.index]) {
		return []unit{{leaves: p.leaves, row: row}}, err
	}
	var out []unit
	for _, leaves := range apart(&c.r.manifest[p.index], p.leaves, nil) {
		if row, _, err = c.seekRow(ctx, leaves, from); err != nil {
			return nil, err
		}
		out = append(out, unit{leaves: leaves, row: row})
	}
	return out, nil
}

// next gives the next n rows, or fewer.
func (u *unit) next(n int64, mem memory.Allocator) (arrow.Array, error) {
	chunked, err := u.col.NextBatch(n)
	if err != nil {
		return nil, err
	}
	defer chunked.Release()
	switch chunks := chunked.Chunks(); len(chunks) {
	case 0:
		return vec.Nulls(mem, chunked.DataType(), 0), nil
	case 1:
		chunks[0].Retain()
		return chunks[0], nil
	default:
		return array.Concatenate(chunks, mem)
	}
}

// seekRow is the last row up to from that the library finds in all of the columns; together, if it is in the page of each of them that has row from.
func (c *columns) seekRow(ctx context.Context, leaves []int, from int64) (row int64, together bool, err error) {
	row, together = from, true
	for again := true; again && row > 0; {
		again = false
		for _, leaf := range leaves {
			if c.r.meta.Schema.Column(leaf).MaxRepetitionLevel() == 0 {
				continue
			}
			x, err := c.r.offsetIndex(ctx, c.group, leaf)
			if err != nil {
				return 0, false, err
			}
			first, last := int64(0), int64(0)
			if x != nil {
				first, last = x.pageStart(row), x.pageStart(from)
			}
			together = together && first == last
			if first < row {
				row, again = first, true // in the columns before this one it need not begin a page
			}
		}
	}
	return row, together, nil
}

func hasMap(f *pqarrow.SchemaField) bool {
	return f.Field.Type.ID() == arrow.MAP || slices.ContainsFunc(f.Children, func(c pqarrow.SchemaField) bool { return hasMap(&c) })
}

// apart divides the columns of a field into those that can be read by themselves, adding to out. Lists of other kinds than these are not taken apart.
func apart(f *pqarrow.SchemaField, leaves []int, out [][]int) [][]int {
	has := leavesOf(f, nil)
	has = slices.DeleteFunc(has, func(leaf int) bool { return !slices.Contains(leaves, leaf) })
	switch id := f.Field.Type.ID(); {
	case len(has) == 0:
		return out
	case len(has) > 1 && (id == arrow.STRUCT || id == arrow.LIST):
		for i := range f.Children {
			out = apart(&f.Children[i], has, out)
		}
		return out
	}
	return append(out, has)
}

// share is a field, or what lies below it, with some of its columns.
type share struct {
	leaves []int
	arr    arrow.Array
}

// joined makes one array of shares of a field, which have the same rows. The caller releases it.
func joined(f *pqarrow.SchemaField, shares []share, mem memory.Allocator) (arrow.Array, error) {
	first := shares[0].arr
	if len(shares) == 1 {
		first.Retain()
		return first, nil
	}
	for _, p := range shares {
		if p.arr.Len() != first.Len() || !sameNulls(p.arr, first) {
			return nil, fmt.Errorf("the columns of %s have other nulls than each other", f.Field.Name) // the caller knows the place
		}
	}
	if f.Field.Type.ID() == arrow.STRUCT {
		return joinStructs(f, shares, mem)
	}
	return joinLists(f, shares, mem)
}

func sameNulls(a, b arrow.Array) bool {
	if a.NullN() == 0 && b.NullN() == 0 {
		return true
	}
	for i := range a.Len() {
		if a.IsNull(i) != b.IsNull(i) {
			return false
		}
	}
	return true
}

func joinStructs(f *pqarrow.SchemaField, shares []share, mem memory.Allocator) (arrow.Array, error) {
	var fields []arrow.Field
	var kids []arrow.ArrayData
	passed := make([]int, len(shares)) // children of the piece
	for i := range f.Children {
		child := &f.Children[i]
		var below []share
		for k, p := range shares {
			if len(apart(child, p.leaves, nil)) > 0 {
				below = append(below, share{p.leaves, p.arr.(*array.Struct).Field(passed[k])})
				passed[k]++
			}
		}
		if below == nil {
			continue
		}
		a, err := joined(child, below, mem)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		field := *child.Field
		field.Type = a.DataType()
		fields, kids = append(fields, field), append(kids, a.Data())
	}
	first := shares[0].arr
	nulls := validity(first, mem)
	if nulls != nil {
		defer nulls.Release()
	}
	data := array.NewData(arrow.StructOf(fields...), first.Len(), []*memory.Buffer{nulls}, kids, first.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

func joinLists(f *pqarrow.SchemaField, shares []share, mem memory.Allocator) (arrow.Array, error) {
	var below []share
	var first array.ListLike
	for _, p := range shares {
		a, err := tight(p.arr.(array.ListLike), arrow.ListOfField(p.arr.DataType().(arrow.ListLikeType).ElemField()), mem)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		l := a.(array.ListLike)
		if first == nil {
			first = l
		}
		for i := range l.Len() {
			_, end := l.ValueOffsets(i)
			if _, want := first.ValueOffsets(i); end != want {
				return nil, fmt.Errorf("the columns of %s have lists of other lengths than each other", f.Field.Name)
			}
		}
		below = append(below, share{p.leaves, l.ListValues()})
	}
	items, err := joined(&f.Children[0], below, mem)
	if err != nil {
		return nil, err
	}
	defer items.Release()
	elem := first.DataType().(arrow.ListLikeType).ElemField()
	elem.Type = items.DataType()
	return retype(first, arrow.ListOfField(elem), []arrow.ArrayData{items.Data()}), nil
}
