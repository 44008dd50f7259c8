package nest

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/vec"
)

// RowField is a field that is stored row by row: a struct in which each leaf is a column with an entry for each row,
// and each nullable struct has a validity column. Fields of a null struct are also null in their own columns, so a leaf
// is read, filtered and pruned by its column alone. It is immutable.
type RowField struct {
	Field    arrow.Field
	Name     string // the names from the root field on, joined with dots
	Column   int    // of a leaf: its values; of a struct: its validity, -1 if it is not nullable
	null     int    // the column that says whether a struct is null: its own, or that of a struct around it; -1: none
	leaf     bool
	required bool // it is not nullable in the file
	children []*RowField
}

// Tops returns, for each of the top-level fields, the columns that store it, by their indices in all, a reader's
// columns.
func Tops(all []format.Column, fields int) [][]int {
	out := make([][]int, fields)
	for i, c := range all {
		if len(c.Path) > 0 {
			out[c.Path[0]] = append(out[c.Path[0]], i)
		}
	}
	return out
}

// ByRows returns the top-level struct f with index top; nil if it is stored in another way. all are a reader's Columns,
// and columns the indices of those that store it.
func ByRows(f arrow.Field, top int, all []format.Column, columns []int) *RowField {
	if f.Type.ID() != arrow.STRUCT {
		return nil
	}
	have := map[string]int{}
	for _, i := range columns {
		c := &all[i]
		_, duplicate := have[fmt.Sprint(c.Path)]
		if duplicate || c.Parent >= 0 || c.MaxDef > 0 || c.MaxRep > 0 || c.Has&format.Levels != 0 ||
			c.Has == format.Lengths {
			return nil
		}
		have[fmt.Sprint(c.Path)] = i
	}
	n := len(have)
	out := rowField(f, &RowField{null: -1}, []int{top}, all, have)
	if out == nil || len(out.Columns()) != n {
		return nil
	}
	return out
}

func rowField(f arrow.Field, up *RowField, path []int, all []format.Column, have map[string]int) *RowField {
	r := &RowField{Field: f, Name: f.Name, Column: -1, null: up.null, required: !f.Nullable}
	if up.Name != "" {
		r.Name = up.Name + "." + f.Name
	}
	c, ok := have[fmt.Sprint(path)]
	st, isStruct := f.Type.(*arrow.StructType)
	switch {
	case len(path) > maxDepth:
		return nil
	case !isStruct:
		if r.Column, r.leaf = c, true; !ok || all[c].Has&format.Values == 0 || !arrow.TypeEqual(f.Type, all[c].Type) {
			return nil
		}
		return r
	case ok && all[c].Has == format.Validity:
		r.Column, r.null = c, c
	case ok || f.Nullable:
		return nil
	}
	for i, child := range st.Fields() {
		k := rowField(child, r, append(path[:len(path):len(path)], i), all, have)
		if k == nil {
			return nil
		}
		r.children = append(r.children, k)
	}
	return r
}

// At returns the field at a path of child indices, which must exist.
func (r *RowField) At(path []int) *RowField {
	for _, i := range path {
		r = r.children[i]
	}
	return r
}

// Leaf reports whether r is a column's values.
func (r *RowField) Leaf() bool { return r.leaf }

// Columns returns the physical columns of which r consists, in ascending order.
func (r *RowField) Columns() []int {
	out := r.columns(nil)
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *RowField) columns(out []int) []int {
	if r.leaf {
		return append(out, r.Column)
	}
	if r.null >= 0 {
		out = append(out, r.null)
	}
	for _, k := range r.children {
		out = k.columns(out)
	}
	return out
}

// Tested returns the physical column that a filter on r reads; -1 if r is a struct that is never null.
func (r *RowField) Tested() int {
	if r.leaf {
		return r.Column
	}
	return r.null
}

// Test returns the array on which a filter on r is evaluated: the values of a leaf; for a struct an array without
// fields that is null where the struct is null. column is the column that Tested returns, n its number of rows. The
// caller releases the result.
func (r *RowField) Test(column arrow.Array, n int) arrow.Array {
	if r.leaf {
		column.Retain()
		return column
	}
	empty := &RowField{Field: arrow.Field{Type: arrow.StructOf()}, Column: r.Column, null: r.null}
	return empty.Assemble(n, func(int) arrow.Array { return column })
}

// AllNullable returns r with everything below it nullable, as is necessary where cells are lost.
func (r *RowField) AllNullable() *RowField {
	out := *r
	out.Field.Type = AllNullable(r.Field.Type)
	out.Field.Nullable = true
	out.children = nil
	for _, k := range r.children {
		out.children = append(out.children, k.AllNullable())
	}
	return &out
}

// AllNullable returns a type in which all fields of structs are nullable, as is necessary where cells are lost.
func AllNullable(t arrow.DataType) arrow.DataType {
	st, ok := t.(*arrow.StructType)
	if !ok {
		return t
	}
	fields := st.Fields()
	for i := range fields {
		fields[i].Type, fields[i].Nullable = AllNullable(fields[i].Type), true
	}
	return arrow.StructOf(fields...)
}

// Assemble makes r's array of n rows. column returns the array of a physical column, which is borrowed. A null in a
// validity column is a lost value: then the struct is present if any of its fields is. The caller releases the result.
func (r *RowField) Assemble(n int, column func(int) arrow.Array) arrow.Array {
	if r.leaf {
		a := column(r.Column)
		a.Retain()
		return a
	}
	data, children := make([]arrow.ArrayData, len(r.children)), make([]arrow.Array, len(r.children))
	for i, k := range r.children {
		children[i] = k.Assemble(n, column)
		defer children[i].Release()
		data[i] = children[i].Data()
	}
	var valid *memory.Buffer
	nulls := 0
	if r.null >= 0 {
		b := presence(column(r.null), children, n)
		if nulls = n - ones(b, n); nulls > 0 {
			valid = memory.NewBufferBytes(b)
		}
	}
	d := array.NewData(r.Field.Type, n, []*memory.Buffer{valid}, data, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// presence returns the bitmap of a validity column.
func presence(column arrow.Array, children []arrow.Array, n int) []byte {
	out := rowBits(column.Data().Buffers()[1], column.Data().Offset(), n)
	if column.NullN() == 0 {
		return out
	}
	for i := range n {
		if column.IsValid(i) {
			continue
		}
		if out[i>>3] &^= 1 << (i & 7); slices.ContainsFunc(children, func(k arrow.Array) bool { return k.IsValid(i) }) {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	return out
}

// rowBits returns a copy of n bits of a bitmap, padded with zeros.
func rowBits(b *memory.Buffer, off, n int) []byte {
	out := make([]byte, (n+7)/8)
	if b == nil || n == 0 {
		return out
	}
	src := b.Bytes()
	if off&7 == 0 {
		copy(out, src[off>>3:])
	} else {
		for i := range n {
			out[i>>3] |= (src[(off+i)>>3] >> ((off + i) & 7) & 1) << (i & 7)
		}
	}
	if n&7 != 0 {
		out[len(out)-1] &= 1<<(n&7) - 1
	}
	return out
}

func ones(b []byte, n int) (k int) {
	for _, x := range b {
		k += bits.OnesCount8(x)
	}
	return min(k, n)
}

// Contradiction is rows in which columns of a RowField contradict each other.
type Contradiction struct {
	Rows   []int32 // ascending
	Column int     // the validity column of the struct in question; -1 if it has none
	Why    string
}

// Contradicts returns the first contradiction between columns in the rows that sel selects: a struct is null although
// something in it is not, or it is present although a required field is not; nil if there is none.
func (r *RowField) Contradicts(sel *vec.Sel, column func(int) arrow.Array) *Contradiction {
	if r.leaf {
		return nil
	}
	var outer []byte // of the struct; nil if it is present in all rows
	if r.null >= 0 {
		c := column(r.null)
		outer = rowBits(c.Data().Buffers()[1], c.Data().Offset(), sel.N)
	}
	for _, k := range r.children {
		if k.Column < 0 {
			continue
		}
		c := column(k.Column)
		var inner []byte // nil if it is present in all rows
		switch {
		case !k.leaf:
			inner = rowBits(c.Data().Buffers()[1], c.Data().Offset(), sel.N)
		case c.NullN() > 0:
			inner = rowBits(c.Data().Buffers()[0], c.Data().Offset(), sel.N)
		}
		if rows := differ(outer, inner, !k.required, sel); rows != nil {
			why := fmt.Sprintf("%s is null, and %s in it is not", r.Name, k.Name)
			if bit := rows[0]; outer == nil || outer[bit>>3]>>(bit&7)&1 != 0 {
				why = fmt.Sprintf("%s is null, which it cannot be where %s is not", k.Name, r.Name)
			}
			return &Contradiction{rows, r.null, why}
		}
	}
	for _, k := range r.children {
		if c := k.Contradicts(sel, column); c != nil {
			return c
		}
	}
	return nil
}

// differ returns the rows of sel in which something is present although the enclosing struct is not, or, if it is
// required, the reverse.
func differ(outer, inner []byte, nullable bool, sel *vec.Sel) (rows []int32) {
	if inner == nil && outer == nil || outer == nil && nullable {
		return nil
	}
	at := func(b []byte, i int) byte {
		if b == nil {
			return 0xff
		}
		return b[i]
	}
	for i := range (sel.N + 7) / 8 {
		h, k := at(outer, i), at(inner, i)
		x := ^h & k
		if !nullable {
			x |= h &^ k
		}
		for ; x != 0; x &= x - 1 {
			if row := 8*i + bits.TrailingZeros8(x); row < sel.N && sel.Has(row) {
				rows = append(rows, int32(row))
			}
		}
	}
	return rows
}
