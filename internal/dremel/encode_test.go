package dremel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEncodedDecodes: the decoders, which were written independently, restore the input of the encoders; of all widths,
// with and without runs.
func TestEncodedDecodes(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := r.IntN(700)
		checkLevelsBack(t, seed, r, n)
		checkCodesBack(t, seed, r, n)
		checkDeltasBack[int32](t, seed, r, n)
		checkDeltasBack[int64](t, seed, r, n)
		width := []int{4, 8}[r.IntN(2)]
		raw := make([]byte, n*width)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		back := make([]byte, len(raw))
		if err := DecodeSplit(back, AppendSplit(nil, raw, width), width); err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("seed %d: streams of %d values of %d bytes: %v", seed, n, width, err)
		}
	}
}

// runsOf returns numbers below most, with occasional runs.
func runsOf(r *rand.Rand, n int, most uint64) []uint64 {
	out := make([]uint64, 0, n)
	for len(out) < n {
		x, k := r.Uint64N(most), 1
		if r.IntN(4) == 0 {
			k = 1 + r.IntN(60)
		}
		for range min(k, n-len(out)) {
			out = append(out, x)
		}
	}
	return out
}

func checkLevelsBack(t *testing.T, seed uint64, r *rand.Rand, n int) {
	most := uint8(r.IntN(20))
	levels := make([]byte, n)
	bools := make([]byte, n)
	for i, x := range runsOf(r, n, uint64(most)+1) {
		levels[i], bools[i] = byte(x), byte(x&1)
	}
	back := make([]byte, n)
	if err := DecodeLevels(back, AppendLevels(nil, levels, most), most); n > 0 &&
		(err != nil || !bytes.Equal(back, levels)) {
		t.Fatalf("seed %d: %d levels of at most %d: %v", seed, n, most, err)
	}
	b := make([]byte, n/8+1)
	if err := DecodeBools(b, 0, AppendBools(nil, bools), n); n > 0 && err != nil {
		t.Fatalf("seed %d: %d booleans: %v", seed, n, err)
	}
	packed := AppendBits(nil, bools)
	for i, x := range bools {
		if b[i/8]>>(i%8)&1 != x || packed[i/8]>>(i%8)&1 != x {
			t.Fatalf("seed %d: boolean %d of %d: got the wrong value", seed, i, n)
		}
	}
}

func checkCodesBack(t *testing.T, seed uint64, r *rand.Rand, n int) {
	if n == 0 {
		return
	}
	most := uint64(1) << r.IntN(21)
	codes := make([]uint32, n)
	for i, x := range runsOf(r, n, most) {
		codes[i] = uint32(x)
	}
	back := make([]uint32, n)
	if err := DecodeCodes(back, AppendCodes(nil, codes, slices.Max(codes)), int(most)); err != nil ||
		!slices.Equal(back, codes) {
		t.Fatalf("seed %d: %d codes below %d: %v", seed, n, most, err)
	}
}

func checkDeltasBack[T int32 | int64](t *testing.T, seed uint64, r *rand.Rand, n int) {
	v := make([]T, n)
	x, shift := T(r.Uint64()), r.IntN(64)
	for i := range v {
		x += T(r.Uint64() >> shift)
		v[i] = x
	}
	src := AppendDeltas([]byte("x"), v)[1:]
	back := make([]T, n)
	used, err := DecodeDeltas(back, src)
	if err != nil || used != len(src) || !slices.Equal(back, v) {
		t.Fatalf("seed %d: %d deltas of %T, %d bits: %d bytes of %d, %v", seed, n, x, 64-shift, used, len(src), err)
	}
}

// TestDeltaStringsByHand has the worked example of Encodings.md: "axis", "axle", "babble", "babyhood".
func TestDeltaStringsByHand(t *testing.T) {
	offs, data := []int32{0, 4, 8, 14, 22}, []byte("axisaxlebabblebabyhood")
	src := AppendDeltaStrings(nil, offs, data)
	shared, lengths := make([]int32, 4), make([]int32, 4)
	n, err := DecodeDeltas(shared, src)
	if err != nil || !slices.Equal(shared, []int32{0, 2, 0, 3}) {
		t.Fatalf("%v, %v", shared, err)
	}
	m, err := DecodeDeltas(lengths, src[n:])
	if err != nil || !slices.Equal(lengths, []int32{4, 2, 6, 5}) || string(src[n+m:]) != "axislebabbleyhood" {
		t.Fatalf("%v, %q, %v", lengths, src[n+m:], err)
	}
	plain := AppendPlainStrings(nil, offs, data)
	if len(plain) != 22+16 || binary.LittleEndian.Uint32(plain[8:]) != 4 {
		t.Errorf("%q", plain)
	}
}

// TestAppendPackedLevels: the example of Encodings.md, and round trips of levels of every width.
func TestAppendPackedLevels(t *testing.T) {
	if got := AppendPackedLevels(nil, []byte{0, 1, 2, 3, 4, 5, 6, 7}, 7); !bytes.Equal(got, []byte{0x05, 0x39, 0x77}) {
		t.Errorf("%x", got)
	}
	rng := rand.New(rand.NewPCG(4, 9))
	for most := range uint8(128) {
		levels := make([]byte, rng.IntN(40))
		for i := range levels {
			levels[i] = byte(rng.IntN(int(most) + 1))
		}
		b := AppendPackedLevels([]byte("xy"), levels, most)
		got := make([]byte, len(levels))
		used, err := DecodePackedLevels(got, b[2:], most)
		if err != nil || used != len(b)-2 || !bytes.Equal(got, levels) {
			t.Errorf("up to %d: %v from %d of %x, %v; want %v", most, got, used, b, err, levels)
		}
	}
}
