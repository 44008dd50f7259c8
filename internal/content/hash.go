package content

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/zeebo/xxh3"

	"stoa/internal/diff"
	"stoa/internal/enc/half"
)

// Numbers without a pattern (the fractions of square roots, as in SHA-2): one for each kind of value, so that hashes of
// 0 are spread as well.
const (
	nullHash    = 0x6a09e667f3bcc908
	wholeSeed   = 0xbb67ae8584caa73b
	largeSeed   = 0x3c6ef372fe94f82b // integers above the largest int64
	realSeed    = 0xa54ff53a5f1d36f1
	truthSeed   = 0x510e527fade682d1
	instantSeed = 0x9b05688c2b3e6c1f
	decimalSeed = 0x1f83d9abfb41bd6b
	listSeed    = 0x5be0cd19137e2179
	recordSeed  = 0xcbbb9d5dc1059ed8
	factor      = 0x9fb21c651e98df25 // odd
)

// scramble spreads every bit over all bits, one to one (the final step of splitmix64).
func scramble(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// fold combines the hash of the next value with that of the values before it.
func fold(h, next uint64) uint64 {
	h = (bits.RotateLeft64(h, 23) ^ next) * factor
	return h ^ h>>32
}

// kept is the state that hashing keeps between batches.
type kept struct {
	dict  arrow.ArrayData // the dictionary whose values are hashed in words
	words []uint64
	child []uint64
	bytes []byte
}

// hash writes the hashes of cells from, from+1, … of a, which is of the given side, until out is full.
func (n *node) hash(out []uint64, a arrow.Array, from, side int) {
	if x, ok := a.(array.ExtensionArray); ok {
		n.hash(out, x.Storage(), from, side)
		return
	}
	switch a := a.(type) {
	case *array.Null:
		for i := range out {
			out[i] = nullHash
		}
		return
	case *array.Dictionary:
		n.coded(out, a, from, side)
		return
	}
	switch n.way {
	case diff.Integer:
		wholes(out, a, from)
	case diff.Float:
		reals(out, a, from)
	case diff.Boolean:
		truths(out, a, from)
	case diff.Bytes:
		n.octets(out, a, from)
	case diff.Instant:
		n.instants(out, a, from, side)
	case diff.Decimal:
		decimalNumbers(out, a, from)
	case diff.List:
		n.list(out, a.(array.ListLike), from, side)
	case diff.Struct:
		n.record(out, a.(*array.Struct), from, side)
	default:
		n.words(out, a, from, side)
	}
	holes(out, a, from)
}

// holes writes the hash of null wherever a is null.
func holes(out []uint64, a arrow.Array, from int) {
	if a.NullN() == 0 {
		return
	}
	valid, first := a.NullBitmapBytes(), a.Data().Offset()+from
	if len(valid) == 0 {
		return
	}
	for i := 0; i < len(out); {
		if at := first + i; at&7 == 0 && i+8 <= len(out) && valid[at>>3] == 0xff {
			i += 8
			continue
		}
		if bitutil.BitIsNotSet(valid, first+i) {
			out[i] = nullHash
		}
		i++
	}
}

// coded looks up the hashes of a dictionary's values. They are computed once per dictionary, unless the dictionary is
// far larger than the rows.
func (n *node) coded(out []uint64, a *array.Dictionary, from, side int) {
	m := &n.kept[side]
	values := a.Dictionary()
	if m.dict != values.Data() {
		if values.Len() > 16*len(out)+1024 {
			for i := range out {
				out[i] = nullHash
				if k := a.GetValueIndex(from + i); a.IsValid(from+i) && k >= 0 && k < values.Len() {
					n.hash(out[i:i+1], values, k, side)
				}
			}
			return
		}
		m.words, m.dict = sized(m.words, values.Len()), values.Data()
		n.hash(m.words, values, 0, side)
	}
	for i := range out {
		out[i] = nullHash
		if a.IsNull(from + i) {
			continue
		}
		// a code under a null struct may point at nothing; what is hashed there is of no account
		if k := a.GetValueIndex(from + i); k >= 0 && k < len(m.words) {
			out[i] = m.words[k]
		}
	}
}

func wholes(out []uint64, a arrow.Array, from int) {
	switch a := a.(type) {
	case *array.Int8:
		numbers(out, a.Int8Values()[from:])
	case *array.Int16:
		numbers(out, a.Int16Values()[from:])
	case *array.Int32:
		numbers(out, a.Int32Values()[from:])
	case *array.Int64:
		numbers(out, a.Int64Values()[from:])
	case *array.Uint8:
		numbers(out, a.Uint8Values()[from:])
	case *array.Uint16:
		numbers(out, a.Uint16Values()[from:])
	case *array.Uint32:
		numbers(out, a.Uint32Values()[from:])
	case *array.Uint64:
		for i, v := range a.Uint64Values()[from : from+len(out)] {
			if v > math.MaxInt64 {
				out[i] = scramble(v ^ largeSeed)
			} else {
				out[i] = scramble(v ^ wholeSeed)
			}
		}
	}
}

func numbers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](out []uint64, v []T) {
	v = v[:len(out)]
	for i := range out {
		out[i] = scramble(uint64(int64(v[i])) ^ wholeSeed)
	}
}

func reals(out []uint64, a arrow.Array, from int) {
	switch a := a.(type) {
	case *array.Float16:
		for i := range out {
			out[i] = realHash(float64(half.Float(a.Value(from + i).Uint16())))
		}
	case *array.Float32:
		for i, v := range a.Float32Values()[from : from+len(out)] {
			out[i] = realHash(float64(v))
		}
	case *array.Float64:
		for i, v := range a.Float64Values()[from : from+len(out)] {
			out[i] = realHash(v)
		}
	}
}

// realHash hashes a float: all NaN are equal, and so are the zeros.
func realHash(f float64) uint64 {
	switch {
	case f != f:
		f = math.NaN()
	case f == 0:
		f = 0
	}
	return scramble(math.Float64bits(f) ^ realSeed)
}

func truths(out []uint64, a arrow.Array, from int) {
	hashes := [2]uint64{scramble(truthSeed), scramble(truthSeed + 1)}
	var bits []byte // an array of nulls may have no buffer
	if b := a.Data().Buffers()[1]; b != nil {
		bits = b.Bytes()
	}
	at := a.Data().Offset() + from
	if len(bits)*8 < at+len(out) {
		bits, at = make([]byte, (len(out)+7)/8), 0
	}
	for i := range out {
		k := at + i
		out[i] = hashes[bits[k>>3]>>(k&7)&1]
	}
}

func (n *node) octets(out []uint64, a arrow.Array, from int) {
	switch a := a.(type) {
	case *array.String:
		texts(out, a.ValueOffsets()[from:], dataOf(a))
	case *array.Binary:
		texts(out, a.ValueOffsets()[from:], dataOf(a))
	case *array.LargeString:
		texts(out, a.ValueOffsets()[from:], dataOf(a))
	case *array.LargeBinary:
		texts(out, a.ValueOffsets()[from:], dataOf(a))
	case *array.FixedSizeBinary:
		for i := range out {
			out[i] = xxh3.Hash(a.Value(from + i))
		}
	case *array.BinaryView:
		viewed(out, a, from, a.Value, xxh3.Hash)
	case *array.StringView:
		viewed(out, a, from, a.Value, xxh3.HashString)
	}
}

// viewed hashes values of views. Below a null there may be any bytes, which as a view would point nowhere.
func viewed[T any](out []uint64, a arrow.Array, from int, value func(int) T, hash func(T) uint64) {
	for i := range out {
		if a.IsValid(from + i) {
			out[i] = hash(value(from + i))
		}
	}
}

// dataOf returns the buffer to which offsets refer.
func dataOf(a arrow.Array) []byte {
	if b := a.Data().Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

func texts[T int32 | int64](out []uint64, offsets []T, data []byte) {
	if len(offsets) == 0 { // an array without entries may have no buffer
		return
	}
	for i := range out {
		out[i] = xxh3.Hash(data[offsets[i]:offsets[i+1]])
	}
}

// rounding is the unit to whose multiples timestamps of side 0 are rounded; 0 nanoseconds means no rounding.
type rounding struct {
	nanos   int64
	nearest bool
}

// rounded rounds timestamps whose unit is own nanoseconds.
func (r rounding) rounded(v []arrow.Timestamp, own int64) []arrow.Timestamp {
	out := make([]arrow.Timestamp, len(v))
	per := arrow.Timestamp(r.nanos / own)
	for i, x := range v {
		rest := x % per
		if rest < 0 {
			rest += per
		}
		if out[i] = x - rest; r.nearest && 2*rest >= per {
			out[i] += per
		}
	}
	return out
}

// instants hashes dates and times as nanoseconds, in 128 bits.
func (n *node) instants(out []uint64, a arrow.Array, from, side int) {
	const day = 24 * 60 * 60 * 1_000_000_000
	switch a := a.(type) {
	case *array.Date32:
		moments(out, a.Date32Values()[from:], day)
	case *array.Date64:
		moments(out, a.Date64Values()[from:], int64(time.Millisecond))
	case *array.Timestamp:
		own := int64(a.DataType().(*arrow.TimestampType).Unit.Multiplier())
		v := a.TimestampValues()[from : from+len(out)]
		if side == 0 && n.nanos > own {
			v = n.rounded(v, own)
		}
		moments(out, v, own)
	case *array.Time32:
		moments(out, a.Time32Values()[from:], int64(a.DataType().(*arrow.Time32Type).Unit.Multiplier()))
	case *array.Time64:
		moments(out, a.Time64Values()[from:], int64(a.DataType().(*arrow.Time64Type).Unit.Multiplier()))
	case *array.Duration:
		moments(out, a.DurationValues()[from:], int64(a.DataType().(*arrow.DurationType).Unit.Multiplier()))
	}
}

func moments[T ~int32 | ~int64](out []uint64, v []T, nanos int64) {
	v = v[:len(out)]
	for i := range out {
		x := int64(v[i])
		hi, lo := bits.Mul64(uint64(x), uint64(nanos))
		hi -= uint64(x>>63) & uint64(nanos) // x is signed
		out[i] = scramble(lo ^ instantSeed + hi*factor)
	}
}

func (n *node) list(out []uint64, a array.ListLike, from, side int) {
	if len(out) == 0 {
		return
	}
	first, _ := a.ValueOffsets(from)
	_, last := a.ValueOffsets(from + len(out) - 1)
	m := &n.kept[side]
	m.child = sized(m.child, int(last-first))
	n.children[0].hash(m.child, a.ListValues(), int(first), side)
	for i := range out {
		p, q := a.ValueOffsets(from + i)
		h := uint64(q-p) ^ listSeed
		for _, k := range m.child[p-first : q-first] {
			h = fold(h, k)
		}
		out[i] = scramble(h)
	}
}

func (n *node) record(out []uint64, a *array.Struct, from, side int) {
	m := &n.kept[side]
	m.child = sized(m.child, len(out))
	for i := range out {
		out[i] = recordSeed
	}
	for k, child := range n.children {
		child.hash(m.child, a.Field(n.at[side][k]), from, side)
		for i, h := range m.child {
			out[i] = fold(out[i], h)
		}
	}
	for i := range out {
		out[i] = scramble(out[i])
	}
}

// words hashes all types that have no method of their own.
func (n *node) words(out []uint64, a arrow.Array, from, side int) {
	m := &n.kept[side]
	for i := range out {
		m.bytes = n.cells.Append(m.bytes[:0], a, from+i, side)
		if out[i] = nullHash; m.bytes[0] != 0 { // only unions have nulls that no bitmap shows
			out[i] = xxh3.Hash(m.bytes)
		}
	}
}

// decimalNumbers hashes decimals by sign, digits and power of ten, without trailing zeros.
func decimalNumbers(out []uint64, a arrow.Array, from int) {
	scale := int32(0)
	if t, ok := a.DataType().(arrow.DecimalType); ok {
		scale = t.GetScale()
	}
	switch a := a.(type) {
	case *array.Decimal32:
		for i := range out {
			out[i] = decimalHash(0, uint64(int64(a.Value(from+i))), int64(a.Value(from+i)) < 0, scale)
		}
	case *array.Decimal64:
		for i := range out {
			out[i] = decimalHash(0, uint64(a.Value(from+i)), a.Value(from+i) < 0, scale)
		}
	case *array.Decimal128:
		for i, v := range a.Values()[from : from+len(out)] {
			hi := uint64(v.HighBits())
			if v.HighBits() == -1 && int64(v.LowBits()) < 0 {
				hi = 0
			}
			out[i] = decimalHash(hi, v.LowBits(), v.HighBits() < 0, scale)
		}
	case *array.Decimal256:
		for i := range out {
			out[i] = largeHash(a.Value(from+i).BigInt(), scale)
		}
	case *array.Uint64:
		for i, v := range a.Uint64Values()[from : from+len(out)] {
			out[i] = decimalHash(0, v, false, 0)
		}
	default:
		integers(out, a, from)
	}
}

// integers hashes integers that are compared with decimals.
func integers(out []uint64, a arrow.Array, from int) {
	each := func(value func(i int) int64) {
		for i := range out {
			v := value(from + i)
			out[i] = decimalHash(0, uint64(v), v < 0, 0)
		}
	}
	switch a := a.(type) {
	case *array.Int8:
		each(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int16:
		each(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int32:
		each(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int64:
		each(a.Value)
	case *array.Uint8:
		each(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Uint16:
		each(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Uint32:
		each(func(i int) int64 { return int64(a.Value(i)) })
	}
}

// decimalHash hashes a two's complement number. If it is negative, hi may be 0 instead of the sign extension, provided
// that lo alone is negative as an int64.
func decimalHash(hi, lo uint64, negative bool, scale int32) uint64 {
	if negative && hi == 0 {
		lo = -lo
	} else if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	if hi|lo == 0 {
		return scramble(decimalSeed)
	}
	for hi == 0 && lo&1 == 0 { // a number that ends in 0 is even
		q := lo / 10
		if q*10 != lo {
			return digitsHash(0, 0, lo, negative, scale)
		}
		lo, scale = q, scale-1
	}
	for lo&1 == 0 {
		qhi, rhi := hi/10, hi%10
		qlo, rest := bits.Div64(rhi, lo, 10)
		if rest != 0 {
			break
		}
		hi, lo, scale = qhi, qlo, scale-1
	}
	return digitsHash(0, hi, lo, negative, scale)
}

func digitsHash(rest, hi, lo uint64, negative bool, scale int32) uint64 {
	h := scramble(rest ^ decimalSeed + uint64(uint32(scale))<<1)
	if negative {
		h++
	}
	return scramble(fold(scramble(h)+hi*factor, lo))
}

// largeHash is decimalHash for a number of any length.
func largeHash(v *big.Int, scale int32) uint64 {
	negative := v.Sign() < 0
	v = new(big.Int).Abs(v)
	if v.Sign() == 0 {
		return scramble(decimalSeed)
	}
	ten, rest := big.NewInt(10), new(big.Int)
	for {
		q, _ := new(big.Int).QuoRem(v, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		v, scale = q, scale-1
	}
	var b [32]byte
	v.FillBytes(b[:])
	more := uint64(0)
	if v.BitLen() > 128 {
		more = xxh3.Hash(b[:16]) | 1
	}
	return digitsHash(more, binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:]), negative, scale)
}
