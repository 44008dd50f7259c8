package vec

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestTooManyDigits compares TooManyDigits with big integers, for every decimal type and precision, around its limits.
func TestTooManyDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for width, digits := range map[int]int32{4: 9, 8: 18, 16: 38, 32: 76} {
		for precision := int32(1); precision <= digits; precision++ {
			typ := map[int]arrow.DataType{4: &arrow.Decimal32Type{Precision: precision},
				8: &arrow.Decimal64Type{Precision: precision}, 16: &arrow.Decimal128Type{Precision: precision},
				32: &arrow.Decimal256Type{Precision: precision}}[width]
			limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
			top := new(big.Int).Lsh(big.NewInt(1), uint(8*width-1))
			bottom := new(big.Int).Neg(top)
			for range 8 {
				x := new(big.Int).Add(limit, big.NewInt(r.Int64N(5)-2))
				if r.IntN(4) == 0 {
					x.Set(bottom)
				}
				if r.IntN(2) == 0 {
					x.Neg(x)
				}
				if x.Cmp(top) >= 0 || x.Cmp(bottom) < 0 {
					continue
				}
				v, err := New(typ, memory.DefaultAllocator)
				if err != nil {
					t.Fatal(err)
				}
				v.ExtendUnset(2)
				put(v.Data(1), x)
				want := -1
				if new(big.Int).Abs(x).Cmp(limit) >= 0 {
					want = 1
				}
				if got := v.TooManyDigits(0); got != want {
					t.Fatalf("%s: TooManyDigits of 0 and %s is %d, want %d", typ, x, got, want)
				}
				if got := v.TooManyDigits(2); got != -1 {
					t.Fatalf("%s: TooManyDigits from the end on is %d, want -1", typ, got)
				}
				a, err := v.View(2)
				if err != nil {
					t.Fatal(err)
				}
				if got := TooManyDigitsIn(a); got != want {
					t.Fatalf("%s: TooManyDigitsIn of 0 and %s is %d, want %d", typ, x, got, want)
				}
				a.Release()
				SetBits(v.Validity(), 1, 2, false)
				if got := v.TooManyDigits(0); got != -1 {
					t.Fatalf("%s: a null counts as too long", typ)
				}
				v.Release()
			}
		}
	}
}

// put stores x little-endian, in two's complement.
func put(b []byte, x *big.Int) {
	if x.Sign() < 0 {
		x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	for i, w := range x.FillBytes(make([]byte, len(b))) {
		b[len(b)-1-i] = w
	}
}
