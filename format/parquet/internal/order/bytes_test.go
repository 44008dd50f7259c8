package order

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/pred"
)

// TestFirstBeyond: among bytes with zeros, prefixes of each other, and nulls, the result is the value that the
// predicate finds.
func TestFirstBeyond(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	some := func() []byte {
		b := bytes.Repeat([]byte{7}, rng.IntN(11))
		for range min(len(b), rng.IntN(3)) {
			b[rng.IntN(len(b))] = []byte{0, 1, 7, 8, 0x80, 0xff}[rng.IntN(6)]
		}
		return b
	}
	found := 0
	for range 20000 {
		b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
		for range rng.IntN(6) {
			if b.Append(some()); rng.IntN(5) == 0 {
				b.AppendNull()
			}
		}
		a := b.NewArray()
		if n := int64(a.Len()); n > 1 {
			a = array.NewSlice(a, 1, n)
		}
		low, high := some(), some()
		e := pred.Or(pred.Test(LeafName, pred.OpLt, pred.Bytes(low)), pred.Test(LeafName, pred.OpGt, pred.Bytes(high)))
		switch rng.IntN(4) {
		case 0:
			low, e = nil, pred.Test(LeafName, pred.OpGt, pred.Bytes(high))
		case 1:
			high, e = nil, pred.Test(LeafName, pred.OpLt, pred.Bytes(low))
		}
		v := LeafView(a, nil)
		want, err := v.First(e, nil)
		got, ok := v.FirstOutside(low, high)
		if err != nil || !ok || got != want {
			t.Fatalf("%v, %x to %x: %d, %t, %v; the predicate finds %d", a, low, high, got, ok, err, want)
		}
		if got > 0 {
			found++
		}
	}
	if found < 500 {
		t.Errorf("%d found behind the first", found)
	}
}
