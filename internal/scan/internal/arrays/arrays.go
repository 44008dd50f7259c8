package arrays

import (
	"math"

	"stoa/fault"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Child returns the descendant at path of a struct array, with the nulls of its ancestors. The caller releases it.
func Child(a arrow.Array, path []string) arrow.Array {
	a.Retain()
	for _, name := range path {
		s := a.(*array.Struct)
		i, _ := s.DataType().(*arrow.StructType).FieldIdx(name)
		f := s.Field(i)
		if s.NullN() > 0 {
			f = masked(f, s)
		} else {
			f.Retain()
		}
		a.Release()
		a = f
	}
	return a
}

// masked returns f with nulls where its parent is null.
func masked(f arrow.Array, parent *array.Struct) arrow.Array {
	n := f.Len()
	bits := make([]byte, (n+7)/8)
	nulls := 0
	for i := range n {
		if f.IsValid(i) && parent.IsValid(i) {
			bits[i/8] |= 1 << (i % 8)
		} else {
			nulls++
		}
	}
	d := f.Data()
	if d.Offset() != 0 { // the bitmap must share the values' offset
		all := make([]byte, (n+d.Offset()+7)/8)
		for i := range n {
			if bits[i/8]>>(i%8)&1 != 0 {
				k := i + d.Offset()
				all[k/8] |= 1 << (k % 8)
			}
		}
		bits = all
	}
	bufs := append([]*memory.Buffer{memory.NewBufferBytes(bits)}, d.Buffers()[1:]...)
	var nd *array.Data
	if d.DataType().ID() == arrow.DICTIONARY {
		nd = array.NewDataWithDictionary(d.DataType(), n, bufs, nulls, d.Offset(), d.Dictionary().(*array.Data))
	} else {
		nd = array.NewData(d.DataType(), n, bufs, d.Children(), nulls, d.Offset())
	}
	defer nd.Release()
	return array.MakeFromData(nd)
}

// Take gathers the selected entries of any array: runs of them are sliced and concatenated.
func Take(a arrow.Array, sel *vec.Sel, mem memory.Allocator) (arrow.Array, error) {
	if sel.IsAll() {
		a.Retain()
		return a, nil
	}
	var runs []arrow.Array
	defer func() {
		for _, r := range runs {
			r.Release()
		}
	}()
	for i := 0; i < sel.N; {
		if !sel.Has(i) {
			i++
			continue
		}
		j := i + 1
		for j < sel.N && sel.Has(j) {
			j++
		}
		runs = append(runs, array.NewSlice(a, int64(i), int64(j)))
		i = j
	}
	if len(runs) == 1 {
		runs[0].Retain()
		return runs[0], nil
	}
	return Concat(runs, mem)
}

// Concat is array.Concatenate for all types of nested columns, including unions, which array.Concatenate does not
// support.
func Concat(pieces []arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	if len(pieces) == 1 {
		pieces[0].Retain()
		return pieces[0], nil
	}
	t := pieces[0].DataType()
	if !hasUnion(t) {
		return array.Concatenate(pieces, vec.Zeroed{Allocator: mem}) // it does not write every offset
	}
	switch t := t.(type) {
	case *arrow.DenseUnionType:
		return concatUnions(t, pieces, mem)
	case *arrow.StructType:
		return concatStructs(t, pieces, mem)
	case arrow.ListLikeType:
		return concatLists(t, pieces, mem)
	}
	return nil, fault.Bugf("arrays of type %s cannot be joined", t)
}

func hasUnion(t arrow.DataType) bool {
	if t.ID() == arrow.DENSE_UNION {
		return true
	}
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if hasUnion(f.Type) {
				return true
			}
		}
	}
	return false
}

func ReleaseAll[A arrow.Array](arrs []A) {
	for _, a := range arrs {
		a.Release()
	}
}

func total(pieces []arrow.Array) (n int) {
	for _, p := range pieces {
		n += p.Len()
	}
	return n
}

// validities joins the validity bitmaps. It returns nil if nothing is null.
func validities(pieces []arrow.Array) (*memory.Buffer, int) {
	bits := make([]byte, (total(pieces)+7)/8)
	at, nulls := 0, 0
	for _, p := range pieces {
		for i := range p.Len() {
			if p.IsValid(i) {
				bitutil.SetBit(bits, at+i)
			} else {
				nulls++
			}
		}
		at += p.Len()
	}
	if nulls == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(bits), nulls
}

// concatSlices concatenates slices of children and releases them.
func concatSlices(slices []arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	defer ReleaseAll(slices)
	return Concat(slices, mem)
}

func concatUnions(t *arrow.DenseUnionType, pieces []arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	n := total(pieces)
	ids, offs := make([]byte, 0, n), make([]int32, 0, n)
	parts := make([][]arrow.Array, t.NumFields())
	lens := make([]int, t.NumFields())
	for _, p := range pieces {
		u := p.(*array.DenseUnion)
		low, high := make([]int, t.NumFields()), make([]int, t.NumFields())
		for i := range low {
			low[i], high[i] = math.MaxInt, -1
		}
		for i := range u.Len() {
			k, o := u.ChildID(i), int(u.ValueOffset(i))
			low[k], high[k] = min(low[k], o), max(high[k], o)
		}
		for i := range u.Len() {
			k := u.ChildID(i)
			ids = append(ids, byte(t.TypeCodes()[k]))
			offs = append(offs, int32(lens[k]+int(u.ValueOffset(i))-low[k]))
		}
		for k := range parts {
			if high[k] < 0 {
				low[k] = 0
			}
			parts[k] = append(parts[k], array.NewSlice(u.Field(k), int64(low[k]), int64(high[k]+1)))
			lens[k] += high[k] + 1 - low[k]
		}
	}
	children := make([]arrow.ArrayData, len(parts))
	for k, slices := range parts {
		c, err := concatSlices(slices, mem)
		if err != nil {
			return nil, err
		}
		defer c.Release()
		children[k] = c.Data()
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(ids),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offs))}
	d := array.NewData(t, n, bufs, children, 0, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func concatStructs(t *arrow.StructType, pieces []arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	valid, nulls := validities(pieces)
	children := make([]arrow.ArrayData, t.NumFields())
	for k := range children {
		var slices []arrow.Array
		for _, p := range pieces {
			f := p.(*array.Struct).Field(k) // cut to the struct's own slice
			f.Retain()
			slices = append(slices, f)
		}
		c, err := concatSlices(slices, mem)
		if err != nil {
			return nil, err
		}
		defer c.Release()
		children[k] = c.Data()
	}
	d := array.NewData(t, total(pieces), []*memory.Buffer{valid}, children, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func concatLists(t arrow.ListLikeType, pieces []arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	valid, nulls := validities(pieces)
	offs := make([]int32, 1, total(pieces)+1)
	var slices []arrow.Array
	for _, p := range pieces {
		l, ok := p.(array.ListLike)
		if !ok || t.ID() != arrow.LIST && t.ID() != arrow.MAP {
			ReleaseAll(slices)
			return nil, fault.Bugf("arrays of type %s cannot be joined", t)
		}
		for i := range l.Len() {
			from, to := l.ValueOffsets(i)
			if l.IsNull(i) {
				to = from
			}
			if to > from {
				slices = append(slices, array.NewSlice(l.ListValues(), from, to))
			}
			offs = append(offs, offs[len(offs)-1]+int32(to-from))
		}
	}
	if len(slices) == 0 {
		slices = append(slices, array.NewSlice(pieces[0].(array.ListLike).ListValues(), 0, 0))
	}
	c, err := concatSlices(slices, mem)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	d := array.NewData(t, len(offs)-1, []*memory.Buffer{valid,
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offs))}, []arrow.ArrayData{c.Data()}, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Size returns roughly how many bytes the values of an array take; of a sliced array, only those of the slice.
func Size(a arrow.Array) (n int64) {
	switch a := a.(type) {
	case array.ExtensionArray:
		return Size(a.Storage())
	case *array.Struct:
		for i := range a.NumField() {
			n += Size(a.Field(i))
		}
	case array.Union:
		for i := range a.NumFields() {
			n += Size(a.Field(i))
		}
		return n + 5*int64(a.Len())
	case array.ListLike:
		if a.Len() == 0 {
			return 0
		}
		from, _ := a.ValueOffsets(0)
		_, to := a.ValueOffsets(a.Len() - 1)
		if from < to {
			items := array.NewSlice(a.ListValues(), from, to)
			defer items.Release()
			n = Size(items)
		}
		return n + 4*int64(a.Len())
	case array.BinaryLike:
		return int64(len(a.ValueBytes())) + 4*int64(a.Len())
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		n += int64(a.Len()) * int64(t.BitWidth()) / 8
	}
	return n
}
