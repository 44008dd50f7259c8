package rle

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// unpacker is a kernel in assembly: see gen/main.go.
type unpacker func(dst, src *byte, steps, stride int, t *table)

// kernels are those for one level of instructions, by the size of a decoded value in bytes: those that work in lanes
// of 4 bytes, for widths up to maxNarrow bits, and in lanes of 8, for widths up to maxBroad.
type kernels struct {
	name          string
	narrow, broad [9]unpacker
	quarters      bool // the table is for four times 16 bytes
}

// levels are the kernels that this machine supports, best first.
var levels []*kernels

const (
	maxNarrow = 25
	maxBroad  = 57
)

// table holds, for each lane, the positions of the bytes of its value, the shift, and the mask: 64 bytes each, the last
// two as numbers as wide as a lane, little-endian. With quarters, it then holds the offset of the first byte of each
// quarter of the lanes, 8 bytes each; the positions within a quarter are relative to that offset.
type table = [224]byte

// tables caches tables by the bit at which the values begin, their width, whether a lane has 8 bytes, and quarters.
var tables [8][maxBroad + 1][2][2]atomic.Pointer[table]

// tableOf is newTable, cached: delta encodings unpack only a hundred values at a time.
func tableOf(bit, width, lane int, quarters bool) *table {
	q := 0
	if quarters {
		q = 1
	}
	at := &tables[bit][width][lane/8][q]
	t := at.Load()
	if t == nil {
		t = newTable(bit, width, lane, quarters)
		at.Store(t)
	}
	return t
}

// newTable returns the table for values of width bits, the first of which begins at bit, 0 to 7, in lanes of lane
// bytes.
func newTable(bit, width, lane int, quarters bool) *table {
	t := new(table)
	from := 0
	for i := range 64 / lane {
		at := bit + i*width
		if quarters && i%(16/lane) == 0 {
			from = at >> 3
			binary.LittleEndian.PutUint64(t[192+8*(i*lane/16):], uint64(from))
		}
		for b := range lane {
			t[i*lane+b] = byte(min(at>>3-from+b, 63)) // bytes after the 64 are masked out
		}
		if lane == 4 {
			binary.LittleEndian.PutUint32(t[64+4*i:], uint32(at&7))
			binary.LittleEndian.PutUint32(t[128+4*i:], 1<<width-1)
		} else {
			binary.LittleEndian.PutUint64(t[64+8*i:], uint64(at&7))
			binary.LittleEndian.PutUint64(t[128+8*i:], 1<<width-1)
		}
	}
	return t
}

// minFast is the number of values from which a kernel pays off.
const minFast = 32

// unpackFast decodes the first n values of unpack, as far as a kernel can.
func unpackFast[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, src []byte, bit, width int) (n int) {
	if len(levels) == 0 {
		return 0
	}
	return unpackWith(levels[0], dst, src, bit, width)
}

// unpackWith is unpackFast on one level.
func unpackWith[T ~uint8 | ~uint16 | ~uint32 | ~uint64](k *kernels, dst []T, src []byte, bit, width int) (n int) {
	size := int(unsafe.Sizeof(dst[0]))
	lane, f := 4, k.narrow[size]
	if width > maxNarrow || f == nil {
		lane, f = 8, k.broad[size]
	}
	if f == nil || len(dst) < minFast || width > maxBroad || width == 0 {
		return 0
	}
	src = src[bit>>3:]
	values, stride := 64/lane, 64/lane*width/8
	if len(src) < 64 {
		return 0
	}
	steps := min(len(dst)/values, (len(src)-64)/stride+1)
	f((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), unsafe.SliceData(src), steps, stride,
		tableOf(bit&7, width, lane, k.quarters))
	return steps * values
}
