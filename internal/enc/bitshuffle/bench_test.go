package bitshuffle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

func BenchmarkUntranspose(b *testing.B) {
	src := randomBytes(8192)
	dst := make([]byte, len(src))
	for _, elem := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint(elem), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Untranspose(dst, src, elem)
			}
		})
	}
}

func BenchmarkTranspose(b *testing.B) {
	src := randomBytes(8192)
	dst := make([]byte, len(src))
	for _, elem := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint(elem), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Transpose(dst, src, elem)
			}
		})
	}
}

func BenchmarkUntransposeNaive(b *testing.B) {
	src := randomBytes(8192)
	dst := make([]byte, len(src))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		naiveUntranspose(dst, src, 8)
	}
}

// samples are 64 KiB of elements: numbers that grow by small random steps, small random numbers, and random bytes.
func samples(elem int) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	grow, small := make([]byte, 65536), make([]byte, 65536)
	v := uint64(1 << 40)
	for i := 0; i < len(grow); i += elem {
		v += uint64(r.IntN(2000))
		for j := range min(elem, 8) {
			grow[i+j] = byte(v >> (8 * j))
		}
		small[i] = byte(r.IntN(100))
	}
	return map[string][]byte{"growing": grow, "small": small, "random": randomBytes(65536)}
}

func BenchmarkDecode(b *testing.B) {
	for _, elem := range []int{1, 2, 4, 8, 16} {
		for _, kind := range []string{"growing", "small", "random"} {
			b.Run(fmt.Sprintf("%d/%s", elem, kind), func(b *testing.B) {
				raw := samples(elem)[kind]
				enc := Append(nil, raw, elem)
				dst := make([]byte, len(raw))
				b.SetBytes(int64(len(raw)))
				b.ReportMetric(float64(len(raw))/float64(len(enc)), "ratio")
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Decode(dst, enc, elem); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, elem := range []int{4, 8} {
		b.Run(fmt.Sprint(elem), func(b *testing.B) {
			raw := samples(elem)["growing"]
			dst := make([]byte, 0, 2*len(raw))
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				Append(dst, raw, elem)
			}
		})
	}
}
