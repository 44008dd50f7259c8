package diff

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"time"

	"stoa/internal/cells"
	"stoa/internal/enc/half"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// append appends cell i of arr, which is of side 0 or 1.
func (s *shape) append(dst []byte, arr arrow.Array, i, side int) []byte {
	for {
		if arr.IsNull(i) {
			return append(dst, 0)
		}
		if d, ok := arr.(*array.Dictionary); ok {
			i, arr = d.GetValueIndex(i), d.Dictionary()
			continue
		}
		if e, ok := arr.(array.ExtensionArray); ok {
			arr = e.Storage()
			continue
		}
		break
	}
	if arr.DataType().ID() == arrow.NULL {
		return append(dst, 0)
	}
	if u, ok := arr.(array.Union); ok && s.kind == Union {
		return s.member(dst, u, i, side)
	}
	return s.value(append(dst, 1), arr, i, side)
}

// member appends cell i of a union, whose only nulls are those of its members.
func (s *shape) member(dst []byte, u array.Union, i, side int) []byte {
	k, at := u.ChildID(i), i
	if d, ok := u.(*array.DenseUnion); ok {
		at = int(d.ValueOffset(i))
	}
	cell := len(dst) + 2
	dst = s.children[k].append(append(dst, 1, byte(k)), u.Field(k), at, side)
	if dst[cell] == 0 {
		return append(dst[:cell-2], 0)
	}
	return dst
}

func (s *shape) value(dst []byte, arr arrow.Array, i, side int) []byte {
	switch s.kind {
	case Integer:
		neg, m := integer(arr, i)
		return binary.AppendUvarint(append(dst, neg), m)
	case Float:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(float(arr, i)))
	case Mixed:
		return appendMixed(dst, arr, i)
	case Decimal:
		return appendDecimal(dst, arr, i)
	case Boolean:
		if arr.(*array.Boolean).Value(i) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case Bytes:
		b := content(arr, i)
		if s.coded && s.text == side+1 {
			raw, err := base64.StdEncoding.AppendDecode(nil, b)
			// decoding ignores line ends and unused bits at the end
			if err == nil && bytes.Equal(base64.StdEncoding.AppendEncode(nil, raw), b) {
				b = raw
			} else {
				dst[len(dst)-1] = uncoded
			}
		}
		return appendBytes(dst, b)
	case Instant:
		sec, nano := when(arr, i)
		return binary.AppendUvarint(binary.AppendVarint(dst, sec), nano)
	case List:
		l := arr.(array.ListLike)
		from, to := l.ValueOffsets(i)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		for k := from; k < to; k++ {
			dst = s.children[0].append(dst, l.ListValues(), int(k), side)
		}
		return dst
	case Struct:
		st := arr.(*array.Struct)
		for k, child := range s.children {
			dst = child.append(dst, st.Field(s.at[side][k]), i, side)
		}
		return dst
	case AsText:
		return appendBytes(dst, s.normal(cells.AppendCSV(nil, arr, i)))
	}
	b, err := json.Marshal(arr.GetOneForMarshal(i))
	if err != nil {
		b = []byte(arr.ValueStr(i))
	}
	return appendBytes(dst, b)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// integer returns sign (1 if negative) and magnitude.
func integer(arr arrow.Array, i int) (byte, uint64) {
	signed := func(v int64) (byte, uint64) {
		if v < 0 {
			return 1, -uint64(v)
		}
		return 0, uint64(v)
	}
	switch a := arr.(type) {
	case *array.Int8:
		return signed(int64(a.Value(i)))
	case *array.Int16:
		return signed(int64(a.Value(i)))
	case *array.Int32:
		return signed(int64(a.Value(i)))
	case *array.Int64:
		return signed(a.Value(i))
	case *array.Uint8:
		return 0, uint64(a.Value(i))
	case *array.Uint16:
		return 0, uint64(a.Value(i))
	case *array.Uint32:
		return 0, uint64(a.Value(i))
	case *array.Uint64:
		return 0, a.Value(i)
	}
	return 0, 0
}

// float returns a number as the nearest float64; all NaN are equal, and so are the zeros.
func float(arr arrow.Array, i int) float64 {
	var f float64
	switch a := arr.(type) {
	case *array.Float16:
		f = float64(half.Float(a.Value(i).Uint16()))
	case *array.Float32:
		f = float64(a.Value(i))
	case *array.Float64:
		f = a.Value(i)
	default:
		f, _ = strconv.ParseFloat(string(cells.AppendCSV(nil, arr, i)), 64)
	}
	switch {
	case f != f:
		return math.NaN()
	case f == 0:
		return 0
	}
	return f
}

// appendDecimal appends a decimal or an integer as digits and a power of ten, without trailing zeros.
func appendDecimal(dst []byte, arr arrow.Array, i int) []byte {
	v, exp := new(big.Int), int64(0)
	switch a := arr.(type) {
	case *array.Decimal32:
		v = big.NewInt(int64(a.Value(i)))
	case *array.Decimal64:
		v = big.NewInt(int64(a.Value(i)))
	case *array.Decimal128:
		v = a.Value(i).BigInt()
	case *array.Decimal256:
		v = a.Value(i).BigInt()
	default:
		neg, m := integer(arr, i)
		v.SetUint64(m)
		if neg == 1 {
			v.Neg(v)
		}
	}
	if t, ok := arr.DataType().(arrow.DecimalType); ok {
		exp = -int64(t.GetScale())
	}
	if v.Sign() == 0 {
		exp = 0
	}
	for ten, rest := big.NewInt(10), new(big.Int); v.Sign() != 0; exp++ {
		q, _ := new(big.Int).QuoRem(v, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		v = q
	}
	sign := byte(0)
	if v.Sign() < 0 {
		sign = 1
	}
	return appendBytes(binary.AppendVarint(append(dst, sign), exp), v.Bytes())
}

// appendMixed appends a number of any kind. A decimal with a fraction counts as the nearest float; an integer is kept
// exactly, even where neighbouring floats are more than 1 apart.
func appendMixed(dst []byte, arr arrow.Array, i int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(float(arr, i)))
	if arrow.IsFloating(arr.DataType().ID()) {
		return append(dst, 0)
	}
	exact := appendDecimal(nil, arr, i)
	exp, k := binary.Varint(exact[1:])
	_, l := binary.Uvarint(exact[1+k:])
	m := new(big.Int).SetBytes(exact[1+k+l:])
	if exp >= 0 {
		m.Mul(m, new(big.Int).Exp(big.NewInt(10), big.NewInt(exp), nil))
	}
	const digits = 53 // of a float, in bits
	if exp < 0 || m.BitLen()-int(m.TrailingZeroBits()) <= digits {
		return append(dst, 0)
	}
	return append(append(dst, 1), exact...)
}

// content returns the bytes of a string or binary.
func content(arr arrow.Array, i int) []byte {
	switch a := arr.(type) {
	case *array.String:
		return []byte(a.Value(i))
	case *array.LargeString:
		return []byte(a.Value(i))
	case *array.StringView:
		return []byte(a.Value(i))
	case *array.Binary:
		return a.Value(i)
	case *array.LargeBinary:
		return a.Value(i)
	case *array.BinaryView:
		return a.Value(i)
	case *array.FixedSizeBinary:
		return a.Value(i)
	}
	return nil
}

// when returns seconds (of the epoch, the day, or a duration) and the remaining nanoseconds.
func when(arr arrow.Array, i int) (sec int64, nano uint64) {
	split := func(v int64, u arrow.TimeUnit) (int64, uint64) {
		per := int64(time.Second / u.Multiplier())
		s, rest := v/per, v%per
		if rest < 0 {
			s, rest = s-1, rest+per
		}
		return s, uint64(rest) * uint64(u.Multiplier())
	}
	switch a := arr.(type) {
	case *array.Date32:
		return int64(a.Value(i)) * 86400, 0
	case *array.Date64:
		return split(int64(a.Value(i)), arrow.Millisecond)
	case *array.Timestamp:
		return split(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).Unit)
	case *array.Time32:
		return split(int64(a.Value(i)), a.DataType().(*arrow.Time32Type).Unit)
	case *array.Time64:
		return split(int64(a.Value(i)), a.DataType().(*arrow.Time64Type).Unit)
	case *array.Duration:
		return split(int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit)
	}
	return 0, 0
}
