package parquet

import (
	"encoding/binary"

	"stoa/fault"
)

// deltas reads DELTA_BINARY_PACKED numbers one by one:
//
//	values of a block (a multiple of 128), miniblocks of a block, number of values: ULEB128 each; first value: zigzag
//	block: least delta (zigzag), width of each miniblock in bits (a byte each), miniblocks: deltas less the least, packed from the lowest bit on
//
// The last miniblock is as long as the others; miniblocks behind it have a width, but no bytes.
type deltas struct {
	b     []byte
	pos   int // behind what was read: once left is 0, behind the numbers
	left  int // numbers to come
	minis int
	per   int // numbers of a miniblock

	value, least int64
	begun        bool
	widths       []byte // of the miniblocks to come of this block
	mini         []byte // the rest of this miniblock begins at bit
	bit, width   int
	rest         int // numbers in it
}

// newDeltas begins to read at most so many numbers at b[at:].
func newDeltas(b []byte, at, most int) (*deltas, error) {
	d := &deltas{b: b, pos: at}
	block, minis, n := d.uvarint(), d.uvarint(), d.uvarint()
	first, used := binary.Varint(b[min(d.pos, len(b)):])
	switch {
	case d.pos > len(b) || used <= 0:
		return nil, fault.Rel(at, len(b)-at, "deltas", "their header is cut")
	case block == 0 || block%128 != 0 || block > 1<<20 || minis == 0 || block%minis != 0 || block/minis%32 != 0:
		return nil, fault.Rel(at, d.pos-at, "deltas", "blocks of %d in %d miniblocks", block, minis)
	case n > uint64(most):
		return nil, fault.Rel(at, d.pos-at, "deltas", "%d numbers, the page has %d values", n, most)
	}
	d.pos += used
	d.left, d.minis, d.per, d.value = int(n), int(minis), int(block/minis), first
	return d, nil
}

func (d *deltas) uvarint() uint64 {
	if d.pos > len(d.b) {
		return 0
	}
	v, n := binary.Uvarint(d.b[d.pos:])
	if n <= 0 {
		d.pos = len(d.b) + 1
		return 0
	}
	d.pos += n
	return v
}

// next gives the next number, while there are some left.
func (d *deltas) next() (int64, error) {
	d.left--
	if !d.begun {
		d.begun = true
		return d.value, nil
	}
	if d.rest == 0 {
		if err := d.miniblock(); err != nil {
			return 0, err
		}
	}
	d.value += d.least + int64(bitsAt(d.mini, d.bit, d.width))
	d.bit += d.width
	d.rest--
	return d.value, nil
}

// miniblock goes to the next miniblock, which may be in the next block.
func (d *deltas) miniblock() error {
	if len(d.widths) == 0 {
		v, n := binary.Varint(d.b[d.pos:])
		if n <= 0 || d.minis > len(d.b)-d.pos-n {
			return fault.Rel(d.pos, len(d.b)-d.pos, "deltas", "a block is cut")
		}
		d.least, d.widths = v, d.b[d.pos+n:][:d.minis]
		d.pos += n + d.minis
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	size := d.per * d.width / 8
	if d.width > 64 || size > len(d.b)-d.pos {
		return fault.Rel(d.pos, len(d.b)-d.pos, "deltas", "a miniblock of %d numbers of %d bits is cut", d.per, d.width)
	}
	d.mini, d.bit, d.rest = d.b[d.pos:][:size], 0, d.per
	d.pos += size
	return nil
}

// bitsAt is the number of so many bits that begins at a bit, the lowest first.
func bitsAt(b []byte, bit, width int) (v uint64) {
	for got := 0; got < width; {
		k := min(8-bit%8, width-got)
		v |= uint64(b[bit/8]>>(bit%8)&(1<<k-1)) << got
		got, bit = got+k, bit+k
	}
	return v
}

// end is where the numbers end; they are read from a copy.
func (d deltas) end() (int, error) {
	for d.left > 0 {
		if _, err := d.next(); err != nil {
			return 0, err
		}
	}
	return d.pos, nil
}

// plainOfDeltas decodes DELTA_BYTE_ARRAY values of so many bytes each, at most so many: how much each has in common with the
// beginning of the one before, then how long the rest of each is, both DELTA_BINARY_PACKED, then these rests.
func plainOfDeltas(b []byte, width, most int) ([]byte, error) {
	prefixes, err := newDeltas(b, 0, most)
	if err != nil {
		return nil, err
	}
	at, err := prefixes.end()
	if err != nil {
		return nil, err
	}
	suffixes, err := newDeltas(b, at, most)
	if err != nil {
		return nil, err
	}
	if suffixes.left != prefixes.left {
		return nil, fault.Rel(at, 0, "suffixes", "%d of them, but %d prefixes", suffixes.left, prefixes.left)
	}
	if at, err = suffixes.end(); err != nil {
		return nil, err
	}
	rest := b[at:]
	var out []byte
	for prefixes.left > 0 {
		p, err := prefixes.next()
		if err != nil {
			return nil, err
		}
		n, err := suffixes.next()
		if err != nil {
			return nil, err
		}
		before := len(out)
		if p < 0 || n < 0 || p > int64(width) || n != int64(width)-p || n > int64(len(rest)) || p > 0 && before == 0 {
			return nil, fault.Rel(len(b)-len(rest), len(rest), "values", "value %d: %d bytes of the one before and %d more, of which %d are left; it has %d", before/width, p, n, len(rest), width)
		}
		if p > 0 {
			out = append(out, out[before-width:][:p]...)
		}
		out, rest = append(out, rest[:n]...), rest[n:]
	}
	return out, nil
}

// plainOfDeltas32 decodes at most so many numbers of 32 bits. What they are reckoned of may be longer: of the sums only the lowest 32 bits count.
func plainOfDeltas32(b []byte, most int) ([]byte, error) {
	d, err := newDeltas(b, 0, most)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 4*min(d.left, most))
	for d.left > 0 {
		v, err := d.next()
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out, nil
}
