package trevni

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/enc/plain"
)

// fill appends the values [from, to) of one array to b as they are stored, and stops behind the first that makes b limit bytes
// long or longer. It says which value is next.
type fill func(b []byte, from, to, limit int) (out []byte, next int)

// fillOf is the fill of an array whose values are stored as s; nil for arrays that only an appender knows.
func fillOf(a arrow.Array, s Type) fill {
	switch s {
	case Int, Long:
		return fillVarints(a)
	case Fixed32, Fixed64, Float, Double:
		return fillFixed(a)
	case String, Bytes:
		return fillStrings(a)
	}
	return nil
}

func fillVarints(a arrow.Array) fill {
	switch a := a.(type) {
	case *array.Int8:
		return varints(a.Int8Values())
	case *array.Int16:
		return varints(a.Int16Values())
	case *array.Int32:
		return varints(a.Int32Values())
	case *array.Int64:
		return varints(a.Int64Values())
	case *array.Uint8:
		return varints(a.Uint8Values())
	case *array.Uint16:
		return varints(a.Uint16Values())
	case *array.Uint32:
		return varints(a.Uint32Values())
	case *array.Date32:
		return varints(a.Date32Values())
	case *array.Date64:
		return varints(a.Date64Values())
	case *array.Time32:
		return varints(a.Time32Values())
	case *array.Time64:
		return varints(a.Time64Values())
	case *array.Timestamp:
		return varints(a.TimestampValues())
	case *array.Duration:
		return varints(a.DurationValues())
	}
	return nil
}

// varintRoom is what a varint may write over: the longest has ten bytes, and words of eight are stored.
const varintRoom = 16

func varints[T whole](vals []T) fill {
	return func(b []byte, i, to, limit int) ([]byte, int) {
		for i < to && len(b) < limit {
			k := min(to-i, max((limit-len(b))/10, 1), 4<<10) // none of these but the last can reach the limit
			b = appendVarints(b, vals[i:i+k])
			i += k
		}
		return b, i
	}
}

// appendVarints appends zig-zag varints.
func appendVarints[T whole](b []byte, vals []T) []byte {
	pos := len(b)
	b = slices.Grow(b, 10*len(vals)+varintRoom)
	b = b[:cap(b)]
	for _, v := range vals {
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
		binary.LittleEndian.PutUint64(b[pos:], stretch(u)|0x8080808080808080&(1<<(8*(n-1)&63)-1))
		pos += n
	}
	return b[:pos]
}

// stretch puts the low 56 bits of x in groups of seven into the bytes of a word. squeeze undoes it.
func stretch(x uint64) uint64 {
	x = x&0x0fffffff | x&0xfffffff0000000<<4
	x = x&0x00003fff00003fff | x&0x0fffc0000fffc000<<2
	return x&0x007f007f007f007f | x&0x3f803f803f803f80<<1
}

// fillFixed copies: values are little-endian in the file as in memory.
func fillFixed(a arrow.Array) fill {
	switch a := a.(type) {
	case *array.Uint32:
		return words(a.Uint32Values())
	case *array.Int32:
		return words(a.Int32Values())
	case *array.Uint64:
		return words(a.Uint64Values())
	case *array.Int64:
		return words(a.Int64Values())
	case *array.Float32:
		return words(a.Float32Values())
	case *array.Float64:
		return words(a.Float64Values())
	}
	return nil
}

func words[T int32 | uint32 | int64 | uint64 | float32 | float64](vals []T) fill {
	var x T
	w := int(unsafe.Sizeof(x))
	src := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), w*len(vals))
	return func(b []byte, i, to, limit int) ([]byte, int) {
		k := min(to-i, (limit-len(b)+w-1)/w)
		return append(b, src[i*w:(i+k)*w]...), i + k
	}
}

func fillStrings(a arrow.Array) fill {
	switch a := a.(type) {
	case *array.String:
		return texts(a.ValueOffsets(), a.Data())
	case *array.Binary:
		return texts(a.ValueOffsets(), a.Data())
	}
	return nil
}

func texts(offs []int32, d arrow.ArrayData) fill {
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
			if n <= 16 && pos+17 <= len(b) && from+16 <= len(data) {
				b[pos] = byte(n << 1)
				*(*[16]byte)(b[pos+1:]) = *(*[16]byte)(data[from:]) // what is too much, the next string overwrites
				pos += 1 + n
				continue
			}
			b = appendText(b[:pos], data[from:end])
			pos = len(b)
			b = b[:cap(b)]
		}
		return b[:pos], i
	}
}

// whole are the Go types of what is stored as a varint.
type whole interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// flat writes all values of a, one a row. Nothing is null. ok is false if a must be written value by value.
func (c *outColumn) flat(a arrow.Array) (ok bool, err error) {
	if c.FirstValues || c.MaxDef > 0 {
		return false, nil
	}
	if b, ok := a.(*array.Boolean); ok && c.Type == Boolean {
		return true, c.flatBools(b)
	}
	f := fillOf(a, c.Type)
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
