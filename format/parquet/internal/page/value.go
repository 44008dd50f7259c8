package page

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// valueConversion is the conversion from a stored value to an Arrow value.
type valueConversion uint8

const (
	FormNull        valueConversion = iota // nothing is stored: Arrow's null type
	formBool                               // BOOLEAN: a bit
	formCopy                               // the bytes are the same
	formByteArray                          // BYTE_ARRAY
	formNarrow                             // INT32 that holds an integer of one or two bytes
	formMultiply                           // an integer, multiplied
	formDivide                             // an integer, divided
	formUnscaledInt                        // INT32 or INT64: the unscaled number of a decimal
	formBigEndian                          // big-endian bytes: the unscaled number of a decimal
	formInt96                              // nanoseconds of the day, and the Julian day
)

// valueForm describes the stored form of a column's values and their form in a vector.
type valueForm struct {
	typ    meta.Physical
	stored int // bytes of a stored value; 0 if variable or bits
	Form   valueConversion
	width  int   // bytes of a value in the vector
	factor int64 // of formMultiply and formDivide; for formInt96, the nanoseconds in a unit of the vector
	signed bool  // of formNarrow
	digits int32 // of decimals: the largest number of digits
}

// Widths are the sizes of the physical types in bytes, 0 where they vary.
var Widths = [...]int{meta.TypeBoolean: 0, meta.TypeInt32: 4, meta.TypeInt64: 8, meta.TypeInt96: 12,
	meta.TypeFloat: 4, meta.TypeDouble: 8,
	meta.TypeBytes: 0, meta.TypeFixed: 0}

// FormOf returns how values of vector type t are stored as element e; ok is false if that is impossible.
func FormOf(e *meta.SchemaElem, t arrow.DataType) (v valueForm, ok bool) {
	v = valueForm{typ: e.Typ, stored: Widths[e.Typ], factor: 1}
	if e.Typ == meta.TypeFixed {
		v.stored = int(e.Length)
	}
	if f, fixed := t.(arrow.FixedWidthDataType); fixed {
		v.width = f.BitWidth() / 8
	}
	switch x := t.(type) {
	case *arrow.NullType:
		v.Form = FormNull
		return v, true
	case *arrow.BooleanType:
		v.Form = formBool
		return v, e.Typ == meta.TypeBoolean
	case *arrow.StringType, *arrow.BinaryType:
		v.Form = formByteArray
		return v, e.Typ == meta.TypeBytes
	case arrow.DecimalType:
		return v.decimal(x)
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Uint8Type, *arrow.Uint16Type:
		v.Form, v.signed = formNarrow, t.ID() == arrow.INT8 || t.ID() == arrow.INT16
		return v, e.Typ == meta.TypeInt32
	case *arrow.Date64Type:
		v.Form, v.factor = formMultiply, 86_400_000
		return v, e.Typ == meta.TypeInt32
	case *arrow.TimestampType:
		if e.Typ == meta.TypeInt96 {
			v.Form, v.factor = formInt96, int64(x.Unit.Multiplier())
			return v, true
		}
		if x.Unit == arrow.Second {
			v.Form, v.factor = formDivide, 1000
			return v, e.Typ == meta.TypeInt64
		}
	case *arrow.Time32Type:
		if x.Unit == arrow.Second {
			v.Form, v.factor = formDivide, 1000
			return v, e.Typ == meta.TypeInt32
		}
	}
	v.Form = formCopy
	return v, v.stored == v.width && v.width > 0
}

func (v valueForm) decimal(t arrow.DecimalType) (valueForm, bool) {
	v.digits = t.GetPrecision()
	switch v.typ {
	case meta.TypeInt32, meta.TypeInt64:
		v.Form = formUnscaledInt
		return v, v.width >= v.stored || v.width == 4
	case meta.TypeFixed, meta.TypeBytes:
		v.Form = formBigEndian
		return v, true
	}
	return v, false
}

// coded reports whether dictionary-encoded pages remain codes in the vector.
func (v *valueForm) coded() bool { return v.Form == formByteArray }

// append appends the entries e of a page to dst. data are the page's values in encoding enc.
func (v *valueForm) append(dst *vec.Vector, data []byte, enc int32, e dremel.Entries, t *PageTask) error {
	switch {
	case v.Form == FormNull:
		dst.Extend(e.N)
		return nil
	case meta.IsDictionary(enc):
		return v.codes(dst, data, e, t)
	case v.Form == formByteArray:
		return v.strings(dst, data, enc, e, t)
	case v.Form == formBool:
		return v.bits(dst, data, enc, e)
	}
	raw, err := v.dense(data, enc, e.K, t)
	if err != nil {
		return err
	}
	at := dst.Extend(e.N)
	e.Mark(dst, at)
	if e.N == 0 {
		return nil
	}
	out := dst.Data(at)
	if err := v.convert(out[:e.K*v.width], raw, e.K); err != nil {
		return err
	}
	if e.K < e.N {
		plain.ExpandFixed(out, v.width, e.N, e.Valid, 0)
	}
	return nil
}

func (v *valueForm) strings(dst *vec.Vector, data []byte, enc int32, e dremel.Entries, t *PageTask) error {
	switch enc {
	case meta.PlainValues:
		return dremel.DecodeStrings(dst, data, e)
	case meta.DeltaLengths:
		if e.K == 0 && len(data) == 0 {
			return dremel.DecodeStrings(dst, nil, e)
		}
		return dremel.DecodeLengthStrings(dst, data, e)
	case meta.DeltaByteArray:
		if e.K == 0 && len(data) == 0 {
			return dremel.DecodeStrings(dst, nil, e)
		}
		return dremel.DecodeDeltaStrings(dst, data, e, t.Limit, t.Arena)
	}
	return v.unsupported(enc)
}

func (v *valueForm) unsupported(enc int32) error {
	return fault.Unsupportedf(fault.Span{}, "", "encoding %s of %s", meta.EnumName(meta.Encodings, enc), v.typ)
}

func (v *valueForm) bits(dst *vec.Vector, data []byte, enc int32, e dremel.Entries) error {
	if enc == meta.PlainValues && len(data) != (e.K+7)/8 {
		return fault.Rel(0, len(data), "values", "%d bytes where %d booleans have %d", len(data), e.K, (e.K+7)/8)
	}
	at := dst.Extend(e.N)
	e.Mark(dst, at)
	if e.N == 0 {
		return nil
	}
	out := dst.Bits()
	switch {
	case enc == meta.PlainValues:
	case enc != meta.RleValues:
		return v.unsupported(enc)
	case e.K == e.N:
		return dremel.DecodeBools(out, at, data, e.K)
	default:
		dense := make([]byte, (e.K+7)/8)
		if err := dremel.DecodeBools(dense, 0, data, e.K); err != nil {
			return err
		}
		data = dense
	}
	dremel.PlaceBits(out, at, data, 0, e)
	return nil
}

// codes appends entries that are codes of the chunk's dictionary.
func (v *valueForm) codes(dst *vec.Vector, data []byte, e dremel.Entries, t *PageTask) error {
	if e.K == 0 { // data is ignored in this case
		dst.ExtendNulls(e.N)
		return nil
	}
	if t.Dict == nil {
		return fault.Rel(0, len(data), "values", "codes, but the column chunk has no dictionary")
	}
	if v.coded() {
		at := dst.Len()
		codes := dst.ExtendCodes(e.N, t.Dict)
		if err := dremel.DecodeCodes(codes[:e.K], data, t.Dict.Len()); err != nil {
			return err
		}
		e.Mark(dst, at)
		if e.K < e.N {
			plain.ExpandFixed(bytesOfCodes(codes), 4, e.N, e.Valid, 0)
		}
		return nil
	}
	codes := t.Arena.Uint32s(e.K)
	if err := dremel.DecodeCodes(codes, data, t.Dict.Len()); err != nil {
		return err
	}
	at := dst.Extend(e.N)
	e.Mark(dst, at)
	if v.Form == formBool {
		return gatherBits(dst, at, t.Dict, codes, e)
	}
	out := dst.Data(at)
	if passed := t.pass(codes, e); passed > 0 || e.K == 0 {
		gather(out, t.Dict, codes, v.width)
	} else {
		clear(out[:e.K*v.width]) // these values are never read
	}
	if e.K < e.N {
		plain.ExpandFixed(out, v.width, e.N, e.Valid, 0)
	}
	return nil
}

// pass records the entries that may pass the scan's filter: those whose code passes, and nulls, which are not in the
// dictionary. It returns the number of values that may pass.
func (t *PageTask) pass(codes []uint32, e dremel.Entries) (values int) {
	if t.Hits == nil || t.Hits.N != t.Dict.Len() {
		return len(codes)
	}
	dense := make([]byte, (e.N+7)/8)
	for i, c := range codes {
		if t.Hits.Has(int(c)) {
			dense[i>>3] |= 1 << (i & 7)
			values++
		}
	}
	if e.K == e.N {
		t.Passed = vec.NewSel(dense, e.N)
		return values
	}
	bits, k := make([]byte, (e.N+7)/8), 0
	for i := range e.N {
		bit := byte(1)
		if e.Valid[i>>3]>>(i&7)&1 != 0 {
			bit = dense[k>>3] >> (k & 7) & 1
			k++
		}
		bits[i>>3] |= bit << (i & 7)
	}
	t.Passed = vec.NewSel(bits, e.N)
	return values
}

func bytesOfCodes(codes []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(codes))), 4*len(codes))
}

// gather writes the values of codes to the start of out. All codes must be in the dictionary.
func gather(out []byte, dict *vec.Vector, codes []uint32, width int) {
	switch width {
	case 4:
		gatherOf(cast[uint32](out, len(codes)), vec.Fixed[uint32](dict, 0), codes)
	case 8:
		gatherOf(cast[uint64](out, len(codes)), vec.Fixed[uint64](dict, 0), codes)
	case 16:
		gatherOf(cast[[2]uint64](out, len(codes)), vec.Fixed[[2]uint64](dict, 0), codes)
	default:
		from := dict.Data(0)
		for i, c := range codes {
			copy(out[i*width:][:width], from[int(c)*width:])
		}
	}
}

func gatherOf[T any](out, dict []T, codes []uint32) {
	for i, c := range codes {
		out[i] = dict[c]
	}
}

func gatherBits(dst *vec.Vector, at int, dict *vec.Vector, codes []uint32, e dremel.Entries) error {
	from, out := dict.Bits(), dst.Bits()
	plain.FillBits(out, at, e.N, false)
	k := 0
	for i := range e.N {
		if e.Valid != nil && e.Valid[i>>3]>>(i&7)&1 == 0 {
			continue
		}
		c := codes[k]
		k++
		if from[c>>3]>>(c&7)&1 == 1 {
			out[(at+i)>>3] |= 1 << ((at + i) & 7)
		}
	}
	return nil
}

// cast views the first n values of b as T.
func cast[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	_ = b[n*int(unsafe.Sizeof(*new(T)))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// dense returns k stored values one after another; decimals in BYTE_ARRAY are already converted to the vector's form.
func (v *valueForm) dense(data []byte, enc int32, k int, t *PageTask) ([]byte, error) {
	if v.typ == meta.TypeBytes {
		return v.denseDecimals(data, enc, k, t)
	}
	size := k * v.stored
	switch enc {
	case meta.PlainValues:
		if len(data) != size {
			return nil, fault.Rel(0, len(data), "values", "%d bytes where %s of %s have %d", len(data),
				fault.Count(k, "value"),
				v.typ, size)
		}
		return data, nil
	case meta.ByteStreamSplit:
		out := t.Arena.Bytes(size)
		return out, dremel.DecodeSplit(out, data, v.stored)
	case meta.DeltaBinaryPacked:
		if k == 0 && len(data) == 0 {
			return nil, nil
		}
		out := t.Arena.Bytes(size)
		var err error
		switch v.typ {
		case meta.TypeInt32:
			_, err = dremel.DecodeDeltas(cast[int32](out, k), data)
		case meta.TypeInt64:
			_, err = dremel.DecodeDeltas(cast[int64](out, k), data)
		default:
			err = v.unsupported(enc)
		}
		return out, err
	case meta.DeltaByteArray:
		if v.typ != meta.TypeFixed {
			return nil, v.unsupported(enc)
		}
		if k == 0 && len(data) == 0 {
			return nil, nil
		}
		out := t.Arena.Bytes(size)
		return out, dremel.DecodeDeltaFixed(out, data, v.stored, k, t.Arena)
	}
	return nil, v.unsupported(enc)
}

// denseDecimals decodes decimals in BYTE_ARRAY to the vector's form.
func (v *valueForm) denseDecimals(data []byte, enc int32, k int, t *PageTask) ([]byte, error) {
	all, err := vec.New(arrow.BinaryTypes.Binary, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	if err := v.strings(all, data, enc, dremel.Entries{N: k, K: k}, t); err != nil {
		return nil, err
	}
	out := t.Arena.Bytes(k * v.width)
	if k == 0 {
		return out, nil
	}
	offs, from := all.Offsets(0), all.StringBytes()
	for i := range k {
		if !fromBigEndian(out[i*v.width:][:v.width], from[offs[i]:offs[i+1]]) {
			return nil, fault.Rel(0, len(data), "values", "value %d: a number of %d bytes does not fit %d", i,
				offs[i+1]-offs[i], v.width)
		}
	}
	return out, nil
}

// convert converts k stored values to the vector's form.
func (v *valueForm) convert(out, raw []byte, k int) error {
	switch v.Form {
	case formCopy:
		copy(out, raw)
	case formNarrow:
		return v.narrow(out, raw, k)
	case formMultiply:
		for i := range k {
			x := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			binary.LittleEndian.PutUint64(out[8*i:], uint64(x*v.factor))
		}
	case formDivide:
		return v.divide(out, raw, k)
	case formUnscaledInt:
		return v.unscaledInts(out, raw, k)
	case formBigEndian:
		if v.typ == meta.TypeBytes { // already converted
			copy(out, raw)
			return nil
		}
		if v.stored <= 16 && v.width == 16 {
			bigEndian16(cast[[2]uint64](out, k), raw, v.stored)
			return nil
		}
		for i := range k {
			if !fromBigEndian(out[i*v.width:][:v.width], raw[i*v.stored:][:v.stored]) {
				return fault.Rel(i*v.stored, v.stored, "values", "a number that does not fit %d bytes", v.width)
			}
		}
	case formInt96:
		return int96Instants(cast[int64](out, k), raw, v.factor)
	}
	return nil
}

// narrow truncates integers that were widened to INT32. A value that fits neither the signed nor the unsigned type is
// damage.
func (v *valueForm) narrow(out, raw []byte, k int) error {
	for i := range k {
		x := int32(binary.LittleEndian.Uint32(raw[4*i:]))
		if v.width == 1 {
			if out[i] = byte(x); x != int32(int8(x)) && x != int32(uint8(x)) {
				return fault.Rel(4*i, 4, "values", "%d does not fit 8 bits", x)
			}
			continue
		}
		if binary.LittleEndian.PutUint16(out[2*i:], uint16(x)); x != int32(int16(x)) && x != int32(uint16(x)) {
			return fault.Rel(4*i, 4, "values", "%d does not fit 16 bits", x)
		}
	}
	return nil
}

// divide divides integers, for milliseconds that the Arrow schema declares as seconds.
func (v *valueForm) divide(out, raw []byte, k int) error {
	for i := range k {
		if v.width == 4 {
			x := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			binary.LittleEndian.PutUint32(out[4*i:], uint32(x/v.factor))
			continue
		}
		x := int64(binary.LittleEndian.Uint64(raw[8*i:]))
		binary.LittleEndian.PutUint64(out[8*i:], uint64(x/v.factor))
	}
	return nil
}

// unscaledInts sign-extends integers to decimals.
func (v *valueForm) unscaledInts(out, raw []byte, k int) error {
	for i := range k {
		var x int64
		if v.stored == 4 {
			x = int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		} else {
			x = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		o := out[i*v.width:][:v.width]
		if v.width == 4 {
			if x != int64(int32(x)) {
				return fault.Rel(8*i, 8, "values", "%d does not fit 32 bits", x)
			}
			binary.LittleEndian.PutUint32(o, uint32(x))
			continue
		}
		binary.LittleEndian.PutUint64(o, uint64(x))
		for j := 8; j < v.width; j += 8 {
			binary.LittleEndian.PutUint64(o[j:], uint64(x>>63))
		}
	}
	return nil
}

// bigEndian16 converts big-endian integers of 1 to 16 bytes to 16 bytes, little-endian.
func bigEndian16(out [][2]uint64, raw []byte, stored int) {
	if stored > 8 {
		shift := uint(8 * (16 - stored)) // of the bytes that are missing from the high word
		for i := range out {
			p := raw[i*stored:][:stored]
			high := int64(0)
			for _, b := range p[:stored-8] {
				high = high<<8 | int64(b)
			}
			out[i] = [2]uint64{binary.BigEndian.Uint64(p[stored-8:]), uint64(high << shift >> shift)}
		}
		return
	}
	shift, i := uint(64-8*stored), 0
	for ; i < len(out) && i*stored+8 <= len(raw); i++ { // load a whole word from the start of the number
		x := int64(binary.BigEndian.Uint64(raw[i*stored:])) >> shift
		out[i] = [2]uint64{uint64(x), uint64(x >> 63)}
	}
	for ; i < len(out); i++ {
		x := int64(0)
		for _, b := range raw[i*stored:][:stored] {
			x = x<<8 | int64(b)
		}
		x = x << shift >> shift
		out[i] = [2]uint64{uint64(x), uint64(x >> 63)}
	}
}

// fromBigEndian converts a big-endian integer to a little-endian one as long as dst and reports whether it fits.
func fromBigEndian(dst, src []byte) bool {
	sign := byte(0)
	if len(src) > 0 && src[0] >= 0x80 {
		sign = 0xff
	}
	for len(src) > len(dst) {
		if src[0] != sign {
			return false
		}
		src = src[1:]
	}
	if len(src) == len(dst) && len(src) > 0 && (src[0]^sign) >= 0x80 {
		return false
	}
	n := len(src)
	for i, b := range src {
		dst[n-1-i] = b
	}
	for i := n; i < len(dst); i++ {
		dst[i] = sign
	}
	return true
}

// julianEpoch is 1970-01-01 as a Julian day number.
const julianEpoch = 2_440_588

// int96Instants converts INT96, nanoseconds of the day in 8 bytes and the Julian day in 4, to multiples of unit
// nanoseconds since 1970. Fractions of a unit are truncated.
//
// Spark computes in microseconds, which overflow for the last years that 64 bits can represent when it converts them to
// a Julian day: day and time are then negative. In microseconds the result wraps back; in any other case the time of
// day is not negative.
func int96Instants(out []int64, raw []byte, unit int64) error {
	day := 86_400_000_000_000 / unit
	for i := range out {
		p := raw[12*i:]
		part, days := int64(binary.LittleEndian.Uint64(p)), int64(int32(binary.LittleEndian.Uint32(p[8:])))-julianEpoch
		if unit > 1 {
			part /= unit
		}
		at := days * day
		if days > math.MaxInt64/day || days < math.MinInt64/day || (part > 0 && at > math.MaxInt64-part) ||
			(part < 0 && at < math.MinInt64-part) {
			if unit == 1 || part >= 0 {
				return farInstant(i, days, unit)
			}
		}
		out[i] = at + part
	}
	return nil
}

// farInstant returns the error for value i, which does not fit in 64 bits.
func farInstant(i int, days, unit int64) error {
	read := "nanoseconds, of the years 1677 to 2262 (int96=us reads microseconds)"
	if unit > 1 {
		read = "microseconds, 292,000 years before and after 1970"
	}
	return fault.New(fault.Unsupported, fault.Span{Off: int64(12 * i), Len: 12}, "values", "the file may be sound, "+
		"but its INT96 is read as %s: this is day %d since 1970", read, days)
}
