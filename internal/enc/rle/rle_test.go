package rle

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
)

// encodings by hand. The values are written as digits, "3*100" repeats.
var byHand = []struct {
	name  string
	width int
	hex   string
	vals  string
}{
	{"the package comment", 1, "c80101c80100055503", "1*100 0*100 1 0 1 0 1 0 1 0 1 1"},
	{"200 alternating (Kudu's rle-encoding.h: 26 bytes)", 1, "33" + strings.Repeat("aa", 25),
		strings.Repeat("0 1 ", 100)},
	{"one value", 1, "0201", "1"},
	{"two values", 1, "0302", "0 1"},
	{"seven equal values", 8, "0e05", "5*7"},
	{"packed, then a run: the run begins with a group", 8, "03" + "0102020202020202" + "1202", "1 2*16"},
	{"other values after a run", 8, "1402" + "0203", "2*10 3"},
	{"a run of 32-bit values", 32, "10" + "78563412", "305419896*8"},
	{"the last group is cut", 16, "03" + "010002000300", "1 2 3"},
	{"3 bits", 3, "03" + "88c6fa", "0 1 2 3 4 5 6 7"},
	{"12 bits", 12, "03" + "bc3a12", "2748 291"},
	{"64 groups: two packed runs", 1, "7f" + strings.Repeat("aa", 63) + "03aa", strings.Repeat("0 1 ", 256)},
	{"nothing", 1, "", ""},
}

func parse(s string) (out []uint64) {
	for _, f := range strings.Fields(s) {
		var v uint64
		n := 1
		if strings.Contains(f, "*") {
			fmt.Sscanf(f, "%d*%d", &v, &n)
		} else {
			fmt.Sscanf(f, "%d", &v)
		}
		for range n {
			out = append(out, v)
		}
	}
	return out
}

func TestByHand(t *testing.T) {
	for _, c := range byHand {
		t.Run(c.name, func(t *testing.T) {
			src, _ := hex.DecodeString(c.hex)
			want := parse(c.vals)
			got := make([]uint64, len(want))
			if err := DecodeInts(got, src, c.width, 0); err != nil {
				t.Fatal(err)
			}
			e := NewEncoder(c.width)
			for i, v := range want {
				if got[i] != v {
					t.Fatalf("value %d: %d, want %d", i, got[i], v)
				}
				e.Put(v)
			}
			if e.Len() != len(src) {
				t.Errorf("Len %d, want %d", e.Len(), len(src))
			}
			if out := e.Finish(); !bytes.Equal(out, src) {
				t.Errorf("encoded as %x, want %s", out, c.hex)
			}
		})
	}
}

// naive reads value by value and ends where the input does, like Kudu's RleDecoder::Get; ok is false after damage.
func naive(src []byte, width, n int) (out []uint64, ok bool) {
	for at := 0; len(out) < n; {
		head, k := binary.Uvarint(src[at:min(len(src), at+5)])
		if k <= 0 || head > math.MaxUint32 || head < 2 {
			return out, false
		}
		at += k
		if head&1 == 0 {
			size := (width + 7) / 8
			if at+size > len(src) {
				return out, false
			}
			var v [8]byte
			copy(v[:], src[at:at+size])
			x := binary.LittleEndian.Uint64(v[:])
			if width < 64 && x>>width != 0 {
				return out, false
			}
			at += size
			for i := uint64(0); i < head>>1 && len(out) < n; i++ {
				out = append(out, x)
			}
			continue
		}
		for i := 0; i < int(head>>1)*8 && len(out) < n; i++ {
			var x uint64
			for j := range width {
				bit := i*width + j
				if at+bit/8 >= len(src) {
					return out, false
				}
				x |= uint64(src[at+bit/8]>>(bit%8)&1) << j
			}
			out = append(out, x)
		}
		at += int(head>>1) * width
		if at > len(src) && len(out) < n {
			return out, false
		}
	}
	return out, true
}

type tb interface {
	Helper()
	Fatalf(string, ...any)
}

func check(t tb, src []byte, width, skip, n, at int) {
	t.Helper()
	want, ok := naive(src, width, skip+n)
	classed := func(err error) {
		t.Helper()
		var e *fault.Error
		if (err == nil) != ok {
			t.Fatalf("width %d, skip %d, n %d: %v; twin %v", width, skip, n, err, ok)
		}
		if err != nil && (!errors.As(err, &e) || e.Class != fault.Corrupt || e.Path == "" || e.Reason == "") {
			t.Fatalf("%T %v", err, err)
		}
	}
	if width <= 8 {
		decode[uint8](t, src, width, skip, n, want, classed)
	}
	if width <= 16 {
		decode[uint16](t, src, width, skip, n, want, classed)
	}
	if width <= 32 {
		decode[uint32](t, src, width, skip, n, want, classed)
	}
	decode[uint64](t, src, width, skip, n, want, classed)
	if width > 1 {
		return
	}
	dst := bytes.Repeat([]byte{0x5a}, (at+n+7)/8)
	ones, err := DecodeBits(dst, at, src, skip, n)
	classed(err)
	count, err := CountBits(src, skip, n)
	classed(err)
	if !ok {
		return
	}
	sum := 0
	for i := range len(dst) * 8 {
		v := uint64(0x5a >> (i % 8) & 1)
		if i >= at && i < at+n {
			v = want[skip+i-at]
			sum += int(v)
		}
		if uint64(dst[i/8]>>(i%8)&1) != v {
			t.Fatalf("bit %d of %x is wrong, want %d", i, dst, v)
		}
	}
	if ones != sum || count != sum {
		t.Fatalf("DecodeBits counts %d ones, CountBits %d, want %d", ones, count, sum)
	}
}

func decode[T uint8 | uint16 | uint32 | uint64](t tb, src []byte, width, skip, n int, want []uint64,
	classed func(error)) {
	t.Helper()
	got := make([]T, n)
	err := DecodeInts(got, src, width, skip)
	classed(err)
	for i, v := range got {
		if err == nil && uint64(v) != want[skip+i] {
			t.Fatalf("width %d: value %d is %d, want %d", width, skip+i, v, want[skip+i])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.OneOf(rapid.Just(1), rapid.SampledFrom([]int{8, 16, 32, 64}), rapid.IntRange(1, 64)).Draw(t,
			"width")
		top := ^uint64(0) >> (64 - width)
		e, f := NewEncoder(width), NewEncoder(width)
		e.Put(1)
		e.Reset()
		var want []uint64
		for range rapid.IntRange(0, 40).Draw(t, "runs") {
			v := rapid.Uint64Range(0, top).Draw(t, "v")
			n := rapid.SampledFrom([]int{1, 1, 1, 2, 7, 8, 9, 15, 16, 17, 64, 500}).Draw(t, "n")
			e.PutRun(v, n)
			for range n {
				f.Put(v)
				want = append(want, v)
			}
			if e.Len() != f.Len() || e.Written() != f.Written() {
				t.Fatalf("PutRun: %d, Put: %d", e.Len(), f.Len())
			}
		}
		n := e.Len()
		src := bytes.Clone(e.Finish())
		if n != len(src) || !bytes.Equal(src, f.Finish()) {
			t.Fatalf("Len %d, but Finish returns %d bytes, or not those of Put", n, len(src))
		}
		got, ok := naive(src, width, len(want))
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("the twin reads %v, want %v", got, want)
		}
		skip := rapid.IntRange(0, len(want)).Draw(t, "skip")
		check(t, src, width, skip, rapid.IntRange(0, len(want)-skip).Draw(t, "len"),
			rapid.IntRange(0, 70).Draw(t, "at"))
		check(t, src, width, skip, len(want)-skip, 0)
		check(t, src, width, skip, len(want)-skip+64, 3)
	})
}

func FuzzDecode(f *testing.F) {
	for _, c := range byHand {
		src, _ := hex.DecodeString(c.hex)
		f.Add(src, uint8(c.width-1), uint16(0), uint16(len(parse(c.vals))), uint8(3))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}, uint8(0), uint16(1), uint16(9), uint8(0))
	f.Add([]byte{0xfe, 0xff, 0xff, 0xff, 0x0f, 1}, uint8(0), uint16(1), uint16(900), uint8(0))
	f.Fuzz(func(t *testing.T, src []byte, width uint8, skip, n uint16, at uint8) {
		check(t, src, int(width%64)+1, int(skip), int(n), int(at))
	})
}

// FuzzEncode: encoded values are decoded unchanged, and Len is the length of Finish's result.
func FuzzEncode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4}, uint8(7))
	f.Add(bytes.Repeat([]byte{1, 0}, 300), uint8(0))
	f.Fuzz(func(t *testing.T, vals []byte, w uint8) {
		width := int(w%64) + 1
		e := NewEncoder(width)
		var want []uint64
		for _, v := range vals {
			x := (uint64(v) * 0x0101010101010101) & (^uint64(0) >> (64 - width))
			e.Put(x)
			want = append(want, x)
		}
		n := e.Len()
		src := e.Finish()
		if got, ok := naive(src, width, len(want)); n != len(src) || !ok || !slices.Equal(got, want) {
			t.Fatalf("Len %d, Finish returns %d bytes, decoded as %v", n, len(src), got)
		}
	})
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		hex   string
		width int
		want  string
	}{
		{"", 1, "[0+1]: corrupt: run[0].header: the input ends"},
		{"0201", 1, "[2+1]: corrupt: run[1].header: the input ends"},
		{"020180", 1, "[2+2]: corrupt: run[1].header: the input ends"},
		{"00", 1, "[0+1]: corrupt: run[0].header: a run of no values"},
		{"01", 1, "[0+1]: corrupt: run[0].header: a run of no values"},
		{"ffffffff1f", 1, "[0+5]: corrupt: run[0].header: a varint of more than 32 bits"},
		{"04", 1, "[1+1]: corrupt: run[0].value: 1 bytes, 0 are left"},
		{"0402", 1, "[1+1]: corrupt: run[0].value: 0x2 in 1 bits"},
		{"04010203", 32, "[1+4]: corrupt: run[0].value: 4 bytes, 3 are left"},
		{"03010203", 32, "[1+3]: corrupt: run[0].values: none of the 8 values of 32 bits is there"},
	} {
		src, _ := hex.DecodeString(c.hex)
		err := DecodeInts(make([]uint64, 3), src, c.width, 0)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.hex, err, c.want)
		}
	}
	if DecodeInts(make([]uint8, 1), []byte{2, 1}, 9, 0) == nil {
		t.Error("no error for 9 bits in a uint8")
	}
	if _, err := DecodeBits(make([]byte, 1), 5, []byte{20, 1}, 0, 4); err == nil {
		t.Error("no error for bits past the end of dst")
	}
}

// A run of Kudu's maximum size, and a run longer by one.
func TestLongRun(t *testing.T) {
	e := NewEncoder(8)
	e.PutRun(7, maxRun+2)
	n, err := CountBits(nil, 0, 0)
	if n != 0 || err != nil {
		t.Error(n, err)
	}
	src := e.Finish()
	if got := hex.EncodeToString(src); got != "feffffff07"+"07"+"04"+"07" {
		t.Errorf("encoded as %s", got)
	}
	got := make([]uint8, 2)
	if err := DecodeInts(got, src, 8, maxRun); err != nil || got[0] != 7 || got[1] != 7 {
		t.Error(got, err)
	}
	if err := DecodeInts(got, src, 8, maxRun+1); err == nil {
		t.Error("no error for one value too many")
	}
}

// bench encodes n values: bits that are 1 with some probability, or numbers in runs.
func bench(n, width int, kind string) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	e := NewEncoder(width)
	for i := 0; i < n; {
		v, m := r.Uint64(), 1
		switch kind {
		case "12%null":
			v = uint64(min(r.IntN(100)/12, 1))
		case "1%null":
			v = uint64(min(r.IntN(100), 1))
		case "runs":
			m = 1 + r.IntN(200)
		case "short":
			m = 1 + r.IntN(24)
		}
		m = min(m, n-i)
		e.PutRun(v, m)
		i += m
	}
	return e.Finish()
}

func BenchmarkDecodeBits(b *testing.B) {
	const n = 1 << 14
	for _, kind := range []string{"12%null", "1%null", "half", "short", "runs"} {
		src, dst := bench(n, 1, kind), make([]byte, n/8)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(n / 8)
			for b.Loop() {
				if _, err := DecodeBits(dst, 0, src, 0, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchInts[T uint8 | uint16 | uint32 | uint64](b *testing.B, size, width int) {
	const n = 1 << 14
	for _, kind := range []string{"short", "runs", "literal"} {
		src, dst := bench(n, width, kind), make([]T, n)
		b.Run(fmt.Sprintf("%d in %d/%s", width, size, kind), func(b *testing.B) {
			b.SetBytes(int64(n * size))
			for b.Loop() {
				if err := DecodeInts(dst, src, width, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeInts(b *testing.B) {
	benchInts[uint8](b, 1, 8)
	benchInts[uint16](b, 2, 16)
	benchInts[uint32](b, 4, 32)
	benchInts[uint64](b, 8, 64)
	benchInts[uint32](b, 4, 5)
	benchInts[uint32](b, 4, 17)
}

func BenchmarkEncode(b *testing.B) {
	const n = 1 << 14
	for _, width := range []int{1, 32} {
		vals := make([]uint64, n)
		if err := DecodeInts(vals, bench(n, width, "short"), width, 0); err != nil {
			b.Fatal(err)
		}
		e := NewEncoder(width)
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			b.SetBytes(int64(n * width / 8))
			for b.Loop() {
				e.Reset()
				for _, v := range vals {
					e.Put(v)
				}
				e.Finish()
			}
		})
	}
}
