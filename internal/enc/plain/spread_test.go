package plain

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// twin is a kernel written in Go.
func twin(width int, data []byte, at, from int, w uint64) {
	dst, src := data[at*width:(at+64)*width], data[from*width:]
	k := bits.OnesCount64(w)
	switch width {
	case 1:
		spread(dst, src, k, w)
	case 2:
		spread(cast[uint16](dst), cast[uint16](src), k, w)
	case 4:
		spread(cast[uint32](dst), cast[uint32](src), k, w)
	case 8:
		spread(cast[uint64](dst), cast[uint64](src), k, w)
	}
}

// checkSpreads compares the kernels of every level with their twins: 64 slots from slot at on, the values from value
// from on, from ≤ at. It counts how often each level ran.
func checkSpreads(t testing.TB, seed []byte, at, from int, w uint64, ran map[string]int) {
	for _, s := range levels {
		for width, f := range s.by {
			if f == nil {
				continue
			}
			ran[s.name]++
			want := make([]byte, (at+64)*width)
			for i := range want {
				want[i] = byte(i*7 + i>>8)
				if len(seed) > 0 {
					want[i] ^= seed[i%len(seed)]
				}
			}
			guarded := append(bytes.Clone(want), bytes.Repeat([]byte{0xa5}, 64)...)
			got := guarded[:len(want)]
			f(unsafe.SliceData(got[at*width:]), unsafe.SliceData(got[from*width:]), w)
			twin(width, want, at, from, w)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s, width %d, slots from %d, values from %d, bits %064b: differs from the twin", s.name,
					width, at, from, w)
			}
			if !bytes.Equal(guarded[len(want):], bytes.Repeat([]byte{0xa5}, 64)) {
				t.Fatalf("%s, width %d, slots from %d, values from %d, bits %064b: wrote past the slots", s.name,
					width, at, from, w)
			}
		}
	}
}

func TestSpreads(t *testing.T) {
	ran, r := map[string]int{}, rand.New(rand.NewPCG(3, 4))
	for _, at := range []int{0, 1, 5, 63, 64, 200} {
		for from := 0; from <= at; from += 1 + at/9 {
			for _, w := range []uint64{0, 1, 1 << 63, ^uint64(0), 0x5555555555555555, 0xffff0000ffff0001,
				0x8000000000000001, 0x123456789abcdef0} {
				checkSpreads(t, nil, at, from, w, ran)
			}
			for range 20 {
				checkSpreads(t, nil, at, from, r.Uint64()&r.Uint64(), ran)
				checkSpreads(t, nil, at, from, r.Uint64()|r.Uint64(), ran)
			}
		}
	}
	for bits := range uint64(256) { // every entry of the tables, in every step
		checkSpreads(t, nil, 70, 3, bits*0x0101010101010101, ran)
	}
	for _, s := range levels {
		if ran[s.name] == 0 {
			t.Errorf("%s did not run", s.name)
		}
	}
	t.Log("runs:", ran)
}

func FuzzSpreads(f *testing.F) {
	f.Add([]byte("12345678"), uint8(70), uint8(3))
	f.Fuzz(func(t *testing.T, seed []byte, at, from uint8) {
		var b [8]byte
		copy(b[:], seed)
		checkSpreads(t, seed, int(at), int(min(from, at)), binary.LittleEndian.Uint64(b[:]), map[string]int{})
	})
}

// eachLevel runs f with the kernels of each level alone, and without kernels.
func eachLevel(f func(name string)) {
	defer use(levels)
	for _, s := range levels {
		use([]*spreaders{s})
		f(s.name)
	}
	use(nil)
	f("Go")
}
