package groupvarint

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
)

// Groups by hand.
var byHand = []struct {
	hex  string
	vals [4]uint32
}{
	{"0001020304", [4]uint32{1, 2, 3, 4}},
	{"1bff" + "0002" + "000003" + "00000004", [4]uint32{0xff, 0x200, 0x30000, 0x4000000}},
	{"e4" + "00000004" + "000003" + "0002" + "ff", [4]uint32{0x4000000, 0x30000, 0x200, 0xff}},
	{"55" + "0001" + "0101" + "ffff" + "3412", [4]uint32{0x100, 0x101, 0xffff, 0x1234}},
	{"aa" + "000001" + "563412" + "ffffff" + "010002", [4]uint32{0x10000, 0x123456, 0xffffff, 0x20001}},
	{"ff" + "00000001" + "00000080" + "ffffffff" + "78563412", [4]uint32{1 << 24, 1 << 31, 1<<32 - 1, 0x12345678}},
	{"0000ff7f00", [4]uint32{0, 255, 127, 0}},
}

func TestByHand(t *testing.T) {
	for _, c := range byHand {
		src, _ := hex.DecodeString(c.hex)
		v, used, err := Decode4(src)
		if err != nil || v != c.vals || used != len(src) {
			t.Errorf("Decode4(%s) = %x, %d, %v", c.hex, v, used, err)
		}
		if v, used, err = Decode4(append(src, make([]byte, 40)...)); err != nil || v != c.vals || used != len(src) {
			t.Errorf("Decode4(%s…) = %x, %d, %v", c.hex, v, used, err)
		}
		if got := Append4(nil, c.vals[0], c.vals[1], c.vals[2], c.vals[3]); !bytes.Equal(got, src) {
			t.Errorf("Append4(%x) = %x, want %s", c.vals, got, c.hex)
		}
		for cut := range src {
			if _, _, err := Decode4(src[:cut]); err == nil {
				t.Errorf("%s cut at %d: no error", c.hex, cut)
			}
		}
	}
}

// naive reads value by value.
func naive(src []byte, n int) (out []uint32, used int, ok bool) {
	for at := 0; len(out) < n; at = used {
		if at >= len(src) {
			return nil, 0, false
		}
		tag := src[at]
		used = at + 1
		for i := range 4 {
			size := int(tag>>(6-2*i)&3) + 1
			if used+size > len(src) {
				return nil, 0, false
			}
			var v uint32
			for j := range size {
				v |= uint32(src[used+j]) << (8 * j)
			}
			out = append(out, v)
			used += size
		}
	}
	return out[:n], used, true
}

func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, src []byte, n int, base int32, limit uint32) {
	t.Helper()
	want, wantUsed, ok := naive(src, n)
	got := make([]uint32, n)
	used, err := Decode(got, src)
	if (err == nil) != ok || ok && (used != wantUsed || !slices.Equal(got, want)) {
		t.Fatalf("Decode = %v, %d, %v; twin %v, %d", got, used, err, want, wantUsed)
	}
	offs := make([]int32, n)
	used, offErr := DecodeOffsets(offs, src, base, limit)
	for _, err := range []error{err, offErr} {
		var e *fault.Error
		if err != nil && (!errors.As(err, &e) || e.Class != fault.Corrupt || e.Path == "" || e.Reason == "") {
			t.Fatalf("%T %v", err, err)
		}
	}
	good := ok && slices.IsSorted(want)
	for _, v := range want {
		good = good && v <= limit && int64(base)+int64(v) <= math.MaxInt32
	}
	if good != (offErr == nil) {
		t.Fatalf("DecodeOffsets(%v, %d, %d): %v", want, base, limit, offErr)
	}
	for i, v := range want {
		if good && (int64(offs[i]) != int64(base)+int64(v) || used != wantUsed) {
			t.Fatalf("offset %d: %d, want %d+%d; used %d", i, offs[i], base, v, used)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 31).Draw(t, "shift")
		vals := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint32 {
			return rapid.Uint32().Draw(t, "v") >> shift >> rapid.IntRange(0, 3).Draw(t, "less")
		}), 0, 60).Draw(t, "vals")
		if rapid.IntRange(0, 3).Draw(t, "sort") > 0 {
			slices.Sort(vals)
		}
		src := Append(nil, vals)
		got, used, ok := naive(src, len(vals))
		if !ok || used != len(src) || !slices.Equal(got, vals) {
			t.Fatalf("the twin reads %v, want %v", got, vals)
		}
		limit := rapid.SampledFrom([]uint32{math.MaxUint32, 1 << 31, 1 << 16, 100}).Draw(t, "limit")
		base := rapid.SampledFrom([]int32{0, -12, 1000, math.MaxInt32 - 5, math.MinInt32}).Draw(t, "base")
		check(t, append(src, make([]byte, rapid.IntRange(0, 20).Draw(t, "more"))...), len(vals), base, limit)
		check(t, src, len(vals)+4, base, limit)
	})
}

func FuzzDecode(f *testing.F) {
	for _, c := range byHand {
		src, _ := hex.DecodeString(c.hex)
		f.Add(src, uint8(4), int32(0), uint32(math.MaxUint32))
	}
	f.Add(Append(nil, []uint32{12, 300, 300, 70000, 1 << 24}), uint8(5), int32(-12), uint32(1<<24))
	f.Fuzz(func(t *testing.T, src []byte, n uint8, base int32, limit uint32) { check(t, src, int(n), base, limit) })
}

func TestErrors(t *testing.T) {
	offs := make([]int32, 5)
	for _, c := range []struct {
		vals  []uint32
		limit uint32
		base  int32
		want  string
	}{
		{[]uint32{1, 2, 3, 4, 3}, 10, 0, "[5+5]: corrupt: offset[4]: 3 after 4"},
		{[]uint32{1, 2, 3, 4, 11}, 10, 0, "[5+5]: corrupt: offset[4]: 11 is above 10"},
		{[]uint32{9, 2, 3, 4, 5}, 10, 0, "[0+5]: corrupt: offset[1]: 2 after 9"},
		{[]uint32{0, 0, 0, 0, 1 << 31}, 1<<32 - 1, 0, "[5+8]: corrupt: offset[4]: 2147483648 is above 2147483647"},
		{[]uint32{0, 0, 0, 0, 256}, 1<<32 - 1, math.MaxInt32 - 255, "[5+6]: corrupt: offset[4]: 256 is above 255"},
	} {
		_, err := DecodeOffsets(offs, Append(nil, c.vals), c.base, c.limit)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.vals, err, c.want)
		}
	}
	_, err := DecodeOffsets(offs, []byte{0, 1, 2, 3, 4, 0x55, 1}, 0, 100)
	if err == nil || err.Error() != "[5+9]: corrupt: group[1]: 9 bytes long, 2 are left" {
		t.Error(err)
	}
}

func BenchmarkDecodeOffsets(b *testing.B) {
	for _, c := range []struct {
		name string
		step int
		n    int
	}{{"32KiB", 14, 2300}, {"1MiB", 200, 5000}, {"mixed", 90, 700}} {
		r := rand.New(rand.NewPCG(1, 2))
		vals, v := make([]uint32, c.n), uint32(12)
		for i := range vals {
			if vals[i] = v; c.name == "mixed" && i%3 == 0 {
				vals[i] = uint32(r.Uint64() >> (34 + r.IntN(24)))
			}
			v += uint32(r.IntN(2 * c.step))
		}
		if c.name == "mixed" {
			slices.Sort(vals)
		}
		src, dst := Append(nil, vals), make([]int32, len(vals))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(vals)))
			for b.Loop() {
				if _, err := DecodeOffsets(dst, src, 0, math.MaxInt32); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/append", func(b *testing.B) {
			b.SetBytes(int64(4 * len(vals)))
			for b.Loop() {
				src = Append(src[:0], vals)
			}
		})
	}
	vals := make([]uint32, 4096)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range vals {
		vals[i] = r.Uint32() >> (8 * r.IntN(4))
	}
	src := Append(nil, vals)
	b.Run("any", func(b *testing.B) {
		b.SetBytes(int64(4 * len(vals)))
		for b.Loop() {
			if _, err := Decode(vals, src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
