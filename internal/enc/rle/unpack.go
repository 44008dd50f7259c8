package rle

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// unpacker is a kernel in assembly: see gen/main.go.
type unpacker func(dst, src *byte, steps, stride int, t *table)

// kernels are those of one level of machine, by the bytes of a value that comes out: those that work in lanes
// of 4 bytes, for widths up to narrowest bits, and in lanes of 8, for up to broadest.
type kernels struct {
	name          string
	narrow, broad [9]unpacker
	quarters      bool // the table is for four times 16 bytes
}

// levels are the kernels that this machine can do, the best first.
var levels []*kernels

const (
	narrowest = 25
	broadest  = 57
)

// table is where the bytes of each lane's value lie, how far it is shifted, and its mask: 64 bytes each, the
// last two as numbers of a lane, little-endian. Then, with quarters, where each quarter of the lanes has its
// first byte, 8 bytes each; places count from there.
type table = [224]byte

// tables are those that were made, by the bit with which values begin, their width, the bytes of a lane, and quarters.
var tables [8][broadest + 1][2][2]atomic.Pointer[table]

// tableOf is newTable, made once: delta encodings unpack a hundred values at a time.
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

// newTable is for values of width bits, the first of which begins at bit, 0 to 7, in lanes of so many bytes.
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
			t[i*lane+b] = byte(min(at>>3-from+b, 63)) // what is after the 64 bytes is masked away
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

// minFast is with how many values a kernel does not pay.
const minFast = 32

// unpackFast does the first n values of unpack, as far as a kernel can.
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
	if width > narrowest || f == nil {
		lane, f = 8, k.broad[size]
	}
	if f == nil || len(dst) < minFast || width > broadest || width == 0 {
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
