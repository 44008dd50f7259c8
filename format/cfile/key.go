package cfile

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
// A key of several columns is the encoded values one behind the other. Bools, floats and doubles cannot be keys.

// keyable reports whether t can be a key.
func keyable(t Type) bool {
	_, known := types[t]
	return known && t != Bool && t != Float && t != Double
}

// AppendKey appends the encoded key of one value: of fixed-width types its little-endian bytes as a block has them, of the others its
// bytes. last says that no other column of the key follows.
func AppendKey(dst []byte, t Type, value []byte, last bool) ([]byte, error) {
	if !keyable(t) {
		return dst, fault.Invalidf("a %s cannot be a key", t)
	}
	if !t.IsBinary() {
		if len(value) != t.Width() {
			return dst, fault.Invalidf("a %s has %d bytes, not %d", t, t.Width(), len(value))
		}
		return appendFixedKey(dst, t, value), nil
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

// DecodeKey takes an encoded key of columns of the given types apart, into values as AppendKey takes them.
// The errors are relative to key.
func DecodeKey(key []byte, columns []Type) (values [][]byte, err error) {
	rest := key
	for i, t := range columns {
		at := len(key) - len(rest)
		var v []byte
		switch {
		case !keyable(t):
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
			v, rest = fixedKey(rest[:t.Width()], t), rest[t.Width():]
		}
		values = append(values, v)
	}
	if len(rest) > 0 {
		return nil, fault.Rel(len(key)-len(rest), len(rest), "key", "%d bytes are left over", len(rest))
	}
	return values, nil
}

// fixedKey is the inverse of appendFixedKey.
func fixedKey(key []byte, t Type) []byte {
	v := make([]byte, len(key))
	for i, b := range key {
		v[len(v)-1-i] = b
	}
	if types[t].signed {
		v[len(v)-1] ^= 0x80
	}
	return v
}

// escaped reads a string that is not the last of a key.
func escaped(key []byte, at int) (value, rest []byte, err error) {
	value = []byte{}
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 || i+1 == len(key) {
			return nil, nil, fault.Rel(at, len(key), "key", "a string has no end")
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
			return nil, nil, fault.Rel(at+i, 2, "key", "00 is followed by %02x", mark)
		}
	}
}

// keyOf is the encoded key of a literal in a column of type t, whose Arrow type is at; false if t has no such value.
func keyOf(t Type, at arrow.DataType, v pred.Value) ([]byte, bool) {
	if t.IsBinary() {
		return []byte(v.Text), v.Kind == pred.KindString || v.Kind == pred.KindBytes
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
	return appendFixedKey(nil, t, le[:t.Width()]), true
}

// unscaled is the number that stores v with the given scale, if one does exactly.
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

// valueOf is the value of a decoded key of one column.
func valueOf(t Type, at arrow.DataType, v []byte) (pred.Value, bool) {
	switch t {
	case String, Varchar:
		return pred.String(string(v)), true
	case Binary:
		return pred.Bytes(v), true
	}
	lo, hi := wideOf(t, v)
	if d, ok := at.(*arrow.Decimal128Type); ok {
		return pred.Decimal(decimal128.New(int64(hi), lo), d.Scale), true
	}
	x := pred.Typed(at, int64(lo))
	return x, x.Kind != pred.KindNull
}

// bounds are the least and the greatest value, which a file with a value index keeps in its metadata.
func (f *file) bounds(at arrow.DataType) (b pred.Bounds, ok bool) {
	b.Rows = f.footer.NumValues
	if !f.footer.Nullable {
		ok = !f.footer.Array()
	} else {
		b.Nulls = -1
	}
	// Without a checksum the metadata may be damaged without a sign, and rows would be passed over because of it.
	if !f.sorted() || !f.footer.Checksums() || f.noVerify {
		return b, ok
	}
	b.Min, b.Max = f.keyValue(minKeyKey, at), f.keyValue(maxKeyKey, at)
	return b, true
}

// keyValue is the value of a metadata key, nil if there is none or it is no key of f's type.
func (f *file) keyValue(name string, at arrow.DataType) *pred.Value {
	key, ok := f.footer.Get(name)
	if !ok {
		return nil
	}
	parts, err := DecodeKey(key, []Type{f.footer.Type})
	if err != nil {
		return nil
	}
	v, ok := valueOf(f.footer.Type, at, parts[0])
	if !ok {
		return nil
	}
	return &v
}
