package schema

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/unpack"
	"stoa/internal/dremel"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// form is the mapping from a stored value to an Arrow value.
type form uint8

const (
	formBits    form = iota // BOOLEAN: a bit
	FormSame                // the same bytes, width of them
	FormNarrow              // INT32 that holds an integer of width bytes
	formStrings             // BYTE_ARRAY
	FormFixed               // BYTE_ARRAY of width bytes each
)

// value describes how values of an Arrow type are stored.
type value struct {
	typ    layout.Physical
	Form   form
	Width  int // bytes of a value in Arrow
	Signed bool
}

// valueOf returns how values of t are stored; ok is false if that is impossible.
func valueOf(t arrow.DataType) (v value, ok bool) {
	switch t.ID() {
	case arrow.BOOL:
		return value{layout.Boolean, formBits, 0, false}, true
	case arrow.INT8:
		return value{layout.Int32, FormNarrow, 1, true}, true
	case arrow.INT16:
		return value{layout.Int32, FormNarrow, 2, true}, true
	case arrow.UINT8:
		return value{layout.Int32, FormNarrow, 1, false}, true
	case arrow.UINT16:
		return value{layout.Int32, FormNarrow, 2, false}, true
	case arrow.INT32, arrow.UINT32, arrow.DATE32, arrow.TIME32, arrow.INTERVAL_MONTHS:
		return value{layout.Int32, FormSame, 4, true}, true
	case arrow.INT64, arrow.UINT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return value{layout.Int64, FormSame, 8, true}, true
	case arrow.FLOAT32:
		return value{layout.Float, FormSame, 4, true}, true
	case arrow.FLOAT64:
		return value{layout.Double, FormSame, 8, true}, true
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return value{layout.ByteArray, formStrings, 0, false}, true
	case arrow.FIXED_SIZE_BINARY:
		w := t.(*arrow.FixedSizeBinaryType).ByteWidth
		if w == 12 {
			return value{layout.Int96, FormSame, 12, false}, true
		}
		return value{layout.ByteArray, FormFixed, w, false}, w > 0
	case arrow.FLOAT16, arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256,
		arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO:
		return value{layout.ByteArray, FormFixed, t.(arrow.FixedWidthDataType).BitWidth() / 8, false}, true
	}
	return v, false
}

// CheckEncoding checks that values of this type can have encoding enc. at is the structure that states the encoding.
func (v *value) CheckEncoding(enc layout.Encoding, at fault.Span, path string) error {
	switch {
	case enc > layout.GroupVarInt:
		return fault.Unsupportedf(at, path, "%s", enc)
	case enc == layout.GroupVarInt && v.typ != layout.Int32 && v.typ != layout.Int64:
		return fault.Corruptf(at, path, "%s is not defined for %s", enc, v.typ)
	}
	return nil
}

// CheckSize checks that data can contain k values, before memory is allocated for them. CheckEncoding must have been
// called.
func (v *value) CheckSize(data []byte, enc layout.Encoding, k int) error {
	switch {
	case enc == layout.GroupVarInt && k > len(data), v.typ == layout.ByteArray && int64(k)*4 > int64(len(data)):
		return fault.Rel(0, len(data), "values", "%s in %d bytes", fault.Count(k, "value"), len(data))
	case enc == layout.GroupVarInt || v.typ == layout.ByteArray:
		return nil
	}
	want := (int64(k) + 7) / 8
	if v.typ != layout.Boolean {
		want = int64(k) * int64(v.typ.Size())
	}
	if int64(len(data)) != want {
		return fault.Rel(0, len(data), "values", "expected %d bytes for %s of %s, there are %d", want,
			fault.Count(k, "value"), v.typ,
			len(data))
	}
	return nil
}

// Decode appends n entries to dst. valid (nil if all) marks those with a value. Their k values follow the first skip of
// the total values in data. CheckSize must have been called for them.
func (v *value) Decode(dst *vec.Vector, data []byte, enc layout.Encoding, skip, k, total, n int, valid []byte,
	a *vec.Arena) error {
	e := dremel.Entries{N: n, K: k, Valid: valid}
	if v.Form == formStrings {
		return dremel.DecodeSomeStrings(dst, data, skip, total, e)
	}
	at := dst.Extend(n)
	e.Mark(dst, at)
	if v.Form == formBits {
		dremel.PlaceBits(dst.Bits(), at, data, skip, e)
		return nil
	}
	if n == 0 {
		return nil
	}
	out := dst.Data(at)
	if err := v.dense(out, data, enc, skip, k, total, a); err != nil {
		return err
	}
	if k < n {
		plain.ExpandFixed(out, v.Width, n, valid, 0)
	}
	return nil
}

// dense decodes k values of fixed width to the front of out.
func (v *value) dense(out, data []byte, enc layout.Encoding, skip, k, total int, a *vec.Arena) error {
	if enc == layout.GroupVarInt {
		raw := out
		if v.Form == FormNarrow || skip > 0 {
			raw = a.Bytes(v.typ.Size() * (skip + k))
		}
		if err := decodeGroups(raw, data, v.typ, skip+k, total); err != nil {
			return err
		}
		if v.Form != FormNarrow {
			if skip > 0 {
				copy(out, raw[skip*v.Width:])
			}
			return nil
		}
		data = raw
	}
	switch v.Form {
	case FormSame:
		copy(out[:k*v.Width], data[skip*v.Width:])
	case FormNarrow:
		return v.narrow(out, data[4*skip:], k)
	case FormFixed:
		return v.fixed(out, data, skip, k, total)
	}
	return nil
}

// narrow truncates integers that are stored as INT32; a value out of range is damage.
func (v *value) narrow(out, data []byte, k int) error {
	for i := range k {
		x := int32(binary.LittleEndian.Uint32(data[4*i:]))
		fits := false
		switch {
		case v.Width == 1 && v.Signed:
			fits = x == int32(int8(x))
		case v.Width == 1:
			fits = x == int32(uint8(x))
		case v.Signed:
			fits = x == int32(int16(x))
		default:
			fits = x == int32(uint16(x))
		}
		if !fits {
			return fault.Rel(4*i, 4, "values", "%d does not fit %d bits", x, 8*v.Width)
		}
		if v.Width == 1 {
			out[i] = byte(x)
		} else {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(x))
		}
	}
	return nil
}

// fixed reads BYTE_ARRAYs, each of which must have width bytes.
func (v *value) fixed(out, data []byte, skip, k, total int) error {
	step := 4 + v.Width
	if len(data) != total*step {
		return fault.Rel(0, len(data), "values", "expected %d bytes for %s of %d bytes, there are %d",
			total*step, fault.Count(total, "value"), v.Width, len(data))
	}
	if v.Width == 16 {
		return fixed16(out, data[skip*step:], k)
	}
	for i := range k {
		p := data[(skip+i)*step:]
		if n := binary.LittleEndian.Uint32(p); int64(n) != int64(v.Width) {
			return fault.Rel((skip+i)*step, 4, "values", "expected a value of %d bytes, it has %d", v.Width, n)
		}
		copy(out[i*v.Width:(i+1)*v.Width], p[4:])
	}
	return nil
}

// fixed16 is fixed for 16 bytes, the width of Decimal128.
func fixed16(out, data []byte, k int) error {
	other := uint32(0)
	out = out[:16*k]
	for len(out) >= 16 && len(data) >= 20 {
		other |= binary.LittleEndian.Uint32(data) ^ 16
		*(*[16]byte)(out) = *(*[16]byte)(data[4:])
		out, data = out[16:], data[20:]
	}
	if other != 0 {
		return fault.Rel(0, 0, "values", "a value does not have 16 bytes")
	}
	return nil
}

// decodeGroups decodes the first k of total integers of type t in GROUP_VAR_INT. The document does not state whether
// the last group is padded: if the lengths of the missing integers are all the shortest, their bytes may be missing as
// well.
func decodeGroups(out, data []byte, t layout.Physical, k, total int) error {
	decode, size := func(b []byte) (int, error) { return groupvarint.Decode(As[uint32](out, k), b) }, 4
	if t != layout.Int32 {
		decode, size = func(b []byte) (int, error) { return unpack.DecodeGroups64(As[uint64](out, k), b) }, 5
	}
	used, err := decode(data)
	if missing := (size - total%size) % size; err != nil && missing > 0 {
		filled := append(slices.Clip(data), make([]byte, missing)...)
		if n, again := decode(filled); again == nil && (k < total || n == len(filled)) {
			used, err = min(n, len(data)), nil
		}
	}
	if err != nil {
		return fault.Locate(err, fault.Span{Len: int64(len(data))}, true, "values")
	}
	if k == total && used != len(data) {
		return fault.Rel(used, len(data)-used, "values", "%d bytes after the last group", len(data)-used)
	}
	return nil
}

// As returns the first n values of T in b without copying.
func As[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	_ = b[n*int(unsafe.Sizeof(*new(T)))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
