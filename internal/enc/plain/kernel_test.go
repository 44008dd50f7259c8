package plain

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
)

// The twins: one bit, one value at a time.

func bit(p []byte, i int) bool { return p[i/8]>>(i%8)&1 != 0 }

func setBit(p []byte, i int, v bool) {
	p[i/8] &^= 1 << (i % 8)
	if v {
		p[i/8] |= 1 << (i % 8)
	}
}

func naiveExpand(dense []byte, width, n int, valid []byte, at int) []byte {
	out := make([]byte, n*width)
	for i := range n {
		if bit(valid, at+i) {
			copy(out[i*width:(i+1)*width], dense)
			dense = dense[width:]
		}
	}
	return out
}

// bitmap returns n random bits: independent, in runs, or all equal.
func bitmap(t *rapid.T, n int) []byte {
	p := make([]byte, (n+7)/8+1)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	chance := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 1}).Draw(t, "ones")
	run := rapid.SampledFrom([]int{1, 1, 7, 70, 300}).Draw(t, "run")
	for i := 0; i < n; {
		v := r.Float64() < chance
		for m := 1 + r.IntN(run); m > 0 && i < n; m-- {
			setBit(p, i, v)
			i++
		}
	}
	return p
}

func TestBitsTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 900).Draw(t, "n")
		from, at := rapid.IntRange(0, 130).Draw(t, "from"), rapid.IntRange(0, 130).Draw(t, "at")
		// No byte more than needed: a kernel must not read beyond it.
		src := bitmap(t, from+n)[:(from+n+7)/8]
		dst := bitmap(t, at+n)[:(at+n+7)/8]
		want, ones := bytes.Clone(dst), 0
		for i := range n {
			setBit(want, at+i, bit(src, from+i))
			if bit(src, from+i) {
				ones++
			}
		}
		if got := CountBits(src, from, n); got != ones {
			t.Fatalf("CountBits = %d, want %d", got, ones)
		}
		got := bytes.Clone(dst)
		if k := CopyBits(got, at, src, from, n); k != ones || !bytes.Equal(got, want) {
			t.Fatalf("CopyBits = %d, want %d\n%x\n%x", k, ones, got, want)
		}
		v := rapid.Bool().Draw(t, "v")
		for i := range n {
			setBit(want, at+i, v)
		}
		FillBits(got, at, n, v)
		if !bytes.Equal(got, want) {
			t.Fatalf("FillBits\n%x\n%x", got, want)
		}
	})
}

func TestExpandTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, at := rapid.IntRange(0, 400).Draw(t, "n"), rapid.IntRange(0, 130).Draw(t, "at")
		width := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 12, 16, 17}).Draw(t, "width")
		valid := bitmap(t, at+n)[:(at+n+7)/8]
		k := CountBits(valid, at, n)
		data := make([]byte, n*width)
		for i := range data {
			data[i] = byte(i*7 + 1)
		}
		want := naiveExpand(bytes.Clone(data[:k*width]), width, n, valid, at)
		eachLevel(func(level string) {
			got := bytes.Clone(data)
			ExpandFixed(got, width, n, valid, at)
			if !bytes.Equal(got, want) {
				t.Fatalf("ExpandFixed, %s\n%x\n%x", level, got, want)
			}
		})
		offs, dense := make([]int32, n+1), make([]int32, k+1)
		for i := range dense {
			dense[i] = int32(100 + i*i)
		}
		copy(offs, dense)
		ExpandOffsets(offs, n, valid, at)
		for i := range n + 1 {
			if got, want := offs[i], dense[CountBits(valid, at, i)]; got != want {
				t.Fatalf("offset %d: %d, want %d", i, got, want)
			}
		}
	})
}

func TestGatherTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dict := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 30).Draw(t, "dict")
		codes := rapid.SliceOfN(rapid.Uint32Range(0, uint32(len(dict)-1)), 0, 60).Draw(t, "codes")
		slack := rapid.SampledFrom([]int{0, 3, Slack}).Draw(t, "slack")
		start := rapid.IntRange(0, 5).Draw(t, "start")
		dictOffs, dictData := []int32{0}, []byte(nil)
		for _, d := range dict {
			dictData = append(dictData, d...)
			dictOffs = append(dictOffs, int32(len(dictData)))
		}
		var want []byte
		for _, c := range codes {
			want = append(want, dict[c]...)
		}
		size, err := SizeStrings(codes, dictOffs)
		if err != nil || int(size) != len(want) {
			t.Fatalf("SizeStrings = %d, %v", size, err)
		}
		dictData = append(dictData, make([]byte, slack)...)
		offs, data := make([]int32, len(codes)+1), make([]byte, start+len(want)+slack)
		offs[0] = int32(start)
		if err := GatherStrings(offs, data, codes, dictOffs, dictData); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data[start:start+len(want)], want) {
			t.Fatalf("%q, want %q", data, want)
		}
		for i, c := range codes {
			if !bytes.Equal(data[offs[i]:offs[i+1]], dict[c]) {
				t.Fatalf("string %d: %q, want %q", i, data[offs[i]:offs[i+1]], dict[c])
			}
		}
	})
}

// Arbitrary offsets and codes: either a result or an error with its location; never a panic.
func FuzzGather(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1}, []byte{0, 3, 5, 5}, []byte("foogo"), uint8(20))
	f.Add([]byte{9}, []byte{0, 200, 5}, []byte("x"), uint8(0))
	f.Fuzz(func(t *testing.T, c, o, dict []byte, room uint8) {
		codes, dictOffs := make([]uint32, len(c)), make([]int32, len(o))
		for i, v := range c {
			codes[i] = uint32(v)
		}
		for i, v := range o {
			dictOffs[i] = int32(int8(v))
		}
		_, sizeErr := SizeStrings(codes, dictOffs)
		offs, data := make([]int32, len(codes)+1), make([]byte, room)
		err := GatherStrings(offs, data, codes, dictOffs, dict)
		for _, err := range []error{sizeErr, err} {
			var e *fault.Error
			if err != nil && (!errors.As(err, &e) || e.Reason == "") {
				t.Fatalf("%T: %v", err, err)
			}
		}
		if sizeErr != nil && err == nil {
			t.Fatal("SizeStrings returned an error, GatherStrings did not:", sizeErr)
		}
	})
}

func FuzzBits(f *testing.F) {
	f.Add([]byte{0xaa, 0x55, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, uint8(3), uint8(5), uint16(77))
	f.Fuzz(func(t *testing.T, src []byte, from, at uint8, n uint16) {
		m := min(int(n), len(src)*8-int(from))
		if m < 0 {
			return
		}
		dst := bytes.Repeat([]byte{0xc3}, (int(at)+m+7)/8)
		want, ones := bytes.Clone(dst), 0
		for i := range m {
			setBit(want, int(at)+i, bit(src, int(from)+i))
			if bit(src, int(from)+i) {
				ones++
			}
		}
		if k := CopyBits(dst, int(at), src, int(from), m); k != ones || !bytes.Equal(dst, want) {
			t.Fatalf("CopyBits = %d, want %d\n%x\n%x", k, ones, dst, want)
		}
	})
}

func benchBitmap(n int, kind string) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	p := make([]byte, n/8)
	for i := 0; i < n; {
		m, v := 1, r.IntN(100) >= 12 // "mixed": 12 % absent, one by one
		switch kind {
		case "half":
			v = r.IntN(2) == 0
		case "runs":
			m, v = 1+r.IntN(400), r.IntN(4) != 0
		case "sparse":
			v = r.IntN(100) == 0
		case "rare": // 1 % absent
			v = r.IntN(100) != 0
		}
		for ; m > 0 && i < n; m-- {
			setBit(p, i, v)
			i++
		}
	}
	return p
}

func BenchmarkExpandFixed(b *testing.B) {
	const n = 1 << 14
	for _, width := range []int{1, 2, 4, 8, 16} {
		for _, kind := range []string{"mixed", "half", "runs", "sparse", "rare"} {
			eachLevel(func(level string) {
				b.Run(fmt.Sprintf("%d/%s/%s", width, kind, level), func(b *testing.B) {
					valid, data := benchBitmap(n, kind), make([]byte, n*width)
					b.SetBytes(int64(n * width))
					for b.Loop() {
						ExpandFixed(data, width, n, valid, 0)
					}
				})
			})
		}
	}
}

func BenchmarkExpandOffsets(b *testing.B) {
	const n = 1 << 14
	for _, kind := range []string{"mixed", "runs"} {
		b.Run(kind, func(b *testing.B) {
			valid, offs := benchBitmap(n, kind), make([]int32, n+1)
			b.SetBytes(4 * n)
			for b.Loop() {
				ExpandOffsets(offs, n, valid, 0)
			}
		})
	}
}

func BenchmarkCopyBits(b *testing.B) {
	const n = 1 << 16
	src, dst := benchBitmap(n+64, "half"), make([]byte, n/8+8)
	for _, c := range [][2]int{{0, 0}, {0, 3}, {5, 3}} {
		b.Run(fmt.Sprintf("%d-%d", c[0], c[1]), func(b *testing.B) {
			b.SetBytes(n / 8)
			for b.Loop() {
				CopyBits(dst, c[0], src, c[1], n)
			}
		})
	}
}

func BenchmarkCountBits(b *testing.B) {
	const n = 1 << 16
	src := benchBitmap(n, "half")
	b.SetBytes(n / 8)
	for b.Loop() {
		CountBits(src, 0, n)
	}
}

func BenchmarkFillBits(b *testing.B) {
	dst := make([]byte, 1<<13)
	b.SetBytes(1 << 13)
	for b.Loop() {
		FillBits(dst, 0, 1<<16, true)
	}
}

func BenchmarkGatherStrings(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{6, 14, 40} {
		dictOffs, dictData := []int32{0}, []byte(nil)
		for range 1000 {
			dictData = append(dictData, make([]byte, size/2+r.IntN(size))...)
			dictOffs = append(dictOffs, int32(len(dictData)))
		}
		dictData = append(dictData, make([]byte, Slack)...)
		codes := make([]uint32, 1<<14)
		for i := range codes {
			codes[i] = uint32(r.IntN(1000))
		}
		n, _ := SizeStrings(codes, dictOffs)
		offs, data := make([]int32, len(codes)+1), make([]byte, n+Slack)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(n)
			for b.Loop() {
				if err := GatherStrings(offs, data, codes, dictOffs, dictData); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/size", size), func(b *testing.B) {
			b.SetBytes(n)
			for b.Loop() {
				SizeStrings(codes, dictOffs)
			}
		})
	}
}

// FuzzExpand compares the kernels, which access memory without bounds checks, with the twin; nothing follows data and
// valid.
func FuzzExpand(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0xb6, 0xdb, 0x6d}, 40), uint8(3), uint16(300), uint8(2))
	f.Add(bytes.Repeat([]byte{0xff, 0xff, 0xff, 0, 0, 0x0f}, 40), uint8(64), uint16(800), uint8(3))
	f.Fuzz(func(t *testing.T, valid []byte, at uint8, rows uint16, w uint8) {
		n := min(int(rows), len(valid)*8-int(at))
		if n < 0 {
			return
		}
		width := []int{1, 2, 4, 8, 16, 5}[w%6]
		valid = bytes.Clone(valid[:(int(at)+n+7)/8])
		data := make([]byte, n*width)
		for i := range data {
			data[i] = byte(i*7 + 1)
		}
		want := naiveExpand(bytes.Clone(data), width, n, valid, int(at))
		eachLevel(func(level string) {
			got := bytes.Clone(data)
			ExpandFixed(got, width, n, valid, int(at))
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: %d rows of %d\n%x\n%x", level, n, width, got, want)
			}
		})
	})
}
