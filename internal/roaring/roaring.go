// Package roaring reads and writes sets of row positions as stored in the deletion vectors of Delta and Iceberg: 64-bit
// Roaring bitmaps in the portable format.
//
//	count     uint64, little-endian: how many 32-bit bitmaps follow
//	each      uint32 key (the upper half of its positions), ascending, and a 32-bit bitmap
//
// A 32-bit bitmap has a cookie, its containers' keys and sizes, their offsets, and the containers: arrays, bitmaps of
// 8,192 bytes, runs. Source: RoaringFormatSpec (github.com/RoaringBitmap/RoaringFormatSpec), with its extension to 64
// bits.
package roaring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

const (
	cookieNoRuns = 12346
	cookieRuns   = 12347
	minOffsets   = 4 // number of containers from which offsets are stored in spite of runs
	arrayMax     = 4096
	bitmapBytes  = 8192
)

// ErrTooMany means that a bitmap has more positions than its reader allows.
var ErrTooMany = errors.New("more positions than there may be")

// Decode returns the positions of a bitmap, ascending; more than most of them is an error. All of b must belong to the
// bitmap.
func Decode(b []byte, most int64) ([]int64, error) {
	d := reader{b: b, most: most}
	n := d.u64()
	if n > uint64(len(b)) {
		return nil, fmt.Errorf("%d bitmaps cannot be in %d bytes", n, len(b))
	}
	last := int64(-1)
	for range n {
		key := int64(d.u32())
		if d.err == nil && key <= last {
			d.fail("the keys of bitmaps do not ascend")
		}
		if last = key; key > 1<<31-1 {
			d.fail("positions of more than 63 bits")
		}
		d.bitmap(key << 32)
		if d.err != nil {
			return nil, d.err
		}
	}
	if d.err == nil && d.at != len(b) {
		d.fail("%d bytes are left", len(b)-d.at)
	}
	return d.out, d.err
}

type reader struct {
	b    []byte
	at   int
	most int64
	out  []int64
	err  error
}

func (d *reader) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func (d *reader) next(n int) []byte {
	if d.err == nil && n > len(d.b)-d.at {
		d.fail("byte %d: %d bytes are expected, %d are left", d.at, n, len(d.b)-d.at)
	}
	if d.err != nil {
		return make([]byte, min(n, 8))
	}
	d.at += n
	return d.b[d.at-n : d.at]
}

func (d *reader) u64() uint64 { return binary.LittleEndian.Uint64(d.next(8)) }
func (d *reader) u32() uint32 { return binary.LittleEndian.Uint32(d.next(4)) }
func (d *reader) u16() int    { return int(binary.LittleEndian.Uint16(d.next(2))) }

// bitmap reads a 32-bit bitmap, whose positions are relative to base.
func (d *reader) bitmap(base int64) {
	cookie := d.u32()
	var n int
	var runs []byte
	switch {
	case cookie&0xffff == cookieRuns:
		n = int(cookie>>16) + 1
		runs = d.next((n + 7) / 8)
	case cookie == cookieNoRuns:
		n = int(d.u32())
	default:
		d.fail("a bitmap begins with %d, and no bitmap does", cookie)
	}
	if n > 1<<16 {
		d.fail("a bitmap of %d containers", n)
	}
	if d.err != nil {
		return
	}
	head := d.next(4 * n)
	if runs == nil || n >= minOffsets {
		d.next(4 * n) // offsets
	}
	last := -1
	for i := 0; i < n && d.err == nil; i++ {
		key := int(binary.LittleEndian.Uint16(head[4*i:]))
		size := int(binary.LittleEndian.Uint16(head[4*i+2:])) + 1
		if key <= last {
			d.fail("the keys of containers do not ascend")
			return
		}
		last = key
		d.container(base|int64(key)<<16, size, runs != nil && runs[i/8]>>(i%8)&1 == 1)
	}
}

func (d *reader) container(base int64, size int, isRuns bool) {
	if int64(len(d.out)+size) > d.most {
		d.err = ErrTooMany
		return
	}
	before, last := len(d.out), -1
	add := func(x int) {
		if x <= last || x > 0xffff {
			d.fail("the positions of a container do not ascend")
		}
		last = x
		d.out = append(d.out, base+int64(x))
	}
	switch {
	case isRuns:
		for range d.u16() {
			from, more := d.u16(), d.u16()
			if len(d.out)-before+more >= size || d.err != nil {
				d.fail("runs of more positions than the container has")
				return
			}
			for x := from; x <= from+more && d.err == nil; x++ {
				add(x)
			}
		}
	case size <= arrayMax:
		b := d.next(2 * size)
		for i := 0; i < size && d.err == nil; i++ {
			add(int(binary.LittleEndian.Uint16(b[2*i:])))
		}
	default:
		b := d.next(bitmapBytes)
		if d.err != nil {
			return
		}
		for w := range bitmapBytes / 8 {
			for x := binary.LittleEndian.Uint64(b[8*w:]); x != 0; x &= x - 1 {
				add(64*w + bits.TrailingZeros64(x))
			}
		}
	}
	if d.err == nil && len(d.out)-before != size {
		d.fail("a container has %d positions, its head says %d", len(d.out)-before, size)
	}
}

// Encode returns the bitmap of positions, which must ascend and not be negative.
func Encode(positions []int64) []byte {
	var parts [][]int64
	for i := 0; i < len(positions); {
		j := i
		for j < len(positions) && positions[j]>>32 == positions[i]>>32 {
			j++
		}
		parts = append(parts, positions[i:j])
		i = j
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)))
	for _, p := range parts {
		out = appendBitmap(binary.LittleEndian.AppendUint32(out, uint32(p[0]>>32)), p)
	}
	return out
}

func appendBitmap(out []byte, p []int64) []byte {
	var groups [][]int64
	for i := 0; i < len(p); {
		j := i
		for j < len(p) && p[j]>>16 == p[i]>>16 {
			j++
		}
		groups = append(groups, p[i:j])
		i = j
	}
	out = binary.LittleEndian.AppendUint32(out, cookieNoRuns)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(groups)))
	at := 8 + 8*len(groups)
	for _, g := range groups {
		out = binary.LittleEndian.AppendUint16(out, uint16(g[0]>>16))
		out = binary.LittleEndian.AppendUint16(out, uint16(len(g)-1))
	}
	for _, g := range groups {
		out = binary.LittleEndian.AppendUint32(out, uint32(at))
		if at += bitmapBytes; len(g) <= arrayMax {
			at += 2*len(g) - bitmapBytes
		}
	}
	for _, g := range groups {
		if len(g) <= arrayMax {
			for _, x := range g {
				out = binary.LittleEndian.AppendUint16(out, uint16(x))
			}
			continue
		}
		var words [bitmapBytes / 8]uint64
		for _, x := range g {
			words[x&0xffff/64] |= 1 << (x % 64)
		}
		for _, w := range words {
			out = binary.LittleEndian.AppendUint64(out, w)
		}
	}
	return out
}
