package nest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// lengthWriter writes columns of lengths in the simplest way: one value after the other. It chooses at random between
// the possible representations of a type.
type lengthWriter struct {
	r    *rand.Rand
	cols []*lengthColumn
}

type lengthColumn struct {
	format.Column
	lens  []int32
	valid []bool
	from  arrow.Array // of values
	idx   []int32
}

// plan is a field with its columns.
type plan struct {
	f        arrow.Field
	presence *lengthColumn
	own      *lengthColumn
	inline   bool // own is Values|Lengths
	children []*plan
}

func (w *lengthWriter) column(path []int, parent int, has format.Has, t arrow.DataType) (*lengthColumn, int) {
	c := &lengthColumn{Column: format.Column{Name: fmt.Sprintf("c%d%v", len(w.cols), path), Path: path,
		Parent: parent, Has: has, Type: t}}
	w.cols = append(w.cols, c)
	return c, len(w.cols) - 1
}

func (w *lengthWriter) plan(f arrow.Field, path []int, parent int, branch bool) *plan {
	p := &plan{f: f}
	lengths := func() (c *lengthColumn) {
		c, parent = w.column(path, parent, format.Lengths, arrow.PrimitiveTypes.Int32)
		return c
	}
	s := shapeOf(f.Type)
	leaf := s == shapeLeaf
	apart := f.Nullable && (s == shapeStruct || s == shapeUnion || w.r.IntN(3) == 0)
	if s != shapeNull && (apart && !(branch && leaf) || branch && !leaf) {
		p.presence = lengths()
	}
	switch s {
	case shapeLeaf:
		p.own, _ = w.column(path, parent, format.Values, f.Type)
		return p
	case shapeList, shapeFixedList, shapeMap:
		item := children(f.Type)[0]
		if f.Type.ID() == arrow.LIST && shapeOf(item.Type) == shapeLeaf && !item.Nullable && w.r.IntN(2) == 0 {
			p.inline = true
			p.own, _ = w.column(path, parent, format.Values|format.Lengths, f.Type)
			return p
		}
		p.own = lengths()
	}
	for i, c := range children(f.Type) {
		p.children = append(p.children, w.plan(c, append(path[:len(path):len(path)], i), parent, s == shapeUnion))
	}
	return p
}

// put writes entry i of a; -1 is a placeholder with an arbitrary value.
func (w *lengthWriter) put(p *plan, a arrow.Array, i int) {
	null := i < 0 || a.IsNull(i)
	if p.presence != nil {
		if null && w.r.IntN(2) == 0 {
			p.presence.add(0, true)
			return
		}
		if p.presence.add(1, !null); null {
			i = -1
		}
	}
	switch x := a.(type) {
	case *array.Struct:
		for k, c := range p.children {
			w.put(c, x.Field(k), i)
		}
	case *array.DenseUnion:
		for k, c := range p.children {
			at := -1
			if i >= 0 && x.ChildID(i) == k {
				at = int(x.ValueOffset(i))
			}
			w.branch(c, x.Field(k), at)
		}
	case array.ListLike:
		if p.inline {
			p.own.from, p.own.idx = a, append(p.own.idx, int32(i))
			return
		}
		if null {
			n := w.r.IntN(3) // placeholders
			p.own.add(int32(n), false)
			for range n {
				w.put(p.children[0], x.ListValues(), -1)
			}
			return
		}
		from, to := x.ValueOffsets(i)
		p.own.add(int32(to-from), true)
		for k := from; k < to; k++ {
			w.put(p.children[0], x.ListValues(), int(k))
		}
	default:
		if p.own != nil {
			p.own.from, p.own.idx = a, append(p.own.idx, int32(i))
		}
	}
}

// branch writes the entry of branch p of a union; -1: no entry.
func (w *lengthWriter) branch(p *plan, a arrow.Array, i int) {
	switch {
	case p.presence != nil && i < 0:
		p.presence.add(0, true)
	case p.presence != nil:
		p.presence.add(1, true)
		own := *p
		own.presence = nil
		w.put(&own, a, i)
	case p.own != nil:
		p.own.from, p.own.idx = a, append(p.own.idx, int32(i))
	}
}

func (c *lengthColumn) add(n int32, valid bool) {
	c.lens, c.valid = append(c.lens, n), append(c.valid, valid)
}

// input returns the column's entries as an array.
func (c *lengthColumn) input(t testing.TB, mem memory.Allocator) Input {
	if c.Has == format.Lengths {
		b := array.NewInt32Builder(mem)
		defer b.Release()
		b.Reserve(len(c.lens))
		for i, n := range c.lens {
			b.UnsafeAppend(n)
			if !c.valid[i] {
				b.SetNull(i)
			}
		}
		return Input{Array: b.NewArray()}
	}
	if c.from == nil {
		b := array.NewBuilder(mem, c.Type)
		defer b.Release()
		return Input{Array: b.NewArray()}
	}
	a, err := Take(c.from, c.idx, mem)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Array: a}
}

func writeLengths(t testing.TB, r *rand.Rand, f arrow.Field, a arrow.Array,
	mem memory.Allocator) (cols []format.Column, in []Input) {
	w := &lengthWriter{r: r}
	p := w.plan(f, []int{0}, -1, false)
	for i := range a.Len() {
		w.put(p, a, i)
	}
	for _, c := range w.cols {
		cols, in = append(cols, c.Column), append(in, c.input(t, mem))
	}
	return cols, in
}

func TestRandomLengthsRoundTrip(t *testing.T) {
	seen := map[arrow.Type]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := arrow.Field{Name: "f", Type: randomType(r, 1+r.IntN(4), true), Nullable: r.IntN(2) == 0}
		rows := r.IntN(30)
		want := randomArray(r, f, rows)
		seen[f.Type.ID()]++
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		cols, in := writeLengths(t, r, f, want, mem)
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
	for _, id := range []arrow.Type{arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.MAP, arrow.STRUCT,
		arrow.DENSE_UNION} {
		if seen[id] < 40 {
			t.Errorf("only %d of %s", seen[id], id)
		}
	}
}

// TestUnionsByHand has the rows 7, null, {"x": 1}, null, [8, 9]: a union of null, int, a struct and a list.
func TestUnionsByHand(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	f := arrow.Field{Name: "u", Type: arrow.DenseUnionOf([]arrow.Field{
		{Name: "null", Type: arrow.Null, Nullable: true}, {Name: "int", Type: i32},
		{Name: "rec", Type: arrow.StructOf(arrow.Field{Name: "x", Type: i32})},
		{Name: "list", Type: arrow.ListOfNonNullable(i32)}}, []arrow.UnionTypeCode{0, 1, 2, 3})}
	col := func(name string, parent int, has format.Has, path ...int) format.Column {
		return format.Column{Name: name, Path: path, Parent: parent, Has: has, Type: i32}
	}
	cols := []format.Column{
		col("u/int", -1, format.Values, 0, 1), col("u/rec", -1, format.Lengths, 0, 2),
		col("u/rec#x", 1, format.Values, 0, 2, 0),
		col("u/list", -1, format.Lengths, 0, 3), col("u/list[]", 3, format.Lengths, 0, 3),
		col("u/list[]/item", 4, format.Values, 0, 3, 0),
	}
	ints := func(s string) Input {
		a, _, err := array.FromJSON(memory.NewGoAllocator(), i32, strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		return Input{Array: a}
	}
	in := []Input{ints("[7,null,null,null,null]"), ints("[0,0,1,0,0]"), ints("[1]"), ints("[0,0,0,0,1]"),
		ints("[2]"), ints("[8,9]")}
	got, err := assemble(f, cols, in, 5, nil, memory.NewGoAllocator())
	if err != nil {
		t.Fatal(err)
	}
	if s := jsonOf(got); s != `[[1,7],[0,null],[2,{"x":1}],[0,null],[3,[8,9]]]` {
		t.Error(s)
	}
	in[0] = ints("[7,null,8,null,null]")
	if _, err := assemble(f, cols, in, 5, nil, memory.NewGoAllocator()); err == nil ||
		err.Error() != "corrupt: u.rec: entry 2 of the union is of two branches" {
		t.Error(err)
	}
}

// TestThingsWithoutColumns has types of which only the number of entries is stored.
func TestThingsWithoutColumns(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	none := arrow.Field{Name: "n", Type: arrow.Null, Nullable: true}
	nothing := arrow.Field{Name: "s", Type: arrow.StructOf()}
	for _, c := range []struct {
		f    arrow.Field
		want string
	}{
		{none, "[null,null,null]"},
		{nothing, "[{},{},{}]"},
		{arrow.Field{Name: "s", Type: arrow.StructOf(none, nothing)},
			`[{"n":null,"s":{}},{"n":null,"s":{}},{"n":null,"s":{}}]`},
		{arrow.Field{Name: "l", Type: arrow.ListOf(arrow.Null)}, "[[null,null],[],null]"},
		{arrow.Field{Name: "l", Type: arrow.ListOfNonNullable(nothing.Type)}, "[[{},{}],[],null]"},
		{arrow.Field{Name: "l", Type: arrow.ListOfNonNullable(arrow.StructOf(none))},
			`[[{"n":null},{"n":null}],[],null]`},
	} {
		var cols []format.Column
		var in []Input
		if c.f.Name == "l" {
			a, _, err := array.FromJSON(memory.NewGoAllocator(), i32, strings.NewReader("[2,0,null]"))
			if err != nil {
				t.Fatal(err)
			}
			cols, in = []format.Column{{Name: "l[]", Path: []int{0}, Parent: -1, Has: format.Lengths, Type: i32}},
				[]Input{{Array: a}}
		}
		got, err := assemble(c.f, cols, in, 3, nil, memory.NewGoAllocator())
		if err != nil {
			t.Errorf("%s: %v", c.f.Type, err)
		} else if s := jsonOf(got); s != c.want {
			t.Errorf("%s: %s, want %s", c.f.Type, s, c.want)
		}
	}
}

func TestLengthsThatDoNotAddUp(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	item := arrow.StructOf(arrow.Field{Name: "a", Type: i32}, arrow.Field{Name: "b", Type: i32})
	f := arrow.Field{Name: "l", Type: arrow.ListOfNonNullable(item)}
	cols := []format.Column{{Name: "l[]", Path: []int{0}, Parent: -1, Has: format.Lengths, Type: i32},
		{Name: "a", Path: []int{0, 0, 0}, Has: format.Values, Type: i32},
		{Name: "b", Path: []int{0, 0, 1}, Has: format.Values, Type: i32}}
	for in, want := range map[[3]string]string{
		{"[2,0,1]", "[1,2,3]", "[4,5,6]"}:    "<nil>",
		{"[2,null,1]", "[1,2,3]", "[4,5,6]"}: "<nil>",
		{"[2,0]", "[1,2]", "[4,5]"}:          "corrupt: l[]: 2 entries in 3 rows",
		{"[2,0,2]", "[1,2,3]", "[4,5,6,7]"}: "corrupt: l[] and a: the lengths count 4 entries, " +
			"there are 3",
		{"[2,0,2]", "[1,2,3,4]", "[4,5,6]"}: "corrupt: l[] and b: the lengths count 4 entries, " +
			"there are 3",
		{"[2,-1,2]", "[1,2,3]", "[4,5,6]"}: "corrupt: l[]/length: -1 is negative (entry 1)",
		{"[2,0,1]", "[1,null,3]", "[4,5,6]"}: "corrupt: l.item.a: entry 1 is null, but its type " +
			"has no nulls",
		{"[2000000000,2000000000,2000000000]", "[1]", "[1]"}: "limit: l[]: 6000000000 items at once",
	} {
		var ins []Input
		for _, s := range in {
			a, _, err := array.FromJSON(memory.NewGoAllocator(), i32, strings.NewReader(s))
			if err != nil {
				t.Fatal(err)
			}
			ins = append(ins, Input{Array: a})
		}
		_, err := assemble(f, cols, ins, 3, nil, memory.NewGoAllocator())
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}

func FuzzAssemble(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte("\x00\x01\x02\x00\x01\x03\x05"), []byte("\x00\x01\x01\x02\x00\x00\x03"))
	}
	f.Fuzz(func(t *testing.T, seed uint64, def, rep []byte) {
		r := rand.New(rand.NewPCG(seed, 4))
		unions := r.IntN(2) == 0
		field := arrow.Field{Name: "f", Type: randomType(r, 1+r.IntN(4), unions), Nullable: r.IntN(2) == 0}
		rows := r.IntN(6)
		a := randomArray(r, field, rows)
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		var cols []format.Column
		var in []Input
		if !unions && seed%2 == 0 {
			sc := arrow.NewSchema([]arrow.Field{field}, nil)
			cols, in = levelColumns(t, sc, array.NewRecordBatch(sc, []arrow.Array{a}, int64(rows)), mem)
			damageLevels(r, in, def, rep, mem)
		} else {
			cols, in = writeLengths(t, r, field, a, mem)
			damageLengths(in, def, rep, mem)
		}
		got, err := assemble(field, cols, in, rows, nil, mem)
		for _, x := range in {
			x.Array.Release()
		}
		if err == nil {
			if err := valid(got); err != nil || got.Len() != rows {
				t.Errorf("%d rows of %d: %v", got.Len(), rows, err)
			}
			_ = jsonOf(got)
			got.Release()
		}
		mem.AssertSize(t, 0)
	})
}

// damageLevels changes some levels, and gives each column the values that its new levels require.
func damageLevels(r *rand.Rand, in []Input, def, rep []byte, mem memory.Allocator) {
	for i := range in {
		in[i].Def, in[i].Rep = bytes.Clone(in[i].Def), bytes.Clone(in[i].Rep)
		for k := range min(len(in[i].Def), len(def)) {
			in[i].Def[k] ^= def[k] & byte(r.IntN(256)) & 7
		}
		for k := range min(len(in[i].Rep), len(rep)) {
			in[i].Rep[k] ^= rep[k] & byte(r.IntN(256)) & 3
		}
		maxDef := byte(0)
		for _, d := range in[i].Def {
			maxDef = max(maxDef, d)
		}
		idx := make([]int32, len(in[i].Def))
		for k, d := range in[i].Def {
			if idx[k] = int32(k); d < maxDef {
				idx[k] = -1
			}
		}
		if in[i].Def == nil {
			continue
		}
		if a, err := Take(in[i].Array, idx, mem); err == nil {
			in[i].Array.Release()
			in[i].Array = a
		}
	}
}

func damageLengths(in []Input, def, rep []byte, mem memory.Allocator) {
	for i := range in {
		l, ok := in[i].Array.(*array.Int32)
		if !ok {
			continue
		}
		b := array.NewInt32Builder(mem)
		for k := range l.Len() {
			x := l.Value(k)
			if k < len(def) {
				x ^= int32(int8(def[k])) % 3
			}
			if k < len(rep) && rep[k]%8 == 7 {
				b.AppendNull()
				continue
			}
			b.Append(x)
		}
		in[i].Array.Release()
		in[i].Array = b.NewArray()
		b.Release()
	}
}
