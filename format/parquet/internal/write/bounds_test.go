package write

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBoundsOfBytes: the minimum and maximum of values that compare bytewise, long and short, some with common prefixes
// or trailing zeros, equal those found by pairwise comparison.
func TestBoundsOfBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 19))
	for range 2000 {
		n, v, all := 1+r.IntN(20), dense{offs: []int32{0}}, [][]byte{}
		decimal, width := r.IntN(2) == 0, 1+r.IntN(18)
		for range n {
			x := make([]byte, r.IntN(12))
			if decimal {
				x = make([]byte, width)
			}
			for k := range x {
				x[k] = []byte{0, 0, 1, 0x7f, 0x80, 0xff}[r.IntN(6)]
			}
			all = append(all, x)
			v.data, v.fixed = append(v.data, x...), append(v.fixed, x...)
			v.offs = append(v.offs, int32(len(v.data)))
			v.n++
		}
		o := orderBytes
		if decimal {
			o = orderDecimal
		} else {
			width = 0
		}
		lo, hi := all[0], all[0]
		for _, x := range all {
			if o.compare(x, lo, width) < 0 {
				lo = x
			}
			if o.compare(x, hi, width) > 0 {
				hi = x
			}
		}
		if b := o.byteSpan(v, width); !bytes.Equal(b.Min, lo) || !bytes.Equal(b.Max, hi) {
			t.Fatalf("%x: %x to %x, want %x to %x", all, b.Min, b.Max, lo, hi)
		}
	}
}
