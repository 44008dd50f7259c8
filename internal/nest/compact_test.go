package nest

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestReached compares eight levels at a time with one at a time.
func TestReached(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		levels, least := make([]byte, r.IntN(200)), byte(r.IntN(128))
		want := make([]uint64, (len(levels)+63)/64)
		count := 0
		for i := range levels {
			if levels[i] = byte(r.IntN(128)); r.IntN(3) == 0 {
				levels[i] = least
			}
			if levels[i] >= least {
				want[i/64] |= 1 << (i % 64)
				count++
			}
		}
		got, n := atLeastMap(levels, least)
		if n != count {
			t.Fatalf("%v, at least %d: %d, want %d", levels, least, n, count)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v, at least %d: word %d is %x, want %x", levels, least, i, got[i], want[i])
			}
		}
	}
}

// TestConsistentLevels compares eight levels at a time with one at a time, on levels that are nearly all possible.
func TestConsistentLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	consistent := 0
	for range 20_000 {
		n, maxDef := r.IntN(40), byte(1+r.IntN(5))
		item := byte(1 + r.IntN(int(maxDef)))
		def, rep := make([]byte, n), make([]byte, n)
		for i := range def {
			def[i] = byte(r.IntN(int(maxDef) + 1))
			if i > 0 && def[i] >= item && def[i-1] >= item {
				rep[i] = byte(r.IntN(2))
			}
		}
		if n > 0 && r.IntN(2) == 0 {
			at := r.IntN(n)
			def[at] ^= byte(r.IntN(256)) >> r.IntN(8)
			rep[r.IntN(n)] ^= byte(r.IntN(256)) >> r.IntN(8)
		}
		need := new([256]byte)
		for i := range need {
			need[i] = 255
		}
		need[0], need[1] = 0, item
		want := badLevel(def, rep, maxDef, need) < 0
		if got := validLevels(def, rep, maxDef, item); got != want {
			t.Fatalf("%v %v, at most %d, items from %d: %v", def, rep, maxDef, item, got)
		}
		if want {
			consistent++
		}
	}
	if consistent < 5000 || consistent > 15_000 {
		t.Errorf("%d of 20000 are sound", consistent)
	}
}

// anyBytes returns an array of n values of arbitrary bytes; strings are empty.
func anyBytes(r *rand.Rand, t arrow.DataType, n int) arrow.Array {
	b := make([]byte, 16*(n+1))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(b)}
	if t.ID() == arrow.STRING {
		bufs = []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 4*(n+1))), memory.NewBufferBytes(b)}
	}
	return array.MakeFromData(array.NewData(t, n, bufs, nil, 0, 0))
}

// TestCompacted compares copying runs of values with copying them one by one.
func TestCompacted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, &arrow.Decimal128Type{Precision: 30}, &arrow.FixedSizeBinaryType{ByteWidth: 5},
		arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String} {
		for range 200 {
			n := r.IntN(300)
			whole := anyBytes(r, typ, n+3)
			a := array.NewSlice(whole, 3, int64(n+3))
			levels, dense := make([]byte, n), r.IntN(20)
			var idx []int32
			for i := range levels {
				if r.IntN(20) >= dense {
					levels[i] = 1
					idx = append(idx, int32(i))
				}
			}
			keep, k := atLeastMap(levels, 1)
			got := compacted(a, keep, k, memory.DefaultAllocator)
			if typ.ID() == arrow.BOOL || typ.ID() == arrow.STRING {
				if got != nil {
					t.Fatalf("%s: values are not of whole bytes", typ)
				}
				continue
			}
			want, err := Take(a, idx, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			if !array.Equal(got, want) {
				t.Fatalf("%s, %d of %d: %v, want %v", typ, k, n, got, want)
			}
		}
	}
}

// TestCountsOfBits: words that are all ones are also runs.
func TestCountsOfBits(t *testing.T) {
	levels := bytes.Repeat([]byte{9}, 256)
	keep, n := atLeastMap(levels, 9)
	if n != 256 || bits.OnesCount64(keep[3]) != 64 {
		t.Fatalf("%d, %x", n, keep)
	}
	src, dst := make([]byte, 256*3), make([]byte, 256*3)
	for i := range src {
		src[i] = byte(i)
	}
	if gatherKeptBytes(dst, src, 3, keep); !bytes.Equal(dst, src) {
		t.Error("not the same bytes")
	}
}
