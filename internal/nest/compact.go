package nest

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Levels are compared eight at a time: they are bytes, and at most 127 (types are not nested more deeply).
const (
	eachOne = 0x0101010101010101
	eachTop = 0x8080808080808080
	gather8 = 0x0102040810204080 // multiplying the lowest bits of eight bytes by it gathers them in the top byte
)

// levelReaches sets the top bit of each byte of x that is at least y; both are below 128.
func levelReaches(x, y uint64) uint64 { return ((x | eachTop) - y) & eachTop }

// atLeastMap returns the bitmap of the levels that are at least min, in words of 64 bits, and their number.
func atLeastMap(levels []byte, min byte) (words []uint64, n int) {
	words = make([]uint64, (len(levels)+63)/64)
	y := eachOne * uint64(min)
	i := 0
	for ; i+8 <= len(levels); i += 8 {
		x := levelReaches(binary.LittleEndian.Uint64(levels[i:]), y) >> 7
		words[i>>6] |= x * gather8 >> 56 << (i & 63)
	}
	for ; i < len(levels); i++ {
		if levels[i] >= min {
			words[i>>6] |= 1 << (i & 63)
		}
	}
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return words, n
}

// maxPackedLevel is the largest level that can be compared eight at a time.
const maxPackedLevel = 127

// compacted returns the n entries of a whose bits are set in keep, all of which must have a value; nil if the values of
// a do not have a fixed number of whole bytes. The caller releases it.
func compacted(a arrow.Array, keep []uint64, n int, mem memory.Allocator) arrow.Array {
	f, ok := a.DataType().(arrow.FixedWidthDataType)
	d := a.Data()
	if !ok || f.BitWidth()%8 != 0 || len(d.Children()) > 0 || len(d.Buffers()) != 2 ||
		d.Buffers()[1] == nil || a.DataType().ID() == arrow.EXTENSION || a.DataType().ID() == arrow.DICTIONARY {
		return nil
	}
	w := f.BitWidth() / 8
	if len(d.Buffers()[1].Bytes()) < (d.Offset()+d.Len())*w {
		return nil
	}
	src := d.Buffers()[1].Bytes()[d.Offset()*w:]
	buf := newBuffer(n*w, mem)
	defer buf.Release()
	out := buf.Bytes()
	switch w {
	case 4:
		gatherKept(cast[uint32](out), cast[uint32](src), keep)
	case 8:
		gatherKept(cast[uint64](out), cast[uint64](src), keep)
	default:
		gatherKeptBytes(out, src, w, keep)
	}
	data := array.NewData(a.DataType(), n, []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// gatherKept copies the values of src whose bits are set to the start of dst, which must have room for them.
func gatherKept[T any](dst, src []T, keep []uint64) {
	k := 0
	for i, w := range keep {
		at := 64 * i
		if w == 1<<64-1 {
			k += copy(dst[k:], src[at:at+64])
			continue
		}
		for w != 0 {
			from := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> from))
			k += copy(dst[k:], src[at+from:at+from+n])
			w &^= (1<<n - 1) << from
		}
	}
}

// gatherKeptBytes is gatherKept for values of w bytes.
func gatherKeptBytes(dst, src []byte, w int, keep []uint64) {
	k := 0
	for i, word := range keep {
		for word != 0 {
			from := bits.TrailingZeros64(word)
			n := bits.TrailingZeros64(^(word >> from))
			at := 64*i + from
			k += copy(dst[k:], src[at*w:(at+n)*w])
			word &^= (1<<n - 1) << from
		}
	}
}

// validLevels reports whether the levels of a leaf below one list are possible: none is too large, and where a list
// continues (level 1), the entry and the one before it are items, so their level is at least item. If not, badLevel
// finds the place.
func validLevels(def, rep []byte, maxDef, item byte) bool {
	var bad uint64
	over, items := eachOne*uint64(maxDef)+eachOne, eachOne*uint64(item)
	last := uint64(0)
	i := 0
	for ; i+8 <= len(def); i += 8 {
		d, r := binary.LittleEndian.Uint64(def[i:]), binary.LittleEndian.Uint64(rep[i:])
		before := d<<8 | last
		bad |= (d | r) & eachTop
		bad |= r &^ eachOne
		on := r & eachOne << 7
		d, before = d&^eachTop, before&^eachTop
		bad |= levelReaches(d, over) | on&^(levelReaches(d, items)&levelReaches(before, items))
		last = d >> 56
	}
	if bad != 0 {
		return false
	}
	b := byte(last)
	for ; i < len(def); i++ {
		if def[i] > maxDef || rep[i] > 1 || rep[i] == 1 && min(b, def[i]) < item {
			return false
		}
		b = def[i]
	}
	return true
}
