package plain

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"
	"unsafe"
)

// twin is what a kernel does, in Go.
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

// checkSpreads holds the kernels against their twins: 64 slots at at, the values from from on, which is not behind it.
func checkSpreads(t testing.TB, seed []byte, at, from int, w uint64) (ran int) {
	for width, f := range spreads {
		if f == nil {
			continue
		}
		ran++
		want := make([]byte, (at+64)*width)
		for i := range want {
			want[i] = byte(i*7 + i>>8)
			if len(seed) > 0 {
				want[i] ^= seed[i%len(seed)]
			}
		}
		got := bytes.Clone(want)
		f(unsafe.SliceData(got[at*width:]), unsafe.SliceData(got[from*width:]), w)
		twin(width, want, at, from, w)
		if !bytes.Equal(got, want) {
			t.Fatalf("width %d, slots from %d, values from %d, bits %064b: differs from the twin", width, at, from, w)
		}
	}
	return ran
}

func TestSpreads(t *testing.T) {
	ran := 0
	for _, at := range []int{0, 1, 5, 63, 64, 200} {
		for from := 0; from <= at; from += 1 + at/9 {
			for _, w := range []uint64{0, 1, 1 << 63, ^uint64(0), 0x5555555555555555, 0xffff0000ffff0001, 0x8000000000000001, 0x123456789abcdef0} {
				ran += checkSpreads(t, nil, at, from, w)
			}
		}
	}
	if ran == 0 {
		t.Skip("this machine, or this build, has no kernels in assembly")
	}
}

func FuzzSpreads(f *testing.F) {
	f.Add([]byte("12345678"), uint8(70), uint8(3))
	f.Fuzz(func(t *testing.T, seed []byte, at, from uint8) {
		var b [8]byte
		copy(b[:], seed)
		checkSpreads(t, seed, int(at), int(min(from, at)), binary.LittleEndian.Uint64(b[:]))
	})
}
