package vec_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/vec"
)

// show returns an Arrow array in the form of the model.
func show(a arrow.Array) []string {
	out := make([]string, a.Len())
	for i := range out {
		switch {
		case a.IsNull(i):
			out[i] = "null"
		case a.DataType().ID() == arrow.LIST:
			l := a.(*array.List)
			from, to := l.ValueOffsets(i)
			s := array.NewSlice(l.ListValues(), from, to)
			out[i] = fmt.Sprint(show(s))
			s.Release()
		default:
			out[i] = a.ValueStr(i)
		}
	}
	return out
}

// appendCells appends random entries to v, as a decoder does, and returns them for the model.
func appendCells(r *rand.Rand, v *vec.Vector, n int, dict *vec.Vector, dictText []string) (model []string) {
	nulls := r.IntN(3) == 0
	at := v.Len()
	switch v.Type.ID() {
	case arrow.INT64:
		v.Extend(n)
		for i, d := 0, vec.Fixed[int64](v, at); i < n; i++ {
			d[i] = int64(r.IntN(1000) - 500)
			model = append(model, fmt.Sprint(d[i]))
		}
	case arrow.BOOL:
		v.Extend(n)
		for i := range n {
			b := r.IntN(2) == 1
			vec.SetBits(v.Bits(), at+i, at+i+1, b)
			model = append(model, fmt.Sprint(b))
		}
	case arrow.STRING:
		if r.IntN(2) == 0 {
			v.ExtendCodes(n, dict) // and again, into the same memory
			v.ExtendCodes(0, dict)
			v.Truncate(at)
			codes := v.ExtendCodes(n, dict)
			for i := range codes {
				codes[i] = uint32(r.IntN(len(dictText)))
				model = append(model, dictText[codes[i]])
			}
		} else {
			v.Extend(n)
			o := v.Offsets(at)
			var all string
			for i := range n {
				s := fmt.Sprint("v", r.IntN(1e6))[:r.IntN(3)]
				all += s
				o[i+1] = o[0] + int32(len(all))
				model = append(model, s)
			}
			b, _ := v.Bytes(o[0], int64(len(all)))
			copy(b, all)
		}
	case arrow.LIST:
		v.Extend(n)
		o := v.Offsets(at)
		for i := range n {
			items := appendCells(r, v.Items, r.IntN(4), dict, dictText)
			o[i+1] = o[i] + int32(len(items))
			model = append(model, fmt.Sprint(items))
		}
	}
	if nulls {
		b := v.Validity()
		for i := range n {
			if r.IntN(3) == 0 {
				b[(at+i)/8] &^= 1 << ((at + i) % 8)
				v.AddNulls(1)
				model[i] = "null"
			}
		}
	}
	return model
}

// checkCodes checks that each index of a dictionary array, also of a null, is one of the dictionary.
func checkCodes(t *rapid.T, a arrow.Array) {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return
	}
	if want := vec.CodesOf(arrow.BinaryTypes.String); !arrow.TypeEqual(a.DataType(), want) {
		t.Fatalf("expected %s, got %s", want, a.DataType())
	}
	values := map[string]bool{"null": true}
	for _, s := range show(d.Dictionary()) {
		if values[s] {
			t.Fatalf("the dictionary has %q twice", s)
		}
		values[s] = true
	}
	for i, k := range d.Indices().(*array.Int32).Values() {
		if k < 0 || int(k) >= d.Dictionary().Len() {
			t.Fatalf("entry %d: index %d of %d", i, k, d.Dictionary().Len())
		}
	}
}

// TestCodesShareTheirDictionary: arrays of the same codes have the same dictionary, not copies of it.
func TestCodesShareTheirDictionary(t *testing.T) {
	dict, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	text := []string{"a", "bb", "ccc"}
	appendStrings(t, dict, text)
	dict.AsDict()
	var first arrow.ArrayData
	for i := range 4 {
		v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		copy(v.ExtendCodes(3, dict), []uint32{2, 0, 1})
		a, err := v.EmitCodes(1 + i%3)
		if err != nil {
			t.Fatal(err)
		}
		if d := a.Data().Dictionary(); first == nil {
			first = d
		} else if d != first {
			t.Errorf("array %d has a dictionary of its own", i)
		}
		if got := fmt.Sprint(show(plain(a))); got != fmt.Sprint([]string{"ccc", "a", "bb"}[:1+i%3]) {
			t.Errorf("array %d: %s", i, got)
		}
		a.Release()
		v.Release()
	}
}

// TestDictionaryAgain: a vector that was a dictionary, and was filled anew, is a dictionary of what it has now.
func TestDictionaryAgain(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dict, err := vec.New(arrow.BinaryTypes.String, mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]string{{"one", "two", "three"}, {"a string of more than sixteen bytes", "b"}, {"c"}} {
		for range 2 {
			dict.Reset()
			appendStrings(t, dict, text)
			dict.AsDict()
		}
		v, err := vec.New(arrow.BinaryTypes.String, mem)
		if err != nil {
			t.Fatal(err)
		}
		for _, emit := range []func(int) (arrow.Array, error){v.Emit, v.EmitCodes} {
			for i, codes := 0, v.ExtendCodes(len(text), dict); i < len(codes); i++ {
				codes[i] = uint32(i)
			}
			a, err := emit(len(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(show(plain(a))); got != fmt.Sprint(text) {
				t.Errorf("expected %v, got %s", text, got)
			}
			a.Release()
		}
		v.Release()
	}
	dict.Release()
}

func appendStrings(t testing.TB, v *vec.Vector, text []string) {
	t.Helper()
	var all string
	at := v.Len()
	v.Extend(len(text))
	o := v.Offsets(at)
	for i, s := range text {
		all += s
		o[i+1] = o[0] + int32(len(all))
	}
	b, err := v.Bytes(o[0], int64(len(all)))
	if err != nil {
		t.Fatal(err)
	}
	copy(b, all)
}

func TestVectorAgainstModel(t *testing.T) {
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String,
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.ListOf(arrow.BinaryTypes.String)}
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		var alloc memory.Allocator = mem
		if rapid.Bool().Draw(t, "pool") {
			alloc = vec.NewPool(1 << 20)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		typ := rapid.SampledFrom(types).Draw(t, "type")
		dict, _ := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		dictText := []string{"", "a", "bc", "a string that is longer than sixteen bytes"}
		dict.Extend(len(dictText))
		var all string
		for i, s := range dictText {
			all += s
			dict.Offsets(0)[i+1] = int32(len(all))
		}
		b, _ := dict.Bytes(0, int64(len(all)))
		copy(b, all)

		v, err := vec.New(typ, alloc)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := vec.New(typ, alloc)
		var model, outModel []string
		check := func(what string, a arrow.Array, want []string) {
			if got := show(plain(a)); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s: got %v, want %v", what, got, want)
			}
			nulls := 0
			for _, s := range want {
				if s == "null" {
					nulls++
				}
			}
			if a.NullN() != nulls {
				t.Fatalf("%s: %d nulls, want %d", what, a.NullN(), nulls)
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "op") {
			case 8:
				var rows []int32
				for i := range model {
					if r.IntN(4) == 0 {
						rows = append(rows, int32(i))
					}
				}
				vals, _ := vec.New(typ, alloc)
				for k, text := range appendCells(r, vals, len(rows), dict, dictText) {
					model[rows[k]] = text
				}
				if err := v.Overwrite(rows, vals); err != nil {
					t.Fatal(err)
				}
				vals.Release()
			case 0, 1:
				model = append(model, appendCells(r, v, rapid.IntRange(0, 40).Draw(t, "n"), dict, dictText)...)
			case 2:
				n := rapid.IntRange(0, 9).Draw(t, "n")
				v.ExtendNulls(n)
				for range n {
					model = append(model, "null")
				}
			case 3:
				n := rapid.IntRange(0, len(model)).Draw(t, "skip")
				v.Skip(n)
				model = model[n:]
			case 4:
				n := rapid.IntRange(0, len(model)).Draw(t, "truncate")
				v.Truncate(n)
				model = model[:n]
			case 5:
				n := rapid.IntRange(0, len(model)).Draw(t, "emit")
				var a arrow.Array
				if typ.ID() == arrow.STRING && rapid.Bool().Draw(t, "codes") {
					a, err = v.EmitCodes(n)
				} else {
					a, err = v.Emit(n)
				}
				if err != nil {
					t.Fatal(err)
				}
				checkCodes(t, a)
				check("emit", a, model[:n])
				a.Release()
				model = model[n:]
			case 6:
				n := rapid.IntRange(0, len(model)).Draw(t, "view")
				a, err := v.View(n)
				if err != nil {
					t.Fatal(err)
				}
				check("view", a, model[:n])
				a.Release()
			case 7:
				n := rapid.IntRange(0, len(model)).Draw(t, "append")
				bits := make([]byte, (n+7)/8)
				all := rapid.Bool().Draw(t, "all")
				for i := range n {
					if all || r.IntN(3) > 0 {
						bits[i/8] |= 1 << (i % 8)
						outModel = append(outModel, model[i])
					}
				}
				if err := out.Append(v, 0, n, vec.NewSel(bits, n)); err != nil {
					t.Fatal(err)
				}
			}
			if v.Len() != len(model) {
				t.Fatalf("%d entries, want %d", v.Len(), len(model))
			}
		}
		a, err := out.Emit(out.Len())
		if err != nil {
			t.Fatal(err)
		}
		check("appended", a, outModel)
		a.Release()
		a, err = v.Emit(v.Len())
		if err != nil {
			t.Fatal(err)
		}
		check("rest", a, model)
		a.Release()
		v.Release()
		out.Release()
		mem.AssertSize(failer{t}, 0)
	})
}

// failer adapts a rapid.T to AssertSize's interface.
type failer struct{ *rapid.T }

func (failer) Helper() {}

// plain turns a dictionary array into its values.
func plain(a arrow.Array) arrow.Array {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a
	}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range d.Len() {
		if d.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(d.Dictionary().(*array.String).Value(d.GetValueIndex(i)))
		}
	}
	return b.NewArray()
}

func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (vec.Ranges, map[int64]bool) {
			set := map[int64]bool{}
			var rs vec.Ranges
			at := int64(0)
			for range rapid.IntRange(0, 5).Draw(t, name) {
				at += rapid.Int64Range(0, 5).Draw(t, "gap")
				n := rapid.Int64Range(0, 5).Draw(t, "len")
				rs = rs.Add(vec.Range{From: at, To: at + n})
				for i := at; i < at+n; i++ {
					set[i] = true
				}
				at += n
			}
			return rs, set
		}
		a, as := draw("a")
		b, bs := draw("b")
		got := map[int64]bool{}
		last := int64(-1)
		for _, r := range a.Intersect(b) {
			if r.From <= last || r.Len() <= 0 {
				t.Fatalf("%v is not sorted and disjoint", a.Intersect(b))
			}
			last = r.To - 1
			for i := r.From; i < r.To; i++ {
				got[i] = true
			}
		}
		for i := range int64(100) {
			if got[i] != (as[i] && bs[i]) {
				t.Fatalf("row %d: %t, want %t", i, got[i], as[i] && bs[i])
			}
		}
	})
}

func TestSel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		bits := rapid.SliceOfN(rapid.Byte(), (n+7)/8, (n+7)/8).Draw(t, "bits")
		s := vec.NewSel(append([]byte(nil), bits...), n)
		from := rapid.IntRange(0, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		part, any := s.Slice(from, to), false
		for i := from; i < to; i++ {
			want := bits[i/8]>>(i%8)&1 != 0
			any = any || want
			if s.Has(i) != want || part.Has(i-from) != want {
				t.Fatalf("entry %d: %t and %t, want %t", i, s.Has(i), part.Has(i-from), want)
			}
		}
		if s.Any(from, to) != any || part.N != to-from || (part.Count > 0) != any {
			t.Fatalf("Any(%d,%d) = %t, Count %d, want %t", from, to, s.Any(from, to), part.Count, any)
		}
	})
}

func TestLevelsMoveWithTheirEntries(t *testing.T) {
	v, err := vec.New(arrow.PrimitiveTypes.Int32, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	for range 3 { // three pages of four entries
		at := v.Extend(4)
		def, rep := v.ExtendLevels(4)
		for i := range 4 {
			vec.Fixed[int32](v, at)[i] = int32(at + i)
			def[i], rep[i] = byte(at+i), byte(at+i)&1
		}
	}
	check := func(v *vec.Vector, want ...int32) {
		t.Helper()
		if v.Len() != len(want) || len(v.Def()) != len(want) || len(v.Rep()) != len(want) {
			t.Fatalf("%d entries, %d and %d levels; want %d", v.Len(), len(v.Def()), len(v.Rep()), len(want))
		}
		for i, w := range want {
			if vec.Fixed[int32](v, 0)[i] != w || v.Def()[i] != byte(w) || v.Rep()[i] != byte(w)&1 {
				t.Fatalf("entry %d: value %d, levels %d and %d; want %d", i, vec.Fixed[int32](v, 0)[i], v.Def()[i],
					v.Rep()[i], w)
			}
		}
	}
	v.Skip(3)
	check(v, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	v.Truncate(5)
	check(v, 3, 4, 5, 6, 7)
	w, _ := vec.New(v.Type, memory.DefaultAllocator)
	defer w.Release()
	if err := w.Append(v, 1, 4, nil); err != nil {
		t.Fatal(err)
	}
	check(w, 4, 5, 6)
	sel := vec.NewSel([]byte{0b10101}, 5)
	if err := w.Append(v, 0, 5, sel); err != nil {
		t.Fatal(err)
	}
	check(w, 4, 5, 6, 3, 5, 7)
	v.Reset()
	if v.Len() != 0 || len(v.Def()) != 0 {
		t.Fatal("not empty after Reset")
	}
}

func TestNullVector(t *testing.T) {
	v, err := vec.New(arrow.Null, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	v.Extend(5)
	v.ExtendNulls(2)
	v.Skip(1)
	v.Truncate(5)
	w, _ := vec.New(arrow.Null, memory.DefaultAllocator)
	if err := w.Append(v, 0, 5, vec.NewSel([]byte{0b01101}, 5)); err != nil {
		t.Fatal(err)
	}
	a, err := w.Emit(2)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if a.Len() != 2 || a.NullN() != 2 || w.Len() != 1 || v.Nulls() != 5 || v.Valid(0) {
		t.Fatalf("got an array of %d with %d nulls, %d entries left, %d nulls; want 2, 2, 1, 5", a.Len(),
			a.NullN(), w.Len(), v.Nulls())
	}
}
