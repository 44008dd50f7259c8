package rle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// onlyLevel makes k the only level of kernels until the test ends; nil means Go's loop.
func onlyLevel(t testing.TB, k *kernels) {
	all := levels
	t.Cleanup(func() { levels = all })
	levels = nil
	if k != nil {
		levels = []*kernels{k}
	}
}

// checkUnpack compares the kernels of every level, and the loop in Go, for one type with a loop over bits. It counts
// the values that each level decoded.
func checkUnpack[T uint8 | uint16 | uint32 | uint64](t testing.TB, src []byte, bit, width, n int, made map[string]int) {
	want := make([]T, n)
	for i := range want {
		for b := range width {
			at := bit + i*width + b
			want[i] |= T(src[at>>3]>>(at&7)&1) << b
		}
	}
	check := func(name string, got []T, n int) {
		if !slices.Equal(got[:n], want[:n]) {
			t.Fatalf("%s: %d values of %d bits from bit %d, as %T: differ", name, n, width, bit, want)
		}
		for _, v := range got[n:] {
			if v != 0xa5 {
				t.Fatalf("%s: %d values of %d bits from bit %d, as %T: wrote past them", name, n, width, bit, want)
			}
		}
	}
	guarded := func() []T { return slices.Repeat([]T{0xa5}, n+64) }
	for _, k := range levels {
		got := guarded()
		fast := unpackWith(k, got[:n], src, bit, width)
		check(k.name, got, fast)
		made[k.name] += fast
	}
	got := guarded()
	unpack(got[:n], src, bit, width)
	check("unpack", got, n)
	got = guarded()
	func() {
		defer func(all []*kernels) { levels = all }(levels)
		levels = nil
		unpack(got[:n], src, bit, width)
	}()
	check("Go", got, n)
}

func checkUnpacks(t testing.TB, src []byte, bit, width int, made map[string]int) {
	n := (8*len(src) - bit) / max(1, width)
	if width < 8 {
		checkUnpack[uint8](t, src, bit, width, n, made)
	}
	if width < 16 {
		checkUnpack[uint16](t, src, bit, width, n, made)
	}
	if width < 32 {
		checkUnpack[uint32](t, src, bit, width, n, made)
	}
	checkUnpack[uint64](t, src, bit, width, n, made)
}

func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	made := map[string]int{}
	for width := 1; width < 64; width++ {
		for _, size := range []int{100, 63 + 16*width, 64 + 16*width, 1500} {
			src := make([]byte, size)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			for bit := range 9 {
				checkUnpacks(t, src, bit, width, made)
			}
			checkUnpacks(t, src, r.IntN(20), width, made)
		}
	}
	for _, k := range levels {
		if made[k.name] == 0 {
			t.Errorf("%s decoded no values", k.name)
		}
	}
	t.Log("values decoded:", made)
}

func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 300), uint8(3), uint8(7))
	f.Fuzz(func(t *testing.T, src []byte, bit, width uint8) {
		if len(src) > 4 {
			checkUnpacks(t, src, int(bit%16), 1+int(width)%63, map[string]int{})
		}
	})
}

// BenchmarkUnpack: 64 Ki values on each level, and in Go.
func BenchmarkUnpack(b *testing.B) {
	for _, width := range []int{1, 3, 7, 11, 17, 25, 30} {
		src := make([]byte, 1<<16*width/8)
		for i := range src {
			src[i] = byte(i * 7)
		}
		for _, k := range append(slices.Clone(levels), nil) {
			name := "Go"
			if k != nil {
				name = k.name
			}
			b.Run(fmt.Sprintf("%d to 32/%s", width, name), func(b *testing.B) {
				onlyLevel(b, k)
				dst := make([]uint32, 1<<16)
				b.SetBytes(1 << 18)
				for b.Loop() {
					unpack(dst, src, 0, width)
				}
			})
		}
	}
}
