package zigzag

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// twin is a kernel written in Go: all groups of eight in 64 bytes, and so on, while 64 bytes begin at last or before.
func twin[T int32 | int64](dst []T, src []byte, groups, last, most, bits int) (done, used int) {
	for done < groups && used <= last {
		from := used
		for done < groups {
			pos := used
			for i := range 8 {
				v, k := binary.Uvarint(src[pos:])
				if k <= 0 || k > most || v>>(bits-1)>>1 != 0 {
					return done, used
				}
				dst[8*done+i] = T(v>>1) ^ -T(v&1)
				pos += k
			}
			if pos > from+64 {
				break
			}
			done, used = done+1, pos
		}
	}
	return done, used
}

// check compares the kernels of every level with their twins, and counts how often each ran.
func check(t testing.TB, src []byte, groups int, ran map[string]int) {
	last := len(src) - 64
	if last < 0 {
		return
	}
	in := append(slices.Clone(src), 0x5a)[:len(src)] // a copy that can grow no further into another buffer
	for _, l := range levels {
		ran[l.name]++
		const guard = -0x5a5a5a
		ints, longs := slices.Repeat([]int32{guard}, 8*groups+16), slices.Repeat([]int64{guard}, 8*groups+16)
		wantInts, wantLongs := slices.Clone(ints), slices.Clone(longs)
		done, used := l.ints((*byte)(unsafe.Pointer(&ints[0])), &in[0], groups, last)
		wantDone, wantUsed := twin(wantInts, src, groups, last, 5, 32)
		if done != wantDone || used != wantUsed || !slices.Equal(ints[:8*done], wantInts[:8*done]) ||
			ints[8*groups] != guard {
			t.Fatalf("%s: ints of %x: got %d groups in %d bytes, want %d in %d\n%v\n%v", l.name, src, done, used,
				wantDone, wantUsed, ints, wantInts)
		}
		done, used = l.longs((*byte)(unsafe.Pointer(&longs[0])), &in[0], groups, last)
		wantDone, wantUsed = twin(wantLongs, src, groups, last, 8, 64)
		if done != wantDone || used != wantUsed || !slices.Equal(longs[:8*done], wantLongs[:8*done]) ||
			longs[8*groups] != guard {
			t.Fatalf("%s: longs of %x: got %d groups in %d bytes, want %d in %d\n%v\n%v", l.name, src, done, used,
				wantDone, wantUsed, longs, wantLongs)
		}
	}
}

func TestKernels(t *testing.T) {
	ran, r := map[string]int{}, rand.New(rand.NewPCG(5, 6))
	for _, most := range []int{1, 7, 8, 14, 21, 28, 30, 31, 32, 33, 35, 36, 49, 55, 56, 57, 63, 64} {
		for range 200 {
			var src []byte
			for range r.IntN(200) {
				src = binary.AppendUvarint(src, r.Uint64()>>(64-r.IntN(most)-1))
				if r.IntN(100) == 0 {
					src = append(src, 0x80+byte(r.IntN(2)), 0x80, 0) // over-long
				}
			}
			check(t, append(src, make([]byte, r.IntN(70))...), r.IntN(40), ran)
		}
	}
	for name, n := range ran {
		t.Logf("%s ran %d times", name, n)
	}
	if len(ran) == 0 {
		t.Skip("this processor has no kernel")
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(make([]byte, 100), 9)
	f.Add([]byte("\x80\x01\x80\x80\x01\x80\x80\x80\x01\x80\x80\x80\x80\x01"+
		"\x80\x80\x80\x80\x80\x01\x80\x80\x80\x80\x80\x80\x01\x80\x80\x80\x80\x80\x80\x80\x01"+
		"\xff\xff\xff\xff\x0f\xff\xff\xff\xff\x1f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x04\x06\x08\x0a"), 3)
	f.Fuzz(func(t *testing.T, src []byte, groups int) { check(t, src, groups&63, map[string]int{}) })
}

func BenchmarkInts(b *testing.B) {
	for _, bits := range []int{7, 14, 17, 28} {
		var src []byte
		for i := range 1 << 16 {
			src = binary.AppendUvarint(src, uint64(i)*0x9E3779B97F4A7C15>>(64-bits))
		}
		src = append(src, make([]byte, 64)...)
		dst := make([]int32, 1<<16)
		b.Run(fmt.Sprint(bits, " bits"), func(b *testing.B) {
			for b.Loop() {
				if n, _ := Ints(dst, src); n != len(dst) {
					b.Skip("this processor has no kernel")
				}
			}
		})
	}
}
