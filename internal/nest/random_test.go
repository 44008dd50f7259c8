package nest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// randomType returns a random type of at most depth levels.
func randomType(r *rand.Rand, depth int, unions bool) arrow.DataType {
	if depth == 0 || r.IntN(4) == 0 {
		return []arrow.DataType{
			arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8,
			arrow.BinaryTypes.String,
			arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.LargeString, &arrow.FixedSizeBinaryType{ByteWidth: 3},
			arrow.FixedWidthTypes.Timestamp_ms, &arrow.Decimal128Type{Precision: 30, Scale: 2},
			arrow.PrimitiveTypes.Int16,
		}[r.IntN(10)]
	}
	item := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: randomType(r, depth-1, unions), Nullable: r.IntN(2) == 0}
	}
	kinds := 5
	if unions {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
		return arrow.ListOfField(item("item"))
	case 1:
		return arrow.LargeListOfField(item("element"))
	case 2:
		return arrow.FixedSizeListOfField(int32(1+r.IntN(3)), item("item"))
	case 3:
		return arrow.MapOfFields(arrow.Field{Name: "key", Type: randomType(r, 0, false)}, item("value"))
	case 4:
		fs := make([]arrow.Field, 1+r.IntN(3))
		for i := range fs {
			fs[i] = item(fmt.Sprintf("f%d", i))
		}
		return arrow.StructOf(fs...)
	}
	fs := []arrow.Field{{Name: "none", Type: arrow.Null, Nullable: true}}
	codes := []arrow.UnionTypeCode{5}
	for i := range 1 + r.IntN(3) {
		fs = append(fs, item(fmt.Sprintf("b%d", i)))
		codes = append(codes, arrow.UnionTypeCode(10*i))
	}
	return arrow.DenseUnionOf(fs, codes)
}

// randomArray returns arrays that are as irregular as allowed: with values under nulls, gaps between lists, and as a
// part of a longer array.
func randomArray(r *rand.Rand, f arrow.Field, n int) arrow.Array {
	before, after := r.IntN(3), r.IntN(3)
	all := before + n + after
	d := randomData(r, f, all)
	defer d.Release()
	a := array.MakeFromData(d)
	defer a.Release()
	return array.NewSlice(a, int64(before), int64(before+n))
}

func randomData(r *rand.Rand, f arrow.Field, n int) *array.Data {
	valid, nulls := randomValidity(r, f, n)
	bytesOf := func(k int) *memory.Buffer {
		b := make([]byte, k)
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return memory.NewBufferBytes(b)
	}
	child := func(f arrow.Field, n int) []arrow.ArrayData {
		return []arrow.ArrayData{randomArray(r, f, n).Data()}
	}
	bufs, nested := []*memory.Buffer{valid}, []arrow.ArrayData(nil)
	offsets := func() (wide []int64, end int) {
		wide = make([]int64, n+1)
		at := int64(r.IntN(3))
		for i := range wide {
			wide[i] = at
			at += int64(r.IntN(4))
		}
		return wide, int(wide[n]) + r.IntN(3)
	}
	narrow := func(wide []int64) *memory.Buffer {
		o := make([]int32, len(wide))
		for i, x := range wide {
			o[i] = int32(x)
		}
		return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(o))
	}
	switch t := f.Type.(type) {
	case *arrow.StringType, *arrow.LargeStringType:
		wide, end := offsets()
		if t.ID() == arrow.STRING {
			bufs = append(bufs, narrow(wide), bytesOf(end))
		} else {
			bufs = append(bufs, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(wide)), bytesOf(end))
		}
	case *arrow.BooleanType:
		bufs = append(bufs, bytesOf((n+7)/8))
	case *arrow.ListType:
		wide, end := offsets()
		bufs, nested = append(bufs, narrow(wide)), child(t.ElemField(), end)
	case *arrow.LargeListType:
		wide, end := offsets()
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(wide)))
		nested = child(t.ElemField(), end)
	case *arrow.MapType:
		wide, end := offsets()
		bufs, nested = append(bufs, narrow(wide)), child(children(t)[0], end)
	case *arrow.FixedSizeListType:
		nested = child(t.ElemField(), n*int(t.Len()))
	case *arrow.StructType:
		for _, c := range t.Fields() {
			nested = append(nested, child(c, n)...)
		}
	case *arrow.DenseUnionType:
		return randomUnion(r, t, n)
	case *arrow.Decimal128Type:
		b := make([]byte, 16*n)
		for i := range n {
			b[16*i] = byte(r.IntN(256))
		}
		bufs = append(bufs, memory.NewBufferBytes(b))
	case arrow.FixedWidthDataType:
		bufs = append(bufs, bytesOf(n*t.BitWidth()/8))
	case *arrow.NullType:
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0)
	}
	return array.NewData(f.Type, n, bufs, nested, nulls, 0)
}

func randomUnion(r *rand.Rand, t *arrow.DenseUnionType, n int) *array.Data {
	types, off := make([]byte, n), make([]int32, n)
	counts := make([]int32, t.NumFields())
	for i := range n {
		b := r.IntN(t.NumFields())
		types[i], off[i] = byte(t.TypeCodes()[b]), counts[b]
		counts[b]++
	}
	var nested []arrow.ArrayData
	for i, f := range t.Fields() {
		f.Nullable = false // the branch for nulls represents nulls
		nested = append(nested, randomArray(r, f, int(counts[i])).Data())
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(types),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(off))}
	return array.NewData(t, n, bufs, nested, 0, 0)
}

func randomValidity(r *rand.Rand, f arrow.Field, n int) (*memory.Buffer, int) {
	if !f.Nullable || r.IntN(4) == 0 || f.Type.ID() == arrow.DENSE_UNION {
		return nil, 0
	}
	b := make([]byte, (n+7)/8)
	nulls := n
	for i := range n {
		if r.IntN(3) > 0 {
			b[i>>3] |= 1 << (i & 7)
			nulls--
		}
	}
	return memory.NewBufferBytes(b), nulls
}

func TestRandomLevelsRoundTrip(t *testing.T) {
	seen := map[arrow.Type]int{}
	for seed := range uint64(1200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := arrow.Field{Name: "f", Type: randomType(r, 1+r.IntN(5), false), Nullable: r.IntN(2) == 0}
		rows := r.IntN(40)
		want := randomArray(r, f, rows)
		seen[f.Type.ID()]++
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		sc := arrow.NewSchema([]arrow.Field{f}, nil)
		cols, in := levelColumns(t, sc, array.NewRecordBatch(sc, []arrow.Array{want}, int64(rows)), mem)
		got, err := assemble(f, cols, in, rows, nil, mem)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, f.Type, err)
		}
		same(t, seed, got, want)
		got.Release()
		for _, x := range in {
			x.Array.Release()
		}
		mem.AssertSize(t, 0)
	}
	for _, id := range []arrow.Type{arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.MAP, arrow.STRUCT} {
		if seen[id] < 40 {
			t.Errorf("only %d of %s", seen[id], id)
		}
	}
}

func assemble(f arrow.Field, cols []format.Column, in []Input, rows int, want [][]int,
	mem memory.Allocator) (arrow.Array, error) {
	use, err := Needed(f, want, cols, Tops(cols, 1)[0])
	if err != nil {
		return nil, err
	}
	a, err := NewAssembler(f, cols, use, want)
	if err != nil {
		return nil, err
	}
	var mine []Input
	for _, u := range use {
		mine = append(mine, in[u])
	}
	return a.Assemble(mine, rows, mem)
}

func same(t *testing.T, seed uint64, got, want arrow.Array) {
	t.Helper()
	if err := valid(got); err != nil {
		t.Fatalf("seed %d: %s: %v", seed, want.DataType(), err)
	}
	if g, w := jsonOf(got), jsonOf(want); g != w || !arrow.TypeEqual(got.DataType(), want.DataType()) {
		t.Fatalf("seed %d: %s\n got %s\nwant %s", seed, want.DataType(), g, w)
	}
}

// valid checks the properties that readers of an array trust: sufficiently long buffers, offsets that ascend within the
// child.
func valid(a arrow.Array) error {
	d := a.Data()
	n := d.Offset() + d.Len()
	if b := d.Buffers()[0]; b != nil && b.Len() < (n+7)/8 {
		return fmt.Errorf("validity of %d bytes for %d", b.Len(), n)
	}
	if f, ok := a.DataType().(arrow.FixedWidthDataType); ok && len(d.Buffers()) > 1 && n > 0 {
		if b := d.Buffers()[1]; b.Len() < (n*f.BitWidth()+7)/8 {
			return fmt.Errorf("%d bytes for %d values", b.Len(), n)
		}
	}
	switch x := a.(type) {
	case *array.String:
		for i := range x.Len() {
			_ = strings.Clone(x.Value(i))
		}
	case *array.Struct:
		for i := range x.NumField() {
			if x.Field(i).Len() != x.Len() {
				return fmt.Errorf("child %d has %d entries of %d", i, x.Field(i).Len(), x.Len())
			}
			if err := valid(x.Field(i)); err != nil {
				return err
			}
		}
	case *array.DenseUnion:
		for i := range x.Len() {
			if c := x.Field(x.ChildID(i)); int(x.ValueOffset(i)) >= c.Len() || x.ValueOffset(i) < 0 {
				return fmt.Errorf("entry %d at %d of %d", i, x.ValueOffset(i), c.Len())
			}
		}
		for i := range x.NumFields() {
			if err := valid(x.Field(i)); err != nil {
				return err
			}
		}
	case array.ListLike:
		last := int64(0)
		for i := range x.Len() {
			from, to := x.ValueOffsets(i)
			if from < last || to < from || to > int64(x.ListValues().Len()) {
				return fmt.Errorf("list %d is [%d, %d) of %d", i, from, to, x.ListValues().Len())
			}
			last = to
		}
		return valid(x.ListValues())
	}
	return nil
}

func TestPruningLevelsIsSelectingAfterwards(t *testing.T) {
	tested := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := arrow.Field{Name: "f", Type: randomType(r, 1+r.IntN(4), false), Nullable: r.IntN(2) == 0}
		leaves, err := Leaves(f)
		if err != nil {
			t.Fatal(err)
		}
		l := leaves[r.IntN(len(leaves))]
		want := [][]int{append([]int{0}, l.Path...)}
		rows := r.IntN(20)
		a := randomArray(r, f, rows)
		sc := arrow.NewSchema([]arrow.Field{f}, nil)
		mem := memory.NewGoAllocator()
		cols, in := levelColumns(t, sc, array.NewRecordBatch(sc, []arrow.Array{a}, int64(rows)), mem)
		got, err := assemble(f, cols, in, rows, want, mem)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, f.Type, err)
		}
		p, err := Pruned(f, want)
		if err != nil || !arrow.TypeEqual(p.Type, got.DataType()) {
			t.Fatalf("seed %d: planned %v (%v), got %v", seed, p, err, got.DataType())
		}
		all, err := assemble(f, cols, in, rows, nil, mem)
		if err != nil {
			t.Fatal(err)
		}
		if g, w := jsonOf(got), jsonOf(selected(all, p.Type)); g != w {
			t.Fatalf("seed %d: %s of %s\n got %s\nwant %s", seed, p.Type, f.Type, g, w)
		}
		if !arrow.TypeEqual(p.Type, f.Type) {
			tested++
		}
	}
	if tested < 100 {
		t.Errorf("only %d types had something to prune", tested)
	}
}

// selected selects those children of a's structs that to has.
func selected(a arrow.Array, to arrow.DataType) arrow.Array {
	if a.DataType().ID() == arrow.MAP || a.DataType().ID() == arrow.DENSE_UNION || len(a.Data().Children()) == 0 {
		return a
	}
	fields, had := children(to), children(a.DataType())
	var nested []arrow.ArrayData
	for _, f := range fields {
		for i, h := range had {
			if h.Name == f.Name {
				nested = append(nested, selected(array.MakeFromData(a.Data().Children()[i]), f.Type).Data())
			}
		}
	}
	return array.MakeFromData(array.NewData(to, a.Len(), a.Data().Buffers(), nested, a.NullN(), a.Data().Offset()))
}
