package dremel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

// deltasByHand encodes numbers bit by bit, as Encodings.md describes, in blocks of 128 and four miniblocks. wide:
// deltas of 64 bits, as by DuckDB.
func deltasByHand(values []int64, is32, wide bool) []byte {
	out := binary.AppendUvarint(nil, 128)
	out = binary.AppendUvarint(out, 4)
	out = binary.AppendUvarint(out, uint64(len(values)))
	if len(values) == 0 {
		return binary.AppendVarint(out, 0)
	}
	out = binary.AppendVarint(out, values[0])
	for at := 1; at < len(values); at += 128 {
		var deltas []int64
		for i := at; i < min(at+128, len(values)); i++ {
			d := values[i] - values[i-1]
			if is32 && !wide {
				d = int64(int32(d))
			}
			deltas = append(deltas, d)
		}
		low := slices.Min(deltas)
		out = binary.AppendVarint(out, low)
		widths := make([]byte, 4)
		for i, d := range deltas {
			n := uint64(d - low)
			if is32 && !wide {
				n = uint64(uint32(d - low))
			}
			widths[i/32] = max(widths[i/32], byte(bits.Len64(n)))
		}
		out = append(out, widths...)
		for m := 0; 32*m < len(deltas); m++ {
			packed := make([]byte, 4*int(widths[m]))
			for i, d := range deltas[32*m : min(32*m+32, len(deltas))] {
				n := uint64(d - low)
				for b := range int(widths[m]) {
					if n>>b&1 == 1 {
						packed[(i*int(widths[m])+b)/8] |= 1 << ((i*int(widths[m]) + b) % 8)
					}
				}
			}
			out = append(out, packed...)
		}
	}
	return out
}

func TestDeltas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for width := range 65 {
		for _, n := range []int{0, 1, 2, 32, 33, 128, 129, 130, 257, 1000} {
			values := make([]int64, n)
			for i := range values {
				values[i] = int64(r.Uint64() >> (64 - width))
				if width == 0 {
					values[i] = 7
				}
			}
			b := deltasByHand(values, false, true)
			got := make([]int64, n)
			used, err := DecodeDeltas(got, append(b, "tail"...))
			if err != nil || used != len(b) || !slices.Equal(got, values) {
				t.Fatalf("%d of %d bits: %d of %d bytes, %v", n, width, used, len(b), err)
			}
			if width > 32 {
				continue
			}
			narrow, want := make([]int32, n), make([]int32, n)
			for i := range values {
				values[i] = int64(int32(values[i]))
				want[i] = int32(values[i])
			}
			for _, wide := range []bool{false, true} {
				b := deltasByHand(values, true, wide)
				if used, err := DecodeDeltas(narrow, b); err != nil || used != len(b) || !slices.Equal(narrow, want) {
					t.Fatalf("%d of %d bits in 32, wide %t: %d of %d bytes, %v", n, width, wide, used, len(b), err)
				}
			}
		}
	}
}

// TestDeltasByHand decodes a hand-made page, and invalid bytes.
func TestDeltasByHand(t *testing.T) {
	page := []byte{
		128, 1, 4, 3, 0xfe, 0xff, 0xff, 0xff, 0x1f, // 3 numbers, the first 4294967295
		2, 1, 0, 0, 0, 2, 0, 0, 0, // then 1 more than that, and 1 more than min delta 1
	}
	got := make([]int32, 3)
	if used, err := DecodeDeltas(got, page); err != nil || used != len(page) || !slices.Equal(got, []int32{-1, 0, 2}) {
		t.Errorf("%v, %d, %v", got, used, err)
	}
	for n := range 15 { // the last miniblock may be truncated after its values
		if _, err := DecodeDeltas(got, page[:n]); err == nil {
			t.Errorf("%d bytes: %v", n, got)
		}
	}
	if _, err := DecodeDeltas(got[:2], page); err == nil || HasDeltas(page, 2) || !HasDeltas(page, 3) {
		t.Error("more numbers than values")
	}
}

// TestPackedLevels has the example of Encodings.md: 0 to 7 in three bits are 0x05 0x39 0x77.
func TestPackedLevels(t *testing.T) {
	got := make([]byte, 8)
	used, err := DecodePackedLevels(got, []byte{0x05, 0x39, 0x77}, 7)
	if err != nil || used != 3 || !bytes.Equal(got, []byte{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("%v, %d, %v", got, used, err)
	}
	if _, err := DecodePackedLevels(got, []byte{0x05, 0x39}, 7); err == nil {
		t.Error("two bytes are enough")
	}
	if _, err := DecodePackedLevels(got, []byte{0x05, 0x39, 0x77}, 6); err == nil {
		t.Error("a level above the max")
	}
}

// TestLevelsAndCodes: Encodings.md has 0 to 7 in three bits as 0x88 0xC6 0xFA.
func TestLevelsAndCodes(t *testing.T) {
	src := []byte{3, 0x88, 0xC6, 0xFA, 8, 5} // a group of eight, a run of four
	got := make([]byte, 12)
	if err := DecodeLevels(got, src, 7); err != nil || !bytes.Equal(got, []byte{0, 1, 2, 3, 4, 5, 6, 7, 5, 5, 5, 5}) {
		t.Errorf("%v, %v", got, err)
	}
	if DecodeLevels(got, src, 6) == nil || DecodeLevels(make([]byte, 13), src, 7) == nil {
		t.Error("a level above the max, or one that is not there")
	}
	codes := make([]uint32, 12)
	if err := DecodeCodes(codes, append([]byte{3}, src...), 8); err != nil || codes[7] != 7 || codes[11] != 5 {
		t.Errorf("%v, %v", codes, err)
	}
	if DecodeCodes(codes, append([]byte{3}, src...), 7) == nil || DecodeCodes(codes, nil, 7) == nil ||
		DecodeCodes(codes, []byte{33, 0}, 7) == nil {
		t.Error("codes that no dictionary has")
	}
	if err := DecodeCodes(codes, []byte{0}, 1); err != nil || codes[3] != 0 {
		t.Errorf("width 0: %v, %v", codes, err)
	}
}

func TestSplit(t *testing.T) {
	for _, width := range []int{1, 2, 3, 4, 5, 8, 12, 16} {
		for _, n := range []int{0, 1, 7, 8, 9, 100} {
			want := make([]byte, n*width)
			src := make([]byte, n*width)
			for i := range want {
				want[i] = byte(i*7 + i>>8)
				src[i%width*n+i/width] = want[i]
			}
			got := make([]byte, n*width)
			if err := DecodeSplit(got, src, width); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes: %x, %v", n, width, got, err)
			}
		}
	}
	if DecodeSplit(make([]byte, 8), make([]byte, 7), 4) == nil {
		t.Error("seven bytes for two values")
	}
}

// stringsIn returns the four ways to store strings.
func stringsIn(all []string) map[string][]byte {
	var plain, bytes, rests []byte
	var lengths, shared, left []int64
	last := ""
	for _, s := range all {
		plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(s))), s...)
		bytes = append(bytes, s...)
		lengths = append(lengths, int64(len(s)))
		k := 0
		for k < len(s) && k < len(last) && s[k] == last[k] {
			k++
		}
		shared, left, rests = append(shared, int64(k)), append(left, int64(len(s)-k)), append(rests, s[k:]...)
		last = s
	}
	return map[string][]byte{"plain": plain, "lengths": append(deltasByHand(lengths, true, false), bytes...),
		"deltas": append(append(deltasByHand(shared, true, false), deltasByHand(left, true, false)...), rests...)}
}

func decodeText(dst *vec.Vector, how string, src []byte, e Entries) error {
	switch how {
	case "plain":
		return DecodeStrings(dst, src, e)
	case "lengths":
		return DecodeLengthStrings(dst, src, e)
	}
	return DecodeDeltaStrings(dst, src, e, 1<<20, &vec.Arena{})
}

func TestStrings(t *testing.T) {
	all := []string{"", "a", "axis", "axle", "axles", "b", "", "babble", "babyhood",
		string(bytes.Repeat([]byte("x"), 100))}
	var want []string
	var valid []byte
	for i := range 3 * len(all) {
		if i%8 == 0 {
			valid = append(valid, 0)
		}
		if i%3 == 1 {
			valid[i/8] |= 1 << (i % 8)
			want = append(want, all[i/3])
			continue
		}
		want = append(want, "(null)")
	}
	for how, src := range stringsIn(all) {
		v, _ := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		for range 2 {
			if err := decodeText(v, how, src, Entries{N: len(want), K: len(all), Valid: valid}); err != nil {
				t.Fatal(how, err)
			}
			if err := decodeText(v, how, src, Entries{N: len(all), K: len(all)}); err != nil {
				t.Fatal(how, err)
			}
		}
		a, err := v.Emit(v.Len())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range a.Len() {
			got = append(got, a.ValueStr(i))
		}
		once := append(slices.Clone(want), all...)
		if !slices.Equal(got, append(slices.Clone(once), once...)) {
			t.Errorf("%s: %q", how, got)
		}
		for cut := range src {
			if decodeText(v, how, src[:cut], Entries{N: len(all), K: len(all)}) == nil {
				t.Errorf("%s: %d of %d bytes are enough", how, cut, len(src))
			}
		}
	}
}

func TestDeltaFixed(t *testing.T) {
	src := stringsIn([]string{"axis", "axle", "babb", "babb"})["deltas"]
	got := make([]byte, 16)
	if err := DecodeDeltaFixed(got, src, 4, 4, &vec.Arena{}); err != nil || string(got) != "axisaxlebabbbabb" {
		t.Errorf("%s, %v", got, err)
	}
	if DecodeDeltaFixed(make([]byte, 20), src, 5, 4, &vec.Arena{}) == nil {
		t.Error("four bytes are five")
	}
}

// FuzzDecoders: whatever the bytes, nothing panics, and existing entries do not change.
func FuzzDecoders(f *testing.F) {
	for how, src := range stringsIn([]string{"a", "ab", "", "abc"}) {
		f.Add(src, uint16(4), how[0])
	}
	f.Add([]byte{3, 3, 0x88, 0xC6, 0xFA, 8, 5}, uint16(12), byte('c'))
	f.Fuzz(func(t *testing.T, src []byte, n uint16, how byte) {
		k := int(n % 2048)
		v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Release()
		first := stringsIn([]string{"kept", "as it is"})["plain"]
		if err := DecodeStrings(v, first, Entries{N: 2, K: 2}); err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"plain", "lengths", "deltas"} {
			if decodeText(v, how, src, Entries{N: k, K: k}) != nil && v.Len() != 2 && v.Len() != 2+k {
				t.Fatalf("%s: %d entries", how, v.Len())
			}
			v.Truncate(2)
		}
		a, err := v.Emit(2)
		if err != nil || fmt.Sprint(a) != `["kept" "as it is"]` {
			t.Fatal(a, err)
		}
		if _, ok := a.(*array.String); !ok {
			t.Fatal(a)
		}
		b := make([]byte, 16*k)
		_, _ = DecodeDeltas(make([]int32, k), src)
		_, _ = DecodeDeltas(make([]int64, k), src)
		_ = DecodeDeltaFixed(b, src, 16, k, &vec.Arena{})
		_ = DecodeBools(b, 3, src, k)
		_ = DecodeCodes(make([]uint32, k), src, int(how))
		if err := DecodeLevels(b[:k], src, how); err == nil && k > 0 && slices.Max(b[:k]) > how {
			t.Fatal("a level above the max")
		}
		if _, err := DecodePackedLevels(b[:k], src, how); err == nil && k > 0 && slices.Max(b[:k]) > how {
			t.Fatal("a packed level above the max")
		}
		_ = DecodeSplit(b[:k], src, int(how)%17)
	})
}

func BenchmarkLevels(b *testing.B) {
	src := []byte{}
	for range 1000 {
		src = append(src, 0x21, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0x11, 0x22,
			0x33, 0x44, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0x11, 0x22, 0x33,
			0x44, 0x20, 1)
	}
	dst := make([]byte, 1000*(128+16))
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		if err := DecodeLevels(dst, src, 3); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPresent compares the bitmap of the present entries with their levels.
func TestPresent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		max := uint8(1 + r.IntN(255))
		levels := make([]byte, r.IntN(100))
		for i := range levels {
			levels[i] = byte(r.IntN(int(max) + 1))
		}
		bits := Present(levels, max, new(vec.Arena))
		for i, v := range levels {
			if bits[i/8]>>(i%8)&1 == 1 != (v == max) {
				t.Fatalf("bit %d of % x, the level is %d of %d", i, bits, v, max)
			}
		}
	}
}

// TestPlaceBits compares booleans that begin within a byte, and are spread over nulls, with the same booleans one by
// one.
func TestPlaceBits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		n, at, skip := r.IntN(100), r.IntN(20), r.IntN(20)
		valid, src, dst := random(r, 16), random(r, 16), random(r, 16)
		e := Entries{N: n, Valid: valid}
		for i := range n {
			e.K += int(bit(valid, i))
		}
		want, k := slices.Clone(dst), skip
		for i := range n {
			want[(at+i)/8] &^= 1 << ((at + i) % 8)
			if bit(valid, i) == 1 {
				want[(at+i)/8] |= bit(src, k) << ((at + i) % 8)
				k++
			}
		}
		if PlaceBits(dst, at, src, skip, e); !bytes.Equal(dst, want) {
			t.Fatalf("%d booleans from %d to %d on: % x, expected % x", n, skip, at, dst, want)
		}
	}
}

func bit(b []byte, i int) byte { return b[i/8] >> (i % 8) & 1 }

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestSomeStrings: decoding a part of the strings of a page gives the same as decoding all of them, and a wrong length
// is reported with its number in the page.
func TestSomeStrings(t *testing.T) {
	var src []byte
	const total = 20
	for i := range total {
		src = append(binary.LittleEndian.AppendUint32(src, uint32(3*i)), bytes.Repeat([]byte{'a' + byte(i)}, 3*i)...)
	}
	for skip := range total + 1 {
		for k := 0; skip+k <= total; k++ {
			v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			if err := DecodeSomeStrings(v, src, skip, total, Entries{N: k, K: k}); err != nil {
				t.Fatalf("%d after %d: %v", k, skip, err)
			}
			for i := range k {
				offs := v.Offsets(i)
				want := strings.Repeat(string(rune('a'+skip+i)), 3*(skip+i))
				if got := string(v.StringBytes()[offs[0]:offs[1]]); got != want {
					t.Fatalf("string %d: %q, expected %q", skip+i, got, want)
				}
			}
			v.Release()
		}
	}
	v, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	err = DecodeSomeStrings(v, src[:len(src)-1], 5, total, Entries{N: 15, K: 15})
	if err == nil || !strings.Contains(err.Error(), "value 19 reaches past the end") {
		t.Errorf("the last string is cut: %v", err)
	}
}
