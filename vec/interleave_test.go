package vec_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

// TestInterleaveAgainstModel: entries of several vectors, values and codes of different dictionaries, with nulls, come
// out one after the other as they were, and the vectors themselves keep their entries.
func TestInterleaveAgainstModel(t *testing.T) {
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String,
		arrow.BinaryTypes.String, arrow.ListOf(arrow.BinaryTypes.String)}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 28))
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		typ := types[seed%uint64(len(types))]
		srcs, models := make([]*vec.Vector, 1+r.IntN(5)), [][]string{}
		for i := range srcs {
			text := []string{"", fmt.Sprint("of ", i), "sixteen letters.", "a string that is longer than sixteen bytes"}
			dict, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			appendStrings(t, dict, text)
			if r.IntN(2) == 0 {
				dict.AsDict()
			}
			if srcs[i], err = vec.New(typ, mem); err != nil {
				t.Fatal(err)
			}
			var model []string
			for range 1 + r.IntN(2) {
				model = append(model, appendCells(r, srcs[i], 1+r.IntN(40), dict, text)...)
			}
			models = append(models, model)
		}
		out, err := vec.New(typ, mem)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for range 1 + r.IntN(3) {
			var from []uint16
			var at []int32
			for range r.IntN(60) {
				k := r.IntN(len(srcs))
				from, at = append(from, uint16(k)), append(at, int32(r.IntN(len(models[k]))))
				want = append(want, models[k][at[len(at)-1]])
			}
			if err := out.Interleave(srcs, from, at); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range append(srcs, out) {
			model := want
			if i < len(srcs) {
				model = models[i]
			}
			a, err := v.Emit(v.Len())
			if err != nil {
				t.Fatal(err)
			}
			if got := show(plain(a)); fmt.Sprint(got) != fmt.Sprint(model) {
				t.Fatalf("seed %d, %s, vector %d of %d: got %v, want %v", seed, typ, i, len(srcs), got, model)
			}
			a.Release()
			v.Release()
		}
		mem.AssertSize(t, 0)
	}
}

// TestInterleavedNullsAreEmpty: a null that has a code takes no bytes.
func TestInterleavedNullsAreEmpty(t *testing.T) {
	var srcs []*vec.Vector
	for range 2 {
		dict, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		appendStrings(t, dict, []string{"never", "yes"})
		v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		v.ExtendNulls(0)
		copy(v.ExtendCodes(3, dict), []uint32{0, 1, 0})
		vec.SetBits(v.Validity(), 0, 1, false)
		vec.SetBits(v.Validity(), 2, 3, false)
		v.AddNulls(2)
		srcs = append(srcs, v)
	}
	out, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
	if err == nil {
		err = out.Interleave(srcs, []uint16{0, 1, 0, 1, 0, 1}, []int32{0, 0, 1, 1, 2, 2})
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := out.Emit(6)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if s := a.(*array.String); s.NullN() != 4 || string(s.ValueBytes()) != "yesyes" {
		t.Errorf("expected two strings, got %q and %d nulls", s.ValueBytes(), s.NullN())
	}
}

// BenchmarkInterleave gathers codes of six dictionaries, as a merge of row groups does, 60,000 entries a time.
func BenchmarkInterleave(b *testing.B) {
	const rows = 10_000
	r := rand.New(rand.NewPCG(1, 28))
	pool := vec.NewPool(64 << 20)
	dicts := make([]*vec.Vector, 6)
	var from []uint16
	var at []int32
	for i := range dicts {
		text := make([]string, 200)
		for k := range text {
			text[k] = fmt.Sprint("category ", k*k)
		}
		dict, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		if err != nil {
			b.Fatal(err)
		}
		appendStrings(b, dict, text)
		dict.AsDict()
		dicts[i] = dict
		for k := range rows {
			from, at = append(from, uint16(i)), append(at, int32(k))
		}
	}
	r.Shuffle(len(from), func(i, j int) { from[i], from[j], at[i], at[j] = from[j], from[i], at[j], at[i] })
	codes := make([]uint32, rows)
	for i := range codes {
		codes[i] = r.Uint32N(200)
	}
	for b.Loop() {
		srcs := make([]*vec.Vector, len(dicts))
		for i := range srcs {
			srcs[i], _ = vec.New(arrow.BinaryTypes.String, pool)
			copy(srcs[i].ExtendCodes(rows, dicts[i]), codes)
		}
		out, _ := vec.New(arrow.BinaryTypes.String, pool)
		if err := out.Interleave(srcs, from, at); err != nil {
			b.Fatal(err)
		}
		out.Release()
		for _, s := range srcs {
			s.Release()
		}
	}
}
