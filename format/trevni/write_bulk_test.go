package trevni

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestFill holds the kernels that encode many values against the appenders of one, and the limit against its words.
func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n = 3000
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	longs := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	doubles := array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range n {
		ints.Append(int32(r.Uint32()) >> r.IntN(32))
		longs.Append(int64(r.Uint64()) >> r.IntN(64))
		doubles.Append(r.NormFloat64())
		texts.Append(string(bytes.Repeat([]byte{byte('a' + i%26)}, r.IntN(1<<r.IntN(9)))))
	}
	for _, c := range []struct {
		a arrow.Array
		s Type
	}{{ints.NewArray(), Int}, {longs.NewArray(), Long}, {doubles.NewArray(), Double}, {texts.NewArray(), String}} {
		a := array.NewSlice(c.a, 5, n)
		add, err := appenderOf(a, c.s)
		if err != nil {
			t.Fatal(err)
		}
		f := fillOf(a, c.s)
		for _, limit := range []int{1, 7, 64, 1000, 1 << 20} {
			var got, want []byte
			for i := 0; i < a.Len(); {
				k := i
				want = want[:0]
				for ; k < a.Len() && len(want) < limit; k++ {
					if want, err = add(want, k); err != nil {
						t.Fatal(err)
					}
				}
				if got, i = f(got[:0], i, a.Len(), limit); i != k || !bytes.Equal(got, want) {
					t.Fatalf("%s, limit %d: up to value %d % x, want up to %d % x", c.s, limit, i, got, k, want)
				}
			}
		}
	}
}
