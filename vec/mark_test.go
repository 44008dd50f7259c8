package vec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

// fillGarbage appends n entries like the worst decoder that fails: it has overwritten every slice that it got,
// including the byte and the offset shared with earlier entries, and may have miscounted nulls.
func fillGarbage(r *rand.Rand, v *vec.Vector, n int, dicts ...*vec.Vector) {
	if v.Type.ID() == arrow.STRING && r.IntN(2) == 0 {
		for i, codes := 0, v.ExtendCodes(n, dicts[r.IntN(len(dicts))]); i < len(codes); i++ {
			codes[i] = r.Uint32()
		}
	} else if v.Type.ID() != arrow.NULL {
		at := v.Extend(n)
		switch v.Type.ID() {
		case arrow.INT64:
			for i, d := 0, v.Data(at); i < len(d); i++ {
				d[i] = byte(r.Uint32())
			}
		case arrow.BOOL:
			for i := at >> 3; i < len(v.Bits()); i++ {
				v.Bits()[i] = byte(r.Uint32())
			}
		case arrow.STRING, arrow.LIST:
			for i, o := 0, v.Offsets(at); i < len(o); i++ {
				o[i] = int32(r.Uint32())
			}
		}
	} else {
		v.Extend(n)
	}
	if v.Items != nil {
		fillGarbage(r, v.Items, r.IntN(9))
	}
	if r.IntN(2) == 0 && v.Type.ID() != arrow.NULL {
		b := v.Validity()
		for i := (v.Len() - n) >> 3; i < len(b); i++ {
			b[i] = byte(r.Uint32())
		}
		v.AddNulls(r.IntN(3) * n)
	}
	if r.IntN(3) == 0 {
		def, rep := v.ExtendLevels(n)
		for i := range def {
			def[i], rep[i] = 7, 7
		}
	}
}

// TestRollback: a page that fails leaves the entries before it unchanged, and those appended later are right.
func TestRollback(t *testing.T) {
	words := []string{"", "a", "word", "a longer word of the dictionary"}
	dict, other := texts(t, words), texts(t, []string{"x", "yy"})
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Boolean,
		arrow.BinaryTypes.String,
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.Null} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 1))
			v, err := vec.New(typ, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			var model []string
			for range 3 + r.IntN(4) {
				if r.IntN(3) > 0 {
					model = append(model, appendPage(r, v, 1+r.IntN(20), dict, words)...)
				}
				nulls, n, m := v.Nulls(), v.Len(), v.Mark()
				fillGarbage(r, v, r.IntN(20), dict, other)
				v.Rollback(m)
				if v.Len() != n || v.Nulls() != nulls || len(v.Def()) > n {
					t.Fatalf("%s seed %d: got %d entries, %d null, %d levels; want %d, %d null", typ, seed,
						v.Len(), v.Nulls(), len(v.Def()), n, nulls)
				}
			}
			a, err := v.Emit(v.Len())
			if err != nil {
				t.Fatalf("%s seed %d: %v", typ, seed, err)
			}
			if got := show(a); !slices.Equal(got, model) {
				t.Fatalf("%s seed %d:\n got %q\nwant %q", typ, seed, got, model)
			}
			a.Release()
		}
	}
}

// texts makes a dictionary.
func texts(t *testing.T, words []string) *vec.Vector {
	t.Helper()
	v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	appendWords(v, words)
	v.AsDict()
	return v
}

func appendWords(v *vec.Vector, words []string) {
	at := v.Extend(len(words))
	o := v.Offsets(at)
	for i, w := range words {
		b, _ := v.Bytes(o[i], int64(len(w)))
		copy(b, w)
		o = v.Offsets(at)
		o[i+1] = o[i] + int32(len(w))
	}
}

// appendPage appends n entries as a decoder should, and returns them as text.
func appendPage(r *rand.Rand, v *vec.Vector, n int, dict *vec.Vector, words []string) (model []string) {
	switch v.Type.ID() {
	case arrow.NULL:
		v.Extend(n)
		return slices.Repeat([]string{"(null)"}, n) // as Arrow prints them
	case arrow.STRING:
		picks := make([]string, n)
		if r.IntN(2) == 0 {
			for i := range picks {
				c := r.IntN(len(words))
				picks[i] = words[c]
			}
			for i, codes := 0, v.ExtendCodes(n, dict); i < n; i++ {
				codes[i] = uint32(slices.Index(words, picks[i]))
			}
		} else {
			for i := range picks {
				picks[i] = fmt.Sprint(r.IntN(1e6))
			}
			appendWords(v, picks)
		}
		model = picks
	case arrow.INT64, arrow.BOOL:
		at := v.Extend(n)
		for i := range n {
			x := r.IntN(2)
			if v.Type.ID() == arrow.BOOL {
				vec.SetBits(v.Bits(), at+i, at+i+1, x == 1)
				model = append(model, fmt.Sprint(x == 1))
			} else {
				vec.Fixed[int64](v, at)[i] = int64(x)
				model = append(model, fmt.Sprint(x))
			}
		}
	case arrow.LIST:
		at := v.Extend(n)
		for i := range n {
			items := appendPage(r, v.Items, 1+r.IntN(3), dict, words)
			v.Offsets(at)[i+1] = v.Offsets(at)[i] + int32(len(items))
			model = append(model, fmt.Sprint(items))
		}
	}
	if r.IntN(2) == 0 {
		at := v.Len() - n
		for i := 0; i < n; i += 1 + r.IntN(4) {
			vec.SetBits(v.Validity(), at+i, at+i+1, false)
			v.AddNulls(1)
			model[i] = "null"
		}
	}
	return model
}
