package rle

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// checkUnpack holds the kernels of one type against a loop over bits.
func checkUnpack[T uint8 | uint16 | uint32 | uint64](t testing.TB, src []byte, bit, width, n int) (fast int) {
	got, want := make([]T, n), make([]T, n)
	for i := range want {
		for b := range width {
			at := bit + i*width + b
			want[i] |= T(src[at>>3]>>(at&7)&1) << b
		}
	}
	if n >= few {
		fast = unpackFast(got, src, bit, width)
	}
	unpack(got, src, bit, width)
	if !slices.Equal(got, want) {
		t.Fatalf("%d values of %d bits from bit %d, as %T: differ", n, width, bit, want)
	}
	return fast
}

func checkUnpacks(t testing.TB, src []byte, bit, width int) (fast int) {
	n := (8*len(src) - bit) / max(1, width)
	if width < 8 {
		fast += checkUnpack[uint8](t, src, bit, width, n)
	}
	if width < 16 {
		fast += checkUnpack[uint16](t, src, bit, width, n)
	}
	if width < 32 {
		fast += checkUnpack[uint32](t, src, bit, width, n)
	}
	return fast + checkUnpack[uint64](t, src, bit, width, n)
}

func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fast := 0
	for width := 1; width < 64; width++ {
		for _, size := range []int{100, 63 + 16*width, 64 + 16*width, 1500} {
			src := make([]byte, size)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			fast += checkUnpacks(t, src, r.IntN(20), width)
		}
	}
	if fast == 0 {
		t.Log("this machine, or this build, has no kernels in assembly: only Go's loop was tested")
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 300), uint8(3), uint8(7))
	f.Fuzz(func(t *testing.T, src []byte, bit, width uint8) {
		if len(src) > 4 {
			checkUnpacks(t, src, int(bit%16), 1+int(width)%63)
		}
	})
}
