package vec_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/vec"
)

// TestRecycledBuffers: buffers of any sizes are as long as asked for, keep their contents while they grow, are never
// handed out twice at a time, are at most an eighth larger, and no more of them are kept than the limit.
func TestRecycledBuffers(t *testing.T) {
	const limit = 4 << 20
	r := rand.New(rand.NewPCG(28, 1))
	mem := vec.NewRecycled(limit)
	type buffer struct {
		b    []byte
		mark byte
	}
	var held []buffer
	inUse := map[*byte]bool{}
	reused, seen := 0, map[*byte]bool{}
	for i := range 1200 {
		if len(held) > 0 && r.IntN(3) > 0 {
			k := r.IntN(len(held))
			one := held[k]
			if one.b[0] != one.mark || one.b[len(one.b)-1] != one.mark {
				t.Fatalf("step %d: a buffer of %d bytes was overwritten", i, len(one.b))
			}
			delete(inUse, unsafe.SliceData(one.b))
			if r.IntN(3) == 0 {
				size := len(one.b) + r.IntN(1<<18)
				grown := mem.Reallocate(size, one.b)
				if len(grown) != size || grown[0] != one.mark || grown[len(one.b)-1] != one.mark {
					t.Fatalf("step %d: contents are lost when %d bytes become %d", i, len(one.b), size)
				}
				one.b = grown
			} else {
				mem.Free(one.b[:r.IntN(len(one.b)+1)])
				held = append(held[:k], held[k+1:]...)
				continue
			}
			held[k] = one
		} else {
			size := 1 + r.IntN(1<<18)
			held = append(held, buffer{mem.Allocate(size), byte(i)})
			if b := held[len(held)-1].b; len(b) != size || size > 1<<16 && cap(b) > size+size/8 {
				t.Fatalf("step %d: expected %d bytes, got %d of %d", i, size, len(b), cap(b))
			}
			if p := unsafe.SliceData(held[len(held)-1].b); seen[p] {
				reused++
			}
		}
		for k := range held {
			one := &held[k]
			for _, at := range []int{0, len(one.b) - 1} {
				one.b[at] = one.mark
			}
			p := unsafe.SliceData(one.b)
			inUse[p], seen[p] = true, true
		}
		if len(inUse) != len(held) {
			t.Fatalf("step %d: %d buffers are in %d places", i, len(held), len(inUse))
		}
	}
	if reused < 30 {
		t.Errorf("buffers were used again %d times", reused)
	}
}

// TestValuesOutliveRecycledBuffers: strings and bytes that were taken from released arrays keep their values, whatever
// is allocated afterwards.
func TestValuesOutliveRecycledBuffers(t *testing.T) {
	const n = 20_000
	mem := vec.NewRecycled(64 << 20)
	var texts []string
	var fixed [][]byte
	for round := range 5 {
		s, err := vec.New(arrow.BinaryTypes.String, mem)
		if err != nil {
			t.Fatal(err)
		}
		f, err := vec.New(&arrow.FixedSizeBinaryType{ByteWidth: 8}, mem)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]string, n)
		for i := range text {
			text[i] = string(bytes.Repeat([]byte{byte('a' + round)}, 8))
		}
		appendStrings(t, s, text)
		f.Extend(n)
		for i, b := 0, f.Data(0); i < len(b); i++ {
			b[i] = byte('a' + round)
		}
		x, err := s.Emit(n)
		if err != nil {
			t.Fatal(err)
		}
		y, err := f.Emit(n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			texts = append(texts, x.(*array.String).Value(i))
			fixed = append(fixed, y.(*array.FixedSizeBinary).Value(i))
		}
		x.Release()
		y.Release()
	}
	for i := range texts {
		want := string(bytes.Repeat([]byte{byte('a' + i/n)}, 8))
		if texts[i] != want || string(fixed[i]) != want {
			t.Fatalf("value %d: expected %q, got %q and %q", i, want, texts[i], fixed[i])
		}
	}
}
