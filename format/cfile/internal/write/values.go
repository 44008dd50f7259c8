package write

import (
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/internal/enc/plain"
)

// source is an Arrow array as a Writer reads it: its buffers, from the array's offset on. A field accepts these Arrow
// types:
//
//	int8 … uint64          the same; int32 also time32, int64 also time64 and duration
//	float, double          float32 (and float16, widened), float64
//	bool                   bool
//	string, varchar        utf8, large_utf8
//	binary                 binary, large_binary, fixed_size_binary
//	unixtime_micros        timestamp of any unit; one of a fraction of a microsecond is refused, or coerced
//	date                   date32; date64 if it is whole days
//	decimal32, 64, 128     decimals of any width, of the field's scale; a value with more digits is refused
//	int128                 fixed_size_binary(16), little-endian two's complement; decimal128 of scale 0
//
// and dictionary arrays of these.
type source struct {
	name  string
	n     int
	width int    // bytes of a fixed-width value
	fixed []byte // n values
	bits  []byte // bool: bool: bits from bit at on
	at    int
	offs  []int32 // strings: n+1 offsets, here or in wide
	wide  []int64
	size  int // fixed-size binary as a string: bytes of each
	data  []byte
	index []int32 // dictionary of strings: index in offs of each row

	valid   []byte // nil: no nulls; else the bitmap from bit validAt on
	validAt int

	// converts dense values of width bytes to the form of the type; returns the index of one that does not fit, or -1
	conv   func(dst, src []byte) int
	target int    // width after conv
	reason string // why a value does not fit; "": unspecified
	chars  int    // largest number of characters of a varchar; 0: any
}

// writeScratch is memory that is reused from chunk to chunk.
type writeScratch struct {
	dense, conv, bits []byte
	strs              []strSpan
}

// portion is a range of rows: the values that are not null, and the rows they are in.
type portion struct {
	values dense
	rows   int
	valid  []byte // from bit at on; nil: no row is null
	at     int
}

func newSource(f *Field, arr arrow.Array, o Coercion) (*source, error) {
	if d, ok := arr.(*array.Dictionary); ok {
		return newDictSource(f, d, o)
	}
	c := &source{name: f.Name, n: arr.Len()}
	d := arr.Data()
	off := d.Offset()
	if !c.accepts(f, arr.DataType(), o) {
		return nil, fault.Invalidf("column %q: %s does not hold values of type %s", f.Name, f.describe(),
			arr.DataType())
	}
	if arr.NullN() > 0 {
		c.valid, c.validAt = d.Buffers()[0].Bytes(), off
	}
	if c.n == 0 {
		return c, nil
	}
	end := off + c.n
	switch arr.DataType().ID() {
	case arrow.BOOL:
		c.bits, c.at = c.buffer(arr, 1, (end+7)/8), off
	case arrow.STRING, arrow.BINARY:
		c.offs = view[int32](c.buffer(arr, 1, 4*(end+1)))[off : end+1]
		c.data = c.buffer(arr, 2, int(c.offs[c.n]))
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		c.wide = view[int64](c.buffer(arr, 1, 8*(end+1)))[off : end+1]
		c.data = c.buffer(arr, 2, int(c.wide[c.n]))
	default:
		if c.width == 0 {
			c.data = c.buffer(arr, 1, end*c.size)[off*c.size : end*c.size]
		} else {
			c.fixed = c.buffer(arr, 1, end*c.width)[off*c.width : end*c.width]
		}
	}
	return c, nil
}

// buffer returns buffer i of an array, with need bytes. An array of nulls may lack the buffer; it is then zeros.
func (c *source) buffer(arr arrow.Array, i, need int) []byte {
	var b []byte
	if x := arr.Data().Buffers()[i]; x != nil {
		b = x.Bytes()
	}
	if len(b) < need && arr.NullN() == arr.Len() {
		return make([]byte, need)
	}
	return b
}

// plainIDs are the types that are stored as they are.
var plainIDs = map[block.Type][]arrow.Type{
	block.Uint8: {arrow.UINT8}, block.Int8: {arrow.INT8}, block.Uint16: {arrow.UINT16}, block.Int16: {arrow.INT16},
	block.Uint32: {arrow.UINT32}, block.Int32: {arrow.INT32, arrow.TIME32},
	block.Uint64: {arrow.UINT64}, block.Int64: {arrow.INT64, arrow.TIME64, arrow.DURATION},
	block.Bool: {arrow.BOOL}, block.Float: {arrow.FLOAT32}, block.Double: {arrow.FLOAT64}, block.Date: {arrow.DATE32},
	block.String:  {arrow.STRING, arrow.LARGE_STRING},
	block.Varchar: {arrow.STRING, arrow.LARGE_STRING},
	block.Binary:  {arrow.BINARY, arrow.LARGE_BINARY},
}

// accepts reports whether field f accepts Arrow type t, and sets the conversion.
func (c *source) accepts(f *Field, t arrow.DataType, o Coercion) bool {
	c.width, c.target = f.Type.Width(), f.Type.Width()
	for _, id := range plainIDs[f.Type] {
		if id == t.ID() {
			if f.Type == block.Varchar {
				c.chars = f.Length
			}
			return true
		}
	}
	switch t := t.(type) {
	case *arrow.TimestampType:
		c.conv = microsOf(t.Unit, o)
		if c.reason = "it is farther from 1970 than microseconds of 64 bits reach"; t.Unit == arrow.Nanosecond {
			c.reason = "it is finer than a microsecond, and a CFile holds no finer timestamps (coerce=us takes " +
				"the nearest, " +
				"coerce=floor the one before)"
			if o != Refuse {
				c.reason = "the microsecond that it would become is not a timestamp of nanoseconds"
			}
		}
		return f.Type == block.UnixtimeMicros
	case *arrow.Date64Type:
		c.width, c.conv = 8, daysOfMillis
		return f.Type == block.Date
	case *arrow.Float16Type:
		c.width, c.conv = 2, floatOfHalf
		return f.Type == block.Float
	case *arrow.FixedSizeBinaryType:
		if f.Type == block.Binary {
			c.width, c.target, c.size = 0, 0, t.ByteWidth
			return true
		}
		return f.Type == block.Int128 && t.ByteWidth == 16
	case arrow.DecimalType:
		if f.Type == block.Int128 {
			return t.ID() == arrow.DECIMAL128 && t.GetScale() == 0
		}
		digits := f.Type.Digits()
		if digits == 0 || int(t.GetScale()) != f.Scale {
			return false
		}
		if f.Precision != 0 {
			digits = f.Precision
		}
		c.width, c.conv = t.BitWidth()/8, decimalConv(t.BitWidth()/8, c.target, digits)
		return true
	}
	return false
}

// rowOf returns the row number in the file of the i-th row of a chunk, for messages.
type rowOf func(i int) int64

// chunk gathers rows [a, b).
func (c *source) chunk(a, b int, s *writeScratch, at rowOf) (*portion, error) {
	ch := &portion{rows: b - a}
	n := b - a
	if c.valid != nil {
		n = plain.CountBits(c.valid, c.validAt+a, b-a)
		if n < b-a {
			ch.valid, ch.at = c.valid, c.validAt+a
		}
	}
	v := &ch.values
	v.n = n
	var err error
	switch {
	case c.bits != nil:
		c.gatherBits(ch, a, s)
	case c.fixed != nil:
		err = c.gatherFixed(ch, a, b, s, at)
	case c.n > 0:
		err = c.gatherStrings(ch, a, b, s, at)
	}
	return ch, err
}

func (c *source) gatherBits(ch *portion, a int, s *writeScratch) {
	if ch.valid == nil {
		ch.values.bits, ch.values.at = c.bits, c.at+a
		return
	}
	s.bits = s.bits[:0]
	var acc uint64
	have := 0
	for i := 0; i < ch.rows; i += 32 {
		k := min(32, ch.rows-i)
		m, x := loadBits(ch.valid, ch.at+i, k), loadBits(c.bits, c.at+a+i, k)
		for ; m != 0; m &= m - 1 {
			acc |= x >> uint(bits.TrailingZeros64(m)) & 1 << uint(have)
			have++
		}
		for ; have >= 8; have -= 8 {
			s.bits = append(s.bits, byte(acc))
			acc >>= 8
		}
	}
	s.bits = append(s.bits, byte(acc))
	ch.values.bits, ch.values.at = s.bits, 0
}

func (c *source) gatherFixed(ch *portion, a, b int, s *writeScratch, at rowOf) error {
	dense := c.fixed[a*c.width : b*c.width]
	if ch.valid != nil {
		s.dense = resized(s.dense, (b-a)*c.width)
		compact(s.dense, dense, c.width, ch.valid, ch.at, ch.rows)
		dense = s.dense[:ch.values.n*c.width]
	}
	if c.conv != nil {
		s.conv = resized(s.conv, ch.values.n*c.target)
		if bad := c.conv(s.conv, dense); bad >= 0 {
			why := c.reason
			if why == "" {
				why = "it is none of the column's type"
			}
			return fault.Invalidf("column %q, row %d: the value does not fit: %s", c.name,
				at(ch.rowAfter(0, bad+1)-1), why)
		}
		dense = s.conv
	}
	ch.values.fixed = dense
	return nil
}

// resized returns b with length n, reallocated if its capacity is smaller.
func resized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// gatherStrings collects the spans of the strings. More than 4 GiB in a chunk of rows are an error.
func (c *source) gatherStrings(ch *portion, a, b int, s *writeScratch, at rowOf) error {
	s.strs = s.strs[:0]
	switch {
	case c.index != nil:
		ch.values.data = c.data
		s.strs = gatherIndexed(s.strs, c.index[a:b], c.offs, ch)
	case c.offs != nil:
		first := c.offs[a]
		ch.values.data = c.data[first:c.offs[b]]
		s.strs = gatherSpans(s.strs, c.offs[a:b+1], ch)
	case c.wide != nil:
		if c.wide[b]-c.wide[a] > math.MaxUint32 {
			return fault.Limitf(fault.Span{}, c.name, "%s from %d on have %d bytes", fault.Count(b-a, "row"), at(0),
				c.wide[b]-c.wide[a])
		}
		ch.values.data = c.data[c.wide[a]:c.wide[b]]
		s.strs = gatherSpans(s.strs, c.wide[a:b+1], ch)
	default:
		ch.values.data = c.data[a*c.size : b*c.size]
		for i := range b - a {
			if ch.valid == nil || bitAt(ch.valid, ch.at+i) {
				s.strs = append(s.strs, strSpan{uint32(i * c.size), uint32((i + 1) * c.size)})
			}
		}
	}
	ch.values.strs = s.strs
	if c.chars > 0 {
		return c.checkLengths(ch, at)
	}
	return nil
}

func gatherSpans[T int32 | int64](dst []strSpan, offs []T, ch *portion) []strSpan {
	first := offs[0]
	if ch.valid == nil {
		lo := uint32(0)
		for _, o := range offs[1:] {
			hi := uint32(o - first)
			dst = append(dst, strSpan{lo, hi})
			lo = hi
		}
		return dst
	}
	for i := 0; i < ch.rows; i += 32 {
		for m := loadBits(ch.valid, ch.at+i, min(32, ch.rows-i)); m != 0; m &= m - 1 {
			j := i + bits.TrailingZeros64(m)
			dst = append(dst, strSpan{uint32(offs[j] - first), uint32(offs[j+1] - first)})
		}
	}
	return dst
}

// checkLengths counts the characters of a varchar.
func (c *source) checkLengths(ch *portion, at rowOf) error {
	for i, s := range ch.values.strs {
		if int(s.hi-s.lo) > c.chars && utf8.RuneCount(ch.values.data[s.lo:s.hi]) > c.chars {
			return fault.Invalidf("column %q, row %d: more than %d characters", c.name, at(ch.rowAfter(0, i+1)-1),
				c.chars)
		}
	}
	return nil
}

func bitAt(b []byte, i int) bool { return b[i>>3]>>(i&7)&1 != 0 }

func (ch *portion) nulls() int { return ch.rows - ch.values.n }

func (ch *portion) firstNull() int { return ch.runEnd(0, ch.rows) }

// rowAfter returns the row after the row that has the k-th value, k ≥ 1, counted from row on.
func (ch *portion) rowAfter(row, k int) int {
	if ch.valid == nil {
		return row + k
	}
	for {
		m := min(56, ch.rows-row)
		w := loadBits(ch.valid, ch.at+row, m)
		ones := bits.OnesCount64(w)
		if ones >= k {
			for ; k > 1; k-- {
				w &= w - 1
			}
			return row + bits.TrailingZeros64(w) + 1
		}
		k -= ones
		row += m
	}
}

// runEnd returns the first null row from row on, or end.
func (ch *portion) runEnd(row, end int) int {
	if ch.valid == nil {
		return end
	}
	for row < end && bitAt(ch.valid, ch.at+row) {
		row++
	}
	return row
}

// compact moves the values of the rows that are not null to the front of dst, which is as long as src.
func compact(dst, src []byte, width int, valid []byte, at, n int) {
	switch width {
	case 1:
		compactAs[uint8](dst, src, valid, at, n)
	case 2:
		compactAs[uint16](dst, src, valid, at, n)
	case 4:
		compactAs[uint32](dst, src, valid, at, n)
	case 8:
		compactAs[uint64](dst, src, valid, at, n)
	case 16:
		compactAs[[2]uint64](dst, src, valid, at, n)
	default:
		compactAs[[4]uint64](dst, src, valid, at, n)
	}
}

func compactAs[T any](dst, src []byte, valid []byte, at, n int) {
	d, s := view[T](dst), view[T](src)
	k := 0
	for i := 0; i < n; i += 32 {
		m := min(32, n-i)
		w := loadBits(valid, at+i, m)
		if w == 1<<uint(m)-1 {
			k += copy(d[k:], s[i:i+m])
			continue
		}
		for _, x := range s[i : i+m] { // branch-free: the value of a null row is overwritten by the next value
			d[k] = x
			k += int(w & 1)
			w >>= 1
		}
	}
}
