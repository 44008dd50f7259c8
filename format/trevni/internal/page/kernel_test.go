package page

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
)

// naive decodes a zig-zag varint as Avro specifies it.
func naive(b []byte) (v int64, n int) {
	u, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, n
	}
	return int64(u>>1) ^ -int64(u&1), n
}

func TestVarints(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		n := r.IntN(40)
		var b []byte
		var longs []int64
		var ints []int32
		var c []byte
		for range n {
			v := int64(r.Uint64()) >> r.IntN(64)
			if r.IntN(30) == 0 {
				v = []int64{math.MinInt64, math.MaxInt64, 0, -1}[r.IntN(4)]
			}
			b, longs = layout.AppendLong(b, v), append(longs, v)
			w := int32(v)
			c, ints = layout.AppendLong(c, int64(w)), append(ints, w)
		}
		got := make([]int64, n)
		if used, err := decodeLongs(got, b); err != nil || used != len(b) || !slices.Equal(got, longs) {
			t.Fatalf("%x: %v %v, want %v", b, got, err, longs)
		}
		got32 := make([]int32, n)
		if used, err := decodeInts(got32, c); err != nil || used != len(c) || !slices.Equal(got32, ints) {
			t.Fatalf("%x: %v %v, want %v", c, got32, err, ints)
		}
		if k := skipVarints(b, n); k != len(b) {
			t.Fatalf("%x: %d varints take %d", b, n, k)
		}
		if n > 0 {
			if _, err := decodeLongs(got, b[:len(b)-1]); err == nil {
				t.Fatalf("%x: cut, and no error", b)
			}
			if skipVarints(b[:len(b)-1], n) != -1 {
				t.Fatalf("%x: cut, and skipped", b)
			}
		}
	}
	for _, c := range []struct {
		b    []byte
		want int64 // -1: damage
	}{{[]byte{0x82, 0x80, 0x80, 0x80, 0x00}, 1}, {[]byte{0x82, 0x80, 0x80, 0x80, 0x80, 0x00}, -1},
		{[]byte{0xfe, 0xff, 0xff, 0xff, 0x0f}, math.MaxInt32}, {[]byte{0x80, 0x80, 0x80, 0x80, 0x10}, -1}} {
		for _, pad := range []int{0, 10} {
			got := make([]int32, 1)
			_, err := decodeInts(got, append(slices.Clone(c.b), make([]byte, pad)...))
			if c.want == -1 != (err != nil) || err == nil && int64(got[0]) != c.want {
				t.Errorf("%x: %d, %v", c.b, got[0], err)
			}
		}
	}
}

// TestWrongValue: an error names the value's number in the block and its position, wherever the kernel started.
func TestWrongValue(t *testing.T) {
	for _, at := range []int{0, 7, 64, 150, 199} {
		var b []byte
		place := 0
		for i := range 200 {
			if i == at {
				place = len(b)
				b = append(b, bytes.Repeat([]byte{0xff}, 11)...)
			}
			b = layout.AppendLong(b, int64(i)*1000)
		}
		want := fmt.Sprintf("value %d: expected a varint", at)
		if used, err := decodeLongs(make([]int64, 200), b); err == nil || !strings.Contains(err.Error(), want) ||
			used != place {
			t.Errorf("longs: %v at %d, want %s at %d", err, used, want, place)
		}
		if used, err := decodeInts(make([]int32, 200), b); err == nil || !strings.Contains(err.Error(), want) ||
			used != place {
			t.Errorf("ints: %v at %d, want %s at %d", err, used, want, place)
		}
	}
}

// TestRuns: the run-length coding of lengths, as the notes on Avro's code describe it.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		v, of int64
		n     int
	}{{-1, 0, 2}, {-2, 1, 2}, {-3, 0, 3}, {-4, 1, 3}, {-2001, 0, 1002}} {
		a := Arrays{Type: layout.Null, Bytes: layout.AppendLong(nil, c.v)}
		lengths := make([]int32, c.n)
		if s, err := a.Split(lengths, nil); err != nil || a.Pos != len(a.Bytes) || a.Run != 0 ||
			s.count != int64(c.n)*c.of {
			t.Errorf("%d: %v, %d left", c.v, err, a.Run)
		}
		for _, l := range lengths {
			if int64(l) != c.of {
				t.Errorf("%d: %v", c.v, lengths)
			}
		}
	}
}

// FuzzVarints compares the kernels with the naive decoder.
func FuzzVarints(f *testing.F) {
	f.Add([]byte{1, 2, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, uint8(4))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		var want []int64
		pos := 0
		for len(want) < int(n) {
			v, k := naive(b[pos:])
			if k <= 0 {
				break
			}
			want = append(want, v)
			pos += k
		}
		got := make([]int64, n)
		used, err := decodeLongs(got, b)
		if (err == nil) != (len(want) == int(n)) || err == nil && (used != pos || !slices.Equal(got, want)) {
			t.Errorf("%x: %v %d %v, want %v %d", b, got, used, err, want, pos)
		}
		ints := make([]int32, n)
		if _, err := decodeInts(ints, b); err == nil {
			for i, v := range want {
				if int64(ints[i]) != v {
					t.Errorf("%x: %v, want %v", b, ints, want)
				}
			}
		}
	})
}

// FuzzArrays: for any bytes of lengths and values, the result is entries or an error.
func FuzzArrays(f *testing.F) {
	f.Add([]byte{3, 2, 5, 0}, uint8(3), uint16(4))
	f.Fuzz(func(t *testing.T, b []byte, typ uint8, n uint16) {
		a := Arrays{Type: layout.Type(typ) % (layout.Bytes + 1), Bytes: b}
		lengths := make([]int32, n)
		s, err := a.Split(lengths, make([]byte, len(b)+1))
		if err != nil {
			if e, ok := err.(*fault.Error); !ok || e.Class != fault.Corrupt {
				t.Error(err)
			}
			return
		}
		sum := int64(0)
		for _, l := range lengths {
			if l < 0 {
				t.Errorf("length %d", l)
			}
			sum += int64(l)
		}
		if sum != s.count || len(s.values) > len(b) {
			t.Errorf("%d values, lengths make %d", s.count, sum)
		}
		// skipping ends at the same position
		o := Arrays{Type: a.Type, Bytes: b}
		if err := o.skipEntries(int64(n)); err != nil || o.Pos != a.Pos || o.Run != a.Run {
			t.Errorf("skipping: %v, at %d with %d, not at %d with %d", err, o.Pos, o.Run, a.Pos, a.Run)
		}
	})
}
