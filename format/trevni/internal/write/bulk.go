package write

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
)

// fill appends the values [from, to) of one array to b in their stored form. It stops when b is limit bytes long or
// longer, and returns the index of the next value.
type fill func(b []byte, from, to, limit int) (out []byte, next int)

// fillOf returns the fill of an array whose values are stored as s; nil if there is only an appender for it. mark is 1
// if each value follows a length of 1, as in Avro's nullable columns, else 0.
func fillOf(a arrow.Array, s layout.Type, mark int) fill {
	switch s {
	case layout.Int, layout.Long:
		return fillVarints(a, mark)
	case layout.Fixed32, layout.Fixed64, layout.Float, layout.Double:
		return fillFixed(a, mark)
	case layout.String, layout.Bytes:
		return fillStrings(a, mark)
	}
	return nil
}

// lengthOne is the stored form of a length of 1: the varint 2.
const lengthOne = 2

func fillVarints(a arrow.Array, mark int) fill {
	switch a := a.(type) {
	case *array.Int8:
		return varints(a.Int8Values(), mark)
	case *array.Int16:
		return varints(a.Int16Values(), mark)
	case *array.Int32:
		return varints(a.Int32Values(), mark)
	case *array.Int64:
		return varints(a.Int64Values(), mark)
	case *array.Uint8:
		return varints(a.Uint8Values(), mark)
	case *array.Uint16:
		return varints(a.Uint16Values(), mark)
	case *array.Uint32:
		return varints(a.Uint32Values(), mark)
	case *array.Date32:
		return varints(a.Date32Values(), mark)
	case *array.Date64:
		return varints(a.Date64Values(), mark)
	case *array.Time32:
		return varints(a.Time32Values(), mark)
	case *array.Time64:
		return varints(a.Time64Values(), mark)
	case *array.Timestamp:
		return varints(a.TimestampValues(), mark)
	case *array.Duration:
		return varints(a.DurationValues(), mark)
	}
	return nil
}

// varintRoom is the number of bytes that storing a varint may overwrite: a length, ten bytes, and the rest of a word of
// eight.
const varintRoom = 16

func varints[T integer](vals []T, mark int) fill {
	return func(b []byte, i, to, limit int) ([]byte, int) {
		for i < to && len(b) < limit {
			k := min(to-i, max((limit-len(b))/(10+mark), 1), 4<<10) // only the last of these can reach the limit
			b = appendVarints(b, vals[i:i+k], mark)
			i += k
		}
		return b, i
	}
}

// appendVarints appends zig-zag varints.
func appendVarints[T integer](b []byte, vals []T, mark int) []byte {
	pos := len(b)
	b = slices.Grow(b, (10+mark)*len(vals)+varintRoom)
	b = b[:cap(b)]
	for _, v := range vals {
		b[pos] = lengthOne // without mark, the value overwrites it
		pos += mark
		u := uint64(int64(v))<<1 ^ uint64(int64(v)>>63)
		if u < 0x80 {
			b[pos] = byte(u)
			pos++
			continue
		}
		n := (bits.Len64(u) + 6) / 7
		if n > 8 {
			pos += binary.PutUvarint(b[pos:], u)
			continue
		}
		binary.LittleEndian.PutUint64(b[pos:], scatter7(u)|0x8080808080808080&(1<<(8*(n-1)&63)-1))
		pos += n
	}
	return b[:pos]
}

// scatter7 puts the low 56 bits of x, in groups of seven, into the bytes of a word. page.gather7 is its inverse.
func scatter7(x uint64) uint64 {
	x = x&0x0fffffff | x&0xfffffff0000000<<4
	x = x&0x00003fff00003fff | x&0x0fffc0000fffc000<<2
	return x&0x007f007f007f007f | x&0x3f803f803f803f80<<1
}

// fillFixed copies: values are little-endian in the file as in memory.
func fillFixed(a arrow.Array, mark int) fill {
	switch a := a.(type) {
	case *array.Uint32:
		return words(a.Uint32Values(), mark)
	case *array.Int32:
		return words(a.Int32Values(), mark)
	case *array.Uint64:
		return words(a.Uint64Values(), mark)
	case *array.Int64:
		return words(a.Int64Values(), mark)
	case *array.Float32:
		return words(a.Float32Values(), mark)
	case *array.Float64:
		return words(a.Float64Values(), mark)
	}
	return nil
}

func words[T int32 | uint32 | int64 | uint64 | float32 | float64](vals []T, mark int) fill {
	if mark > 0 {
		return markedWords(vals)
	}
	var x T
	w := int(unsafe.Sizeof(x))
	src := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), w*len(vals))
	return func(b []byte, i, to, limit int) ([]byte, int) {
		k := min(to-i, (limit-len(b)+w-1)/w)
		return append(b, src[i*w:(i+k)*w]...), i + k
	}
}

// markedWords puts a length of 1 before each value.
func markedWords[T int32 | uint32 | int64 | uint64 | float32 | float64](vals []T) fill {
	var x T
	w := int(unsafe.Sizeof(x))
	return func(b []byte, i, to, limit int) ([]byte, int) {
		k := min(to-i, (limit-len(b)+w)/(1+w))
		if k <= 0 {
			return b, i
		}
		pos := len(b)
		b = slices.Grow(b, k*(1+w))[:pos+k*(1+w)]
		for _, v := range vals[i : i+k] {
			b[pos] = lengthOne
			*(*T)(unsafe.Pointer(&b[pos+1 : pos+1+w][0])) = v
			pos += 1 + w
		}
		return b, i + k
	}
}

func fillStrings(a arrow.Array, mark int) fill {
	switch a := a.(type) {
	case *array.String:
		return texts(a.ValueOffsets(), a.Data(), mark)
	case *array.Binary:
		return texts(a.ValueOffsets(), a.Data(), mark)
	}
	return nil
}

func texts(offs []int32, d arrow.ArrayData, mark int) fill {
	var data []byte
	if b := d.Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	return func(b []byte, i, to, limit int) ([]byte, int) {
		pos := len(b)
		b = b[:cap(b)]
		for i < to && pos < limit {
			from, end := int(offs[i]), int(offs[i+1])
			n := end - from
			i++
			if n <= 16 && pos+18 <= len(b) && from+16 <= len(data) {
				b[pos] = lengthOne
				pos += mark
				b[pos] = byte(n << 1)
				*(*[16]byte)(b[pos+1:]) = *(*[16]byte)(data[from:]) // the next string overwrites the surplus
				pos += 1 + n
				continue
			}
			b = append(b[:pos], lengthOne)
			b = layout.AppendText(b[:pos+mark], data[from:end])
			pos = len(b)
			b = b[:cap(b)]
		}
		return b[:pos], i
	}
}

// integer is the constraint of values that are stored as varints.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// optional writes all values of a, one per row and possibly null: arrays of zero or one value. ok is false if a must be
// written value by value.
func (c *outColumn) optional(a arrow.Array) (ok bool, err error) {
	f := fillOf(a, c.Type, 1)
	if b, isBool := a.(*array.Boolean); isBool && c.Type == layout.Boolean {
		f = markedBools(b)
	}
	if f == nil {
		return false, nil
	}
	for i := 0; i < a.Len(); {
		if err := c.room(); err != nil {
			return true, err
		}
		k, valid := sameValidity(a, i)
		from := i
		if valid {
			c.endRun()
			// at least one value, even if the nulls before it have filled the block
			c.raw, i = f(c.raw, i, i+k, max(c.w.opts.blockSize, len(c.raw)+1))
		} else {
			i += c.nulls(k)
		}
		c.rows += int64(i - from)
	}
	return true, nil
}

// sameValidity returns the number of entries from i on with the same validity as entry i.
func sameValidity(a arrow.Array, i int) (k int, valid bool) {
	n := a.Len() - i
	if a.NullN() == 0 {
		return n, true
	}
	bitmap, off := a.NullBitmapBytes(), a.Data().Offset()+i
	valid = bitutil.BitIsSet(bitmap, off)
	for k < n {
		at := off + k
		if at>>3+8 > len(bitmap) { // the last few entries
			if bitutil.BitIsSet(bitmap, at) != valid {
				return k, valid
			}
			k++
			continue
		}
		w, have := binary.LittleEndian.Uint64(bitmap[at>>3:])>>(at&7), 64-at&7
		if valid {
			w = ^w
		}
		if w &= 1<<have - 1; w != 0 { // the first entry with another validity
			return min(k+bits.TrailingZeros64(w), n), valid
		}
		k += have
	}
	return min(k, n), valid
}

// nulls writes up to k lengths of 0 and returns how many.
func (c *outColumn) nulls(k int) int {
	if c.w.opts.version < 2 {
		k = min(k, max(c.w.opts.blockSize-len(c.raw), 1))
		c.raw, c.bit = append(c.raw, make([]byte, k)...), 0
		return k
	}
	if c.run > 0 && c.of != 0 {
		c.endRun()
	}
	k = min(k, maxRun-int(c.run))
	if k == 0 {
		c.endRun()
		return 0
	}
	c.run, c.of = c.run+int64(k), 0
	return k
}

// markedBools puts a length of 1 before each value, which makes each value a byte.
func markedBools(a *array.Boolean) fill {
	return func(b []byte, i, to, limit int) ([]byte, int) {
		for ; i < to && len(b) < limit; i++ {
			v := byte(0)
			if a.Value(i) {
				v = 1
			}
			b = append(b, lengthOne, v)
		}
		return b, i
	}
}

// flat writes all values of a, none of them null, one per row. ok is false if a must be written value by value.
func (c *outColumn) flat(a arrow.Array) (ok bool, err error) {
	if c.FirstValues || c.MaxDef > 0 {
		return false, nil
	}
	if b, ok := a.(*array.Boolean); ok && c.Type == layout.Boolean {
		return true, c.flatBools(b)
	}
	f := fillOf(a, c.Type, 0)
	if f == nil {
		return false, nil
	}
	for i := 0; i < a.Len(); {
		if err := c.room(); err != nil {
			return true, err
		}
		from := i
		c.raw, i = f(c.raw, i, a.Len(), c.w.opts.blockSize)
		c.rows += int64(i - from)
	}
	return true, nil
}

func (c *outColumn) flatBools(a *array.Boolean) error {
	if a.Len() == 0 {
		return nil
	}
	src := a.Data().Buffers()[1].Bytes()
	for i := 0; i < a.Len(); {
		if err := c.room(); err != nil {
			return err
		}
		used := 8 * len(c.raw)
		if c.bit > 0 {
			used += c.bit - 8
		}
		k := min(a.Len()-i, max(8*c.w.opts.blockSize-used, 1), maxRows-int(c.rows))
		was := len(c.raw)
		c.raw = slices.Grow(c.raw, k/8+1)[:(used+k+7)/8]
		clear(c.raw[was:])
		plain.CopyBits(c.raw, used, src, a.Data().Offset()+i, k)
		c.bit = (used + k) & 7
		c.rows += int64(k)
		i += k
	}
	return nil
}
