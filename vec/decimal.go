package vec

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// TooManyDigits returns the first valid entry of a vector of decimals, from at on, that has more digits than its type's
// precision: the value, or the type, is not what was written. It returns -1 if there is none, or if v has no decimals.
// Dictionary codes are not checked, as their dictionary is.
func (v *Vector) TooManyDigits(at int) int {
	if t, ok := v.Type.(arrow.DecimalType); ok && at < v.coded {
		return tooManyDigits(t, v.Data(0), at, v.coded, v.Valid)
	}
	return -1
}

// TooManyDigitsIn is TooManyDigits for an array.
func TooManyDigitsIn(a arrow.Array) int {
	t, ok := a.DataType().(arrow.DecimalType)
	if d := a.Data(); ok && a.Len() > a.NullN() && d.Buffers()[1] != nil {
		w := t.BitWidth() / 8
		return tooManyDigits(t, d.Buffers()[1].Bytes()[d.Offset()*w:], 0, a.Len(), a.IsValid)
	}
	return -1
}

// tooManyDigits checks the entries [from, to) of data, which are little-endian and in two's complement.
func tooManyDigits(t arrow.DecimalType, data []byte, from, to int, valid func(int) bool) int {
	var limit [4]uint64 // 10 to the power of the precision
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetPrecision())), nil)
	for i, w := range power.FillBytes(make([]byte, 32)) {
		limit[3-i/8] = limit[3-i/8]<<8 | uint64(w)
	}
	width := t.BitWidth() / 8
	for i := from; i < to; i++ {
		if !below(data[i*width:][:width], &limit) && valid(i) {
			return i
		}
	}
	return -1
}

// below reports whether the magnitude of a number is less than limit.
func below(b []byte, limit *[4]uint64) bool {
	le := binary.LittleEndian
	var x [4]uint64
	switch len(b) {
	case 4:
		x[0] = uint64(int64(int32(le.Uint32(b))))
	case 8:
		x[0] = le.Uint64(b)
	case 16:
		x[0], x[1] = le.Uint64(b), le.Uint64(b[8:])
	default:
		x[0], x[1], x[2], x[3] = le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	}
	words := max(1, len(b)/8)
	if int64(x[words-1]) < 0 {
		carry := uint64(1)
		for i := range words {
			x[i], carry = bits.Add64(^x[i], 0, carry)
		}
	}
	for i := 3; i >= 0; i-- {
		if x[i] != limit[i] {
			return x[i] < limit[i]
		}
	}
	return false
}
