package bitshuffle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// checkPairs compares every assembly kernel that this machine supports with its twin in Go, in both directions, and
// checks that it does not write past dst.
func checkPairs(t testing.TB, data []byte) {
	for i := range pairs {
		p := &pairs[i]
		n := len(data) / p.elem &^ 7
		if n < p.minElems {
			continue
		}
		src := data[:n*p.elem]
		for dir, f := range []func(dst, src *byte, n int, tmp *[8192]byte){p.un, p.to} {
			want, got := make([]byte, len(src)), bytes.Repeat([]byte{0xa5}, len(src)+64)
			if dir == 0 {
				untranspose(want, src, p.elem, n)
			} else {
				transpose(want, src, p.elem, n)
			}
			f(unsafe.SliceData(got), unsafe.SliceData(src), n, new([8192]byte))
			if !bytes.Equal(got[:len(src)], want) {
				t.Fatalf("pair %d, direction %d, %d elements of %d bytes: differs from the twin", i, dir, n, p.elem)
			}
			if !bytes.Equal(got[len(src):], bytes.Repeat([]byte{0xa5}, 64)) {
				t.Fatalf("pair %d, direction %d, %d elements of %d bytes: wrote past the end of dst", i, dir, n, p.elem)
			}
		}
	}
}

func TestPairs(t *testing.T) {
	if len(pairs) == 0 {
		t.Skip("this machine, or this build, has no kernels in assembly")
	}
	for n := 256; n <= 9000; n += 8 + n/7&^7 {
		checkPairs(t, randomBytes(n))
		checkPairs(t, randomBytes(n*16))
	}
}

func FuzzPairs(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(4096))
	f.Fuzz(func(t *testing.T, seed []byte, size uint16) {
		data := make([]byte, size)
		r := rand.New(rand.NewPCG(uint64(len(seed)), 7))
		for i := range data {
			if data[i] = byte(r.Uint32()); len(seed) > 0 {
				data[i] &= seed[i%len(seed)]
			}
		}
		checkPairs(t, data)
	})
}

func BenchmarkPairs(b *testing.B) {
	src, dst := randomBytes(8192), make([]byte, 8192)
	tmp := new([8192]byte)
	for i := range pairs {
		p := &pairs[i]
		for dir, f := range []func(dst, src *byte, n int, tmp *[8192]byte){p.un, p.to} {
			b.Run(fmt.Sprintf("%s%d/%d", []string{"un", "to"}[dir], p.elem, p.minElems), func(b *testing.B) {
				b.SetBytes(8192)
				for b.Loop() {
					f(unsafe.SliceData(dst), unsafe.SliceData(src), 8192/p.elem, tmp)
				}
			})
		}
	}
}
