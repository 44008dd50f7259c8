package write

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/enc/half"
	"stoa/internal/enc/plain"
)

// The conversions of source.conv: dense values of one width to dense values of another. They return the index of the
// first value that has no exact counterpart, or -1.

// Coercion states how timestamps with fractions of a microsecond are handled.
type Coercion uint8

const (
	Refuse    Coercion = iota
	ToNearest          // the nearest microsecond; the later of two equally near
	ToFloor            // the microsecond at or before
)

// String returns the value of the option.
func (o Coercion) String() string { return [...]string{"refuse", "us", "floor"}[o] }

// microsOf converts timestamps of a unit to microseconds; nil if no conversion is needed.
func microsOf(u arrow.TimeUnit, o Coercion) func(dst, src []byte) int {
	switch u {
	case arrow.Second:
		return timesMicros(1_000_000)
	case arrow.Millisecond:
		return timesMicros(1_000)
	case arrow.Nanosecond:
		return func(dst, src []byte) int {
			d := view[int64](dst)
			for i, x := range view[int64](src) {
				var ok bool
				if d[i], ok = o.micros(x); !ok {
					return i
				}
			}
			return -1
		}
	}
	return nil
}

// micros converts a timestamp from nanoseconds to microseconds. It returns false if there is no such microsecond, or if
// that microsecond could not be converted back to nanoseconds.
func (o Coercion) micros(x int64) (int64, bool) {
	q, rest := x/1000, x%1000
	if rest == 0 {
		return q, true
	}
	if rest < 0 {
		q, rest = q-1, rest+1000
	}
	if o == ToNearest && rest >= 500 {
		q++
	}
	return q, o != Refuse && q <= math.MaxInt64/1000 && q >= math.MinInt64/1000
}

func timesMicros(by int64) func(dst, src []byte) int {
	return func(dst, src []byte) int {
		d := view[int64](dst)
		for i, x := range view[int64](src) {
			if x > math.MaxInt64/by || x < math.MinInt64/by {
				return i
			}
			d[i] = x * by
		}
		return -1
	}
}

const dayMillis = 24 * 60 * 60 * 1000

func daysOfMillis(dst, src []byte) int {
	d := view[int32](dst)
	for i, x := range view[int64](src) {
		q := x / dayMillis
		if q*dayMillis != x || int64(int32(q)) != q {
			return i
		}
		d[i] = int32(q)
	}
	return -1
}

// floatOfHalf is lossless: every float16 is a float32.
func floatOfHalf(dst, src []byte) int {
	d := view[float32](dst)
	for i, x := range view[uint16](src) {
		d[i] = half.Float(x)
	}
	return -1
}

// decimalConv converts decimals of from bytes to decimals of to bytes with at most digits digits.
func decimalConv(from, to, digits int) func(dst, src []byte) int {
	hi, lo := pow10(digits)
	return func(dst, src []byte) int {
		for i := range len(src) / from {
			x := loadDecimal(src, from, i)
			if !below(x, hi, lo) {
				return i
			}
			storeDecimal(dst, to, i, x)
		}
		return -1
	}
}

// pow10 is 10ⁿ, n ≤ 38, as two 64-bit words.
func pow10(n int) (hi, lo uint64) {
	lo = 1
	for range n {
		h, l := bits.Mul64(lo, 10)
		hi, lo = hi*10+h, l
	}
	return hi, lo
}

// below reports whether |x| < hi:lo; x is two's complement, low word first.
func below(x [2]uint64, hi, lo uint64) bool {
	if int64(x[1]) < 0 {
		var b uint64
		x[0], b = bits.Sub64(0, x[0], 0)
		x[1], _ = bits.Sub64(0, x[1], b)
	}
	return x[1] < hi || x[1] == hi && x[0] < lo
}

func loadDecimal(src []byte, width, i int) [2]uint64 {
	switch width {
	case 4:
		x := int64(view[int32](src)[i])
		return [2]uint64{uint64(x), uint64(x >> 63)}
	case 8:
		x := view[int64](src)[i]
		return [2]uint64{uint64(x), uint64(x >> 63)}
	case 32:
		x := view[[4]uint64](src)[i]
		if sign := uint64(int64(x[1]) >> 63); x[2] != sign || x[3] != sign {
			return [2]uint64{math.MaxUint64, math.MaxInt64} // has more than 38 digits, as x has
		}
		return [2]uint64{x[0], x[1]}
	}
	return view[[2]uint64](src)[i]
}

func storeDecimal(dst []byte, width, i int, x [2]uint64) {
	switch width {
	case 4:
		view[uint32](dst)[i] = uint32(x[0])
	case 8:
		view[uint64](dst)[i] = x[0]
	default:
		view[[2]uint64](dst)[i] = x
	}
}

// validityOf returns a struct array's validity bitmap as an array of bools.
func validityOf(st arrow.Array) arrow.Array {
	bits := make([]byte, (st.Len()+7)/8)
	for i := range st.Len() {
		if st.IsValid(i) {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	d := array.NewData(arrow.FixedWidthTypes.Boolean, st.Len(), []*memory.Buffer{nil, memory.NewBufferBytes(bits)}, nil,
		0, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// withoutViews returns arr, or an array of plain strings in place of string views. It takes ownership of arr.
func withoutViews(arr arrow.Array) arrow.Array {
	switch x := arr.(type) {
	case *array.StringView:
		defer arr.Release()
		b := array.NewLargeStringBuilder(memory.DefaultAllocator)
		return copied(x, b, func(i int) { b.Append(x.Value(i)) })
	case *array.BinaryView:
		defer arr.Release()
		b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
		return copied(x, b, func(i int) { b.Append(x.Value(i)) })
	}
	return arr
}

func copied(a arrow.Array, b array.Builder, put func(int)) arrow.Array {
	defer b.Release()
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			put(i)
		}
	}
	return b.NewArray()
}

// underNulls returns child with the nulls of its parent struct added to its own.
func underNulls(st *array.Struct, child arrow.Array) arrow.Array {
	n := child.Len()
	valid := make([]byte, (n+7)/8)
	nulls := 0
	for i := range n {
		if st.IsNull(i) || child.IsNull(i) {
			nulls++
		} else {
			valid[i>>3] |= 1 << (i & 7)
		}
	}
	d := child.Data()
	// The child may have an offset, which also applies to its bitmap.
	bits := make([]byte, (d.Offset()+n+7)/8)
	plain.CopyBits(bits, d.Offset(), valid, 0, n)
	bufs := append([]*memory.Buffer{memory.NewBufferBytes(bits)}, d.Buffers()[1:]...)
	if d.DataType().ID() == arrow.DICTIONARY {
		out := array.NewDataWithDictionary(d.DataType(), n, bufs, nulls, d.Offset(), d.Dictionary().(*array.Data))
		defer out.Release()
		return array.MakeFromData(out)
	}
	out := array.NewData(d.DataType(), n, bufs, d.Children(), nulls, d.Offset())
	defer out.Release()
	return array.MakeFromData(out)
}
