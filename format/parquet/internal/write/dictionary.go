package write

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// dictionarySize is the size in bytes of the values of the largest dictionary.
const dictionarySize = 1 << 20

// dictionary numbers the distinct values of a chunk in order of appearance.
type dictionary struct {
	width  int      // bytes of a value; 0 for strings
	slots  []uint32 // hash table of code + 1; 0 if empty
	hashes []uint32 // of the values, by code
	fixed  []byte
	offs   []int32
	data   []byte
	n      int
}

func newDictionary(width int) *dictionary { return &dictionary{width: width, offs: []int32{0}} }

// reset empties d and keeps its memory.
func (d *dictionary) reset() {
	clear(d.slots)
	d.hashes, d.fixed, d.offs, d.data, d.n = d.hashes[:0], d.fixed[:0], append(d.offs[:0], 0), d.data[:0], 0
}

// size returns the size in bytes of the values in PLAIN encoding.
func (d *dictionary) size() int { return len(d.fixed) + len(d.data) + 4*(len(d.offs)-1) }

// truncate removes all values but the first n. The hash table is not updated, so no more values can be looked up.
func (d *dictionary) truncate(n int) {
	d.n, d.fixed = n, d.fixed[:min(n*d.width, len(d.fixed))]
	if d.width == 0 {
		d.offs = d.offs[:n+1]
		d.data = d.data[:d.offs[n]]
	}
}

// values returns the dictionary's values in code order.
func (d *dictionary) values() dense {
	return dense{n: d.n, fixed: d.fixed, offs: d.offs, data: d.data}
}

// codes appends the codes of v to dst. ok is false if it gave up because the values exceed dictionarySize or, if early
// is set, because hardly any value occurred twice among the first thousands.
func (d *dictionary) codes(dst []uint32, v dense, early bool) (codes []uint32, ok bool) {
	const step = 4096
	for from := 0; from < v.n; from += step {
		to := min(v.n, from+step)
		switch d.width {
		case 4:
			dst = d.codes4(dst, wordsOf[uint32](v.fixed)[from:to])
		case 8:
			dst = d.codes8(dst, wordsOf[uint64](v.fixed)[from:to])
		default:
			for i := from; i < to; i++ {
				dst = append(dst, d.code(v.at(i, d.width)))
			}
		}
		if d.size() > dictionarySize || early && to >= 4*step && d.n > to-to/32 {
			return dst, false
		}
	}
	return dst, true
}

// at returns value i; width is 0 for strings.
func (v *dense) at(i, width int) []byte {
	if width == 0 {
		return v.data[v.offs[i]:v.offs[i+1]]
	}
	return v.fixed[i*width : (i+1)*width]
}

// grow makes room for one more value; the table is at most half full.
func (d *dictionary) grow() {
	if 2*(d.n+1) < len(d.slots) {
		return
	}
	d.slots = make([]uint32, max(1024, 2*len(d.slots)))
	mask := uint32(len(d.slots) - 1)
	for i, h := range d.hashes {
		at := h & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = uint32(i) + 1
	}
}

func (d *dictionary) codes4(dst []uint32, v []uint32) []uint32 {
	have := wordsOf[uint32](d.fixed)
	for i := 0; i < len(v); i++ {
		x := v[i]
		d.grow()
		mask := uint32(len(d.slots) - 1)
		h := uint32(uint64(x) * 0x9e3779b97f4a7c15 >> 32)
		at := h & mask
		for {
			c := d.slots[at]
			if c == 0 {
				d.n++
				d.slots[at], d.hashes = uint32(d.n), append(d.hashes, h)
				d.fixed = binary.LittleEndian.AppendUint32(d.fixed, x)
				have = wordsOf[uint32](d.fixed)
				dst = append(dst, uint32(d.n-1))
				break
			}
			if have[c-1] == x {
				dst = append(dst, c-1)
				break
			}
			at = (at + 1) & mask
		}
	}
	return dst
}

func (d *dictionary) codes8(dst []uint32, v []uint64) []uint32 {
	have := wordsOf[uint64](d.fixed)
	for i := 0; i < len(v); i++ {
		x := v[i]
		d.grow()
		mask := uint32(len(d.slots) - 1)
		h := uint32((x ^ x>>32) * 0x9e3779b97f4a7c15 >> 32)
		at := h & mask
		for {
			c := d.slots[at]
			if c == 0 {
				d.n++
				d.slots[at], d.hashes = uint32(d.n), append(d.hashes, h)
				d.fixed = binary.LittleEndian.AppendUint64(d.fixed, x)
				have = wordsOf[uint64](d.fixed)
				dst = append(dst, uint32(d.n-1))
				break
			}
			if have[c-1] == x {
				dst = append(dst, c-1)
				break
			}
			at = (at + 1) & mask
		}
	}
	return dst
}

func (d *dictionary) code(b []byte) uint32 {
	d.grow()
	mask := uint32(len(d.slots) - 1)
	h := uint32(xxhash.Sum64(b) >> 32)
	for at := h & mask; ; at = (at + 1) & mask {
		c := d.slots[at]
		if c == 0 {
			d.n++
			d.slots[at], d.hashes = uint32(d.n), append(d.hashes, h)
			if d.width == 0 {
				d.data = append(d.data, b...)
				d.offs = append(d.offs, int32(len(d.data)))
			} else {
				d.fixed = append(d.fixed, b...)
			}
			return uint32(d.n - 1)
		}
		if d.hashes[c-1] == h && string(d.value(int(c-1))) == string(b) {
			return c - 1
		}
	}
}

func (d *dictionary) value(i int) []byte {
	if d.width == 0 {
		return d.data[d.offs[i]:d.offs[i+1]]
	}
	return d.fixed[i*d.width : (i+1)*d.width]
}
