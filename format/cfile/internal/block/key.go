package block

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/pred"
)

// Keys are values encoded so that bytes.Compare gives the order of the values:
//
//	integers, dates, times, decimals   big-endian; the sign bit of signed types is flipped
//	strings and binary, last           the bytes
//	strings and binary, not last       the bytes, 00 written as 00 01, then 00 00
//
// A key of several columns is the concatenation of their encoded values. Bools, floats and doubles cannot be keys.

// Keyable reports whether t can be a key.
func Keyable(t Type) bool {
	_, known := Types[t]
	return known && t != Bool && t != Float && t != Double
}

// AppendKey appends the encoded key of one value. value is encoded as in a block: little-endian, or the bytes of a
// string. last states that no other column of the key follows. The error is Invalid.
func AppendKey(dst []byte, t Type, value []byte, last bool) ([]byte, error) {
	if !Keyable(t) {
		return dst, fault.Invalidf("a %s cannot be a key", t)
	}
	if !t.IsBinary() {
		if len(value) != t.Width() {
			return dst, fault.Invalidf("expected %[2]d bytes for a %[1]s, found %[3]d", t, t.Width(), len(value))
		}
		return AppendFixedKey(dst, t, value), nil
	}
	if last {
		return append(dst, value...), nil
	}
	for {
		i := bytes.IndexByte(value, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, value[:i]...), 0, 1)
		value = value[i+1:]
	}
	return append(append(dst, value...), 0, 0), nil
}

// DecodeKey decodes a key of columns of the given types into values in the form that AppendKey accepts. The error is
// Invalid if a type cannot be a key; any other error is Corrupt and relative to key.
func DecodeKey(key []byte, columns []Type) (values [][]byte, err error) {
	rest := key
	for i, t := range columns {
		at := len(key) - len(rest)
		var v []byte
		switch {
		case !Keyable(t):
			return nil, fault.Invalidf("a %s cannot be a key", t)
		case t.IsBinary() && i == len(columns)-1:
			v, rest = rest, nil
		case t.IsBinary():
			if v, rest, err = escaped(rest, at); err != nil {
				return nil, err
			}
		case len(rest) < t.Width():
			return nil, fault.Rel(at, len(rest), "key", "a %s takes %d bytes, %d are left", t, t.Width(), len(rest))
		default:
			v, rest = FixedKey(rest[:t.Width()], t), rest[t.Width():]
		}
		values = append(values, v)
	}
	if len(rest) > 0 {
		return nil, fault.Rel(len(key)-len(rest), len(rest), "key", "%d bytes are left", len(rest))
	}
	return values, nil
}

// FixedKey is the inverse of AppendFixedKey: the little-endian value.
func FixedKey(key []byte, t Type) []byte {
	v := make([]byte, len(key))
	for i, b := range key {
		v[len(v)-1-i] = b
	}
	if Types[t].Signed {
		v[len(v)-1] ^= 0x80
	}
	return v
}

// escaped reads a string that is not the last column of a key.
func escaped(key []byte, at int) (value, rest []byte, err error) {
	value = []byte{}
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 || i+1 == len(key) {
			return nil, nil, fault.Rel(at, len(key), "key", "a string is not terminated")
		}
		value = append(value, key[:i]...)
		mark := key[i+1]
		key = key[i+2:]
		switch mark {
		case 0:
			return value, key, nil
		case 1:
			value = append(value, 0)
		default:
			return nil, nil, fault.Rel(at+i, 2, "key", "expected 00 or 01 after 00, found %02x", mark)
		}
	}
}

// KeyOf returns the encoded key of a literal in a column of type t, whose Arrow type is at; false if t cannot hold the
// value.
func KeyOf(t Type, at arrow.DataType, v pred.Value) ([]byte, bool) {
	if t.IsBinary() {
		return []byte(v.Text), v.Kind == pred.KindString || v.Kind == pred.KindBytes
	}
	if t == UnixtimeMicros {
		at = Micros
	}
	var le [16]byte
	if d, ok := at.(*arrow.Decimal128Type); ok {
		n, ok := unscaled(v, d.Scale)
		if !ok || !fits(n, t.Width()) {
			return nil, false
		}
		binary.LittleEndian.PutUint64(le[:], n.LowBits())
		binary.LittleEndian.PutUint64(le[8:], uint64(n.HighBits()))
	} else {
		n, ok := v.Stored(at)
		if !ok {
			return nil, false
		}
		binary.LittleEndian.PutUint64(le[:], uint64(n))
	}
	return AppendFixedKey(nil, t, le[:t.Width()]), true
}

// unscaled returns the unscaled value of v at the given scale; false if v cannot be represented exactly.
func unscaled(v pred.Value, scale int32) (decimal128.Num, bool) {
	var n decimal128.Num
	from := int32(0)
	switch v.Kind {
	case pred.KindInt:
		n = decimal128.FromI64(v.Int)
	case pred.KindUint:
		n = decimal128.FromU64(v.Uint)
	case pred.KindDecimal:
		n, from = v.Dec, v.Scale
	default:
		return n, false
	}
	if from == scale {
		return n, true
	}
	if from < -76 || from > 76 {
		return n, false
	}
	n, err := n.Rescale(from, scale)
	return n, err == nil
}

// fits reports whether n fits a signed number of width bytes.
func fits(n decimal128.Num, width int) bool {
	if width == 16 {
		return true
	}
	lo := int64(n.LowBits())
	if n.HighBits() != lo>>63 {
		return false
	}
	return width == 8 || lo == int64(int32(lo))
}

// ValueOf converts the decoded key v of one column to a literal.
func ValueOf(t Type, at arrow.DataType, v []byte) (pred.Value, bool) {
	switch t {
	case String, Varchar:
		return pred.String(string(v)), true
	case Binary:
		return pred.Bytes(v), true
	}
	if t == UnixtimeMicros {
		at = Micros
	}
	lo, hi := WideOf(t, v)
	if d, ok := at.(*arrow.Decimal128Type); ok {
		return pred.Decimal(decimal128.New(int64(hi), lo), d.Scale), true
	}
	x := pred.Typed(at, int64(lo))
	return x, x.Kind != pred.KindNull
}

// WideOf extends a little-endian value to 128 bits.
func WideOf(t Type, v []byte) (lo, hi uint64) {
	var le [16]byte
	copy(le[:], v)
	if Types[t].Signed && v[len(v)-1]&0x80 != 0 {
		for i := len(v); i < len(le); i++ {
			le[i] = 0xff
		}
	}
	return binary.LittleEndian.Uint64(le[:]), binary.LittleEndian.Uint64(le[8:])
}

// AppendFixedKey encodes a little-endian value so that bytes.Compare is the order of values: big-endian, the
// sign bit of signed types flipped.
func AppendFixedKey(dst []byte, t Type, le []byte) []byte {
	at := len(dst)
	for i := len(le) - 1; i >= 0; i-- {
		dst = append(dst, le[i])
	}
	if Types[t].Signed {
		dst[at] ^= 0x80
	}
	return dst
}
