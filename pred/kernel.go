package pred

import (
	"bytes"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"stoa/fault"
)

// The kernels clear the bits of acc whose cells do not pass a leaf. Words of acc that are already 0 are skipped. The
// kernels for fixed width compute 64 results at once, including those of cells that are not selected; those for bytes
// and for lists visit one set bit after the other.

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// narrowValues tests the cells of an array whose nulls have already been cleared in acc.
func (l *leaf) narrowValues(acc []uint64, c column) error {
	flip := uint64(0)
	if l.neg {
		flip = math.MaxUint64
	}
	switch d := l.dom; d.class {
	case classBool:
		return l.bools(acc, c, flip)
	case classBytes:
		return l.narrowBytes(acc, c, flip)
	case classWide:
		if d.bits == 128 {
			return onValues(acc, c, flip, l.wides128)
		}
		return onValues(acc, c, flip, l.wides256)
	case classFloat:
		switch d.bits {
		case 16:
			return onValues(acc, c, flip, l.halves)
		case 32:
			return onValues(acc, c, flip, func(acc []uint64, v []float32, flip uint64) { floatKernel(l, acc, v, flip) })
		}
		return onValues(acc, c, flip, func(acc []uint64, v []float64, flip uint64) { floatKernel(l, acc, v, flip) })
	case classUint:
		switch d.bits {
		case 8:
			return onInts[uint8](l, acc, c, flip)
		case 16:
			return onInts[uint16](l, acc, c, flip)
		case 32:
			return onInts[uint32](l, acc, c, flip)
		}
		return onInts[uint64](l, acc, c, flip)
	case classInt:
		switch d.bits {
		case 8:
			return onInts[int8](l, acc, c, flip)
		case 16:
			return onInts[int16](l, acc, c, flip)
		case 32:
			return onInts[int32](l, acc, c, flip)
		}
		return onInts[int64](l, acc, c, flip)
	}
	return fault.Bugf("no kernel for %s", c.arr.DataType())
}

// cells returns the first n cells of an array of fixed width.
func cells[T any](a arrow.Array, n int) ([]T, error) {
	var zero T
	data := a.Data()
	size := int(unsafe.Sizeof(zero))
	b := data.Buffers()
	if len(b) < 2 || b[1] == nil || data.Offset() < 0 || b[1].Len()/size < data.Offset()+n {
		return nil, fault.Bugf("the values of the array are shorter than %d entries", n)
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b[1].Bytes()))), data.Offset()+n)[data.Offset():], nil
}

// onValues runs a kernel on the cells of c.
func onValues[T any](acc []uint64, c column, flip uint64, kernel func(acc []uint64, v []T, flip uint64)) error {
	v, err := cells[T](c.arr, c.n)
	if err != nil {
		return err
	}
	kernel(acc, v, flip)
	return nil
}

func onInts[T integer](l *leaf, acc []uint64, c column, flip uint64) error {
	v, err := cells[T](c.arr, c.n)
	if err != nil {
		return err
	}
	if l.kind != leafSet {
		rangeInts(acc, v, l.low64, l.span64, flip)
		return nil
	}
	if l.bitmap != nil {
		bitmapInts(acc, v, l.low64, l.span64, l.bitmap, flip)
		return nil
	}
	eachWord(acc, v, flip, func(x T) bool { return l.has64(uint64(x) - l.low64) })
	return nil
}

// bitmapInts keeps the cells whose distance from low is in the bitmap. span+1, whose bit is 0, stands for all larger
// distances.
func bitmapInts[T integer](acc []uint64, v []T, low, span uint64, bitmap []uint64, flip uint64) {
	for w := range acc {
		if acc[w] == 0 {
			continue
		}
		var m uint64
		part := v[64*w : min(64*w+64, len(v))]
		for i := len(part) - 1; i >= 0; i-- {
			d := min(uint64(part[i])-low, span+1)
			m += m + bitmap[d/64]>>(d%64)&1
		}
		acc[w] &= m ^ flip
	}
}

// rangeInts keeps the cells for which low <= cell <= low+span. Both are sign-extended to 64 bits, so that one
// subtraction and one comparison suffice for all types.
func rangeInts[T integer](acc []uint64, v []T, low, span, flip uint64) {
	for w := range acc {
		if acc[w] == 0 {
			continue
		}
		var m uint64
		part := v[64*w:]
		if len(part) >= 64 {
			m = insideInts((*[64]T)(part), low, span)
		} else {
			for i, x := range part {
				if uint64(x)-low <= span {
					m |= 1 << i
				}
			}
		}
		acc[w] &= m ^ flip
	}
}

// insideInts is rangeInts for 64 cells. Doubling a number makes room for the next bit, which is cheaper than shifting
// each bit to its position.
func insideInts[T integer](v *[64]T, low, span uint64) (m uint64) {
	for i := 0; i < 64; i += 8 {
		p := (*[8]T)(v[i:])
		a := bit(uint64(p[7])-low <= span)
		a += a + bit(uint64(p[6])-low <= span)
		a += a + bit(uint64(p[5])-low <= span)
		a += a + bit(uint64(p[4])-low <= span)
		b := bit(uint64(p[3])-low <= span)
		b += b + bit(uint64(p[2])-low <= span)
		b += b + bit(uint64(p[1])-low <= span)
		b += b + bit(uint64(p[0])-low <= span)
		m |= (a<<4 | b) << i
	}
	return m
}

// bit returns 1 if b is true, else 0.
func bit(b bool) uint64 {
	var x uint64
	if b {
		x = 1
	}
	return x
}

// eachWord turns a test of one cell into a kernel.
func eachWord[T any](acc []uint64, v []T, flip uint64, test func(x T) bool) {
	for w, x := range acc {
		for m := x; m != 0; m &= m - 1 {
			if i := 64*w + bits.TrailingZeros64(m); test(v[i]) != (flip == 0) {
				x &^= m & -m
			}
		}
		acc[w] = x
	}
}

// floatKernel is the kernel for float types that Go has.
func floatKernel[T float32 | float64](l *leaf, acc []uint64, v []T, flip uint64) {
	width := l.dom.bits
	if l.kind == leafSet {
		eachWord(acc, v, flip, func(x T) bool {
			if width == 32 {
				return l.has64(uint64(floatKey(uint64(math.Float32bits(float32(x))), 32)) - l.low64)
			}
			return l.has64(uint64(floatKey(math.Float64bits(float64(x)), 64)) - l.low64)
		})
		return
	}
	lo, hi := T(keyFloat(int64(l.lo[3]), width)), T(keyFloat(int64(l.hi[3]), width))
	if hi != hi {
		// From lo to NaN: everything except cells below lo; from NaN to NaN: everything except cells up to +Infinity.
		flip = ^flip
		if lo != lo {
			lo, hi = T(math.Inf(-1)), T(math.Inf(1))
		} else {
			lo, hi = T(math.Inf(-1)), T(keyFloat(int64(l.lo[3])-1, width))
		}
	}
	for w := range acc {
		if acc[w] == 0 {
			continue
		}
		var m uint64
		if part := v[64*w : min(64*w+64, len(v))]; math.IsInf(float64(lo), -1) {
			m = upToFloats(part, hi)
		} else {
			m = insideFloats(part, lo, hi)
		}
		acc[w] &= m ^ flip
	}
}

// insideFloats returns the bits of the cells for which lo <= cell <= hi, which NaN is not.
func insideFloats[T float32 | float64](v []T, lo, hi T) (m uint64) {
	if len(v) == 64 {
		for i := 0; i < 64; i += 4 {
			p := (*[4]T)(v[i:])
			b := bit(p[3] >= lo) & bit(p[3] <= hi)
			b += b + bit(p[2] >= lo)&bit(p[2] <= hi)
			b += b + bit(p[1] >= lo)&bit(p[1] <= hi)
			b += b + bit(p[0] >= lo)&bit(p[0] <= hi)
			m |= b << i
		}
		return m
	}
	for i, x := range v {
		m |= bit(x >= lo) & bit(x <= hi) << i
	}
	return m
}

// upToFloats returns the bits of the cells for which cell <= hi, which NaN is not.
func upToFloats[T float32 | float64](v []T, hi T) (m uint64) {
	if len(v) == 64 {
		for i := 0; i < 64; i += 4 {
			p := (*[4]T)(v[i:])
			b := bit(p[3] <= hi)
			b += b + bit(p[2] <= hi)
			b += b + bit(p[1] <= hi)
			b += b + bit(p[0] <= hi)
			m |= b << i
		}
		return m
	}
	for i, x := range v {
		m |= bit(x <= hi) << i
	}
	return m
}

func (l *leaf) halves(acc []uint64, v []uint16, flip uint64) {
	eachWord(acc, v, flip, func(x uint16) bool {
		d := uint64(floatKey(uint64(x), 16)) - l.low64
		return d <= l.span64 && (l.kind != leafSet || l.has64(d))
	})
}

func (l *leaf) wides128(acc []uint64, v []decimal128.Num, flip uint64) {
	if l.kind == leafRange {
		span := l.hi.sub(l.lo)
		rangeWides(acc, v, [2]uint64{l.lo[2], l.lo[3]}, [2]uint64{span[2], span[3]}, flip)
		return
	}
	eachWord(acc, v, flip, func(x decimal128.Num) bool { return l.hasWide(num128(x.HighBits(), x.LowBits())) })
}

// rangeWides is rangeInts for 128 bits.
func rangeWides(acc []uint64, v []decimal128.Num, low, span [2]uint64, flip uint64) {
	for w := range acc {
		if acc[w] == 0 {
			continue
		}
		var m uint64
		for i, x := range v[64*w : min(64*w+64, len(v))] {
			lo, c := bits.Sub64(x.LowBits(), low[1], 0)
			hi, _ := bits.Sub64(uint64(x.HighBits()), low[0], c)
			_, c = bits.Sub64(span[1], lo, 0)
			_, c = bits.Sub64(span[0], hi, c)
			m |= (c ^ 1) << (i & 63)
		}
		acc[w] &= m ^ flip
	}
}

func (l *leaf) wides256(acc []uint64, v []decimal256.Num, flip uint64) {
	eachWord(acc, v, flip, func(x decimal256.Num) bool {
		a := x.Array() // least significant word first
		return l.hasWide(num{a[3] ^ signBit, a[2], a[1], a[0]})
	})
}

func (l *leaf) hasWide(n num) bool {
	return n.cmp(l.lo) >= 0 && n.cmp(l.hi) <= 0 && (l.kind != leafSet || l.hasNum(n))
}

// bools is the kernel for bits.
func (l *leaf) bools(acc []uint64, c column, flip uint64) error {
	data := c.arr.Data()
	b := data.Buffers()
	if len(b) < 2 || b[1] == nil || b[1].Len()*8 < data.Offset()+c.n {
		return fault.Bugf("the values of the array are shorter than %d entries", c.n)
	}
	f, t := l.hasBool(0), l.hasBool(1)
	for w := range acc {
		x := bitWord(b[1].Bytes(), data.Offset()+64*w)
		acc[w] &= (x&t | ^x&f) ^ flip
	}
	return nil
}

// hasBool returns all ones if b, 0 or 1, passes the leaf.
func (l *leaf) hasBool(b uint64) uint64 {
	if b-l.low64 <= l.span64 && (l.kind != leafSet || l.has64(b-l.low64)) {
		return math.MaxUint64
	}
	return 0
}

// narrowBytes tests strings and binary in any layout.
func (l *leaf) narrowBytes(acc []uint64, c column, flip uint64) error {
	switch a := c.arr.(type) {
	case *array.StringView:
		eachIndex(acc, flip, func(i int) bool {
			s := a.Value(i)
			return l.hasText(unsafe.Slice(unsafe.StringData(s),
				len(s)))
		})
		return nil
	case *array.BinaryView:
		eachIndex(acc, flip, func(i int) bool { return l.hasText(a.Value(i)) })
		return nil
	case *array.FixedSizeBinary:
		size := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
		data := a.Data()
		b := data.Buffers()
		if len(b) < 2 || b[1] == nil || size < 0 || b[1].Len() < (data.Offset()+c.n)*size {
			return fault.Bugf("the values of the array are shorter than %d entries", c.n)
		}
		v := b[1].Bytes()[data.Offset()*size:]
		eachIndex(acc, flip, func(i int) bool { return l.hasText(v[i*size : i*size+size]) })
		return nil
	}
	switch c.arr.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		return texts[int32](l, acc, c, flip)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return texts[int64](l, acc, c, flip)
	}
	return fault.Bugf("no kernel for %s", c.arr.DataType())
}

// eachIndex is eachWord for cells that are not a slice.
func eachIndex(acc []uint64, flip uint64, test func(i int) bool) {
	for w, x := range acc {
		for m := x; m != 0; m &= m - 1 {
			if test(64*w+bits.TrailingZeros64(m)) != (flip == 0) {
				x &^= m & -m
			}
		}
		acc[w] = x
	}
}

// texts tests strings or binary with offsets.
func texts[T int32 | int64](l *leaf, acc []uint64, c column, flip uint64) error {
	var zero T
	data := c.arr.Data()
	b := data.Buffers()
	end := data.Offset() + c.n + 1
	if len(b) < 2 || b[1] == nil || b[1].Len()/int(unsafe.Sizeof(zero)) < end {
		return fault.Bugf("the offsets of the array are shorter than %d entries", c.n)
	}
	off := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b[1].Bytes()))), end)[data.Offset():]
	var v []byte
	if len(b) > 2 && b[2] != nil {
		v = b[2].Bytes()
	}
	ok := true
	switch l.kind {
	case leafEqual:
		ok = equalTexts(acc, off, v, []byte(l.text), flip)
	case leafPrefix:
		ok = prefixTexts(acc, off, v, []byte(l.text), flip)
	default:
		ok = otherTexts(l, acc, off, v, flip)
	}
	if !ok {
		return fault.Bugf("the offsets of the array do not lie in its data of %d bytes", len(v))
	}
	return nil
}

// equalTexts keeps the cells that equal text. It returns false if offsets are out of order.
func equalTexts[T int32 | int64](acc []uint64, off []T, v, text []byte, flip uint64) bool {
	want := T(len(text))
	for w, x := range acc {
		for m := x; m != 0; m &= m - 1 {
			i := 64*w + bits.TrailingZeros64(m)
			from, to := off[i], off[i+1]
			hit := to-from == want
			if hit {
				if from < 0 || uint64(to) > uint64(len(v)) {
					return false
				}
				hit = bytes.Equal(v[from:to], text)
			}
			if hit != (flip == 0) {
				x &^= m & -m
			}
		}
		acc[w] = x
	}
	return true
}

// prefixTexts keeps the cells that begin with text. It returns false if offsets are out of order.
func prefixTexts[T int32 | int64](acc []uint64, off []T, v, text []byte, flip uint64) bool {
	want := T(len(text))
	for w, x := range acc {
		for m := x; m != 0; m &= m - 1 {
			i := 64*w + bits.TrailingZeros64(m)
			from, to := off[i], off[i+1]
			hit := to-from >= want
			if hit {
				if from < 0 || uint64(to) > uint64(len(v)) {
					return false
				}
				hit = bytes.Equal(v[from:from+want], text)
			}
			if hit != (flip == 0) {
				x &^= m & -m
			}
		}
		acc[w] = x
	}
	return true
}

// otherTexts keeps the cells that pass l.hasText. It returns false if offsets are out of order.
func otherTexts[T int32 | int64](l *leaf, acc []uint64, off []T, v []byte, flip uint64) bool {
	for w, x := range acc {
		for m := x; m != 0; m &= m - 1 {
			i := 64*w + bits.TrailingZeros64(m)
			from, to := off[i], off[i+1]
			if from < 0 || from > to || uint64(to) > uint64(len(v)) {
				return false
			}
			if l.hasText(v[from:to]) != (flip == 0) {
				x &^= m & -m
			}
		}
		acc[w] = x
	}
	return true
}

// lookUp keeps the entries whose code has a 1 in table.
func lookUp(acc []uint64, n int, d *array.Dictionary, table []byte) error {
	switch d.DataType().(*arrow.DictionaryType).IndexType.ID() {
	case arrow.INT8:
		return codes[int8](acc, n, d, table)
	case arrow.INT16:
		return codes[int16](acc, n, d, table)
	case arrow.INT32:
		return codes[int32](acc, n, d, table)
	case arrow.INT64:
		return codes[int64](acc, n, d, table)
	case arrow.UINT8:
		return codes[uint8](acc, n, d, table)
	case arrow.UINT16:
		return codes[uint16](acc, n, d, table)
	case arrow.UINT32:
		return codes[uint32](acc, n, d, table)
	case arrow.UINT64:
		return codes[uint64](acc, n, d, table)
	}
	return fault.Bugf("dictionary codes of type %s", d.DataType())
}

func codes[T integer](acc []uint64, n int, d *array.Dictionary, table []byte) error {
	v, err := cells[T](d, n)
	if err != nil {
		return err
	}
	for w, x := range acc {
		if x == 0 {
			continue
		}
		var m, bad uint64
		part := v[64*w : min(64*w+64, n)]
		for i := len(part) - 1; i >= 0; i-- {
			m += m
			if c := uint64(part[i]); c < uint64(len(table)) {
				m += uint64(table[c])
			} else {
				bad |= 1 << (i & 63) // the code of a null may be anything
			}
		}
		if bad &= x; bad != 0 {
			i := 64*w + bits.TrailingZeros64(bad)
			return fault.Bugf("code %d of entry %d is not in the dictionary of %d values", v[i], i, len(table))
		}
		acc[w] = x & m
	}
	return nil
}
