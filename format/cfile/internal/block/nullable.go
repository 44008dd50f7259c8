package block

import (
	"math/bits"

	"stoa/fault"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
	"stoa/vec"
	"stoa/wire"
)

// Bitmap is a run-coded validity bitmap: 1: not null.
type Bitmap struct {
	name string
	N    int // bits
	runs []byte
	at   int // offset of runs in the block
}

// parseNulls reads the header of a nullable block:
//
//	num_rows     varint
//	bitmap_size  varint
//	bitmap       RLE of width 1
func parseNulls(c *wire.Cursor) Bitmap {
	n := int(c.Uvarint32("num_rows"))
	return parseBitmap(c, "bitmap", "bitmap_size", n)
}

// parseBitmap reads size and bytes of a bitmap of n bits.
func parseBitmap(c *wire.Cursor, name, sizeName string, n int) Bitmap {
	b := Bitmap{name: name, N: n}
	size := c.Length(sizeName)
	b.at = c.Pos()
	b.runs = c.Bytes(name, size)
	return b
}

// Ones counts the ones among the n bits after the first skip.
func (b *Bitmap) Ones(skip, n int) (int, error) {
	k, err := rle.CountBits(b.runs, skip, n)
	if err != nil {
		return 0, Relative(err, b.at, b.name)
	}
	return k, nil
}

// Mark sets the n entries of dst from entry at on to null where the n bits after the first skip are 0. It returns the
// number k of entries that are not null, and dst's validity bitmap, which is nil if dst still has none.
func (b *Bitmap) Mark(dst *vec.Vector, at, skip, n int) (k int, valid []byte, err error) {
	if !dst.HasValidity() {
		if k, err = b.Ones(skip, n); err != nil || k == n {
			return k, nil, err
		}
	}
	valid = dst.Validity()
	if k, err = rle.DecodeBits(valid, at, b.runs, skip, n); err != nil {
		return 0, nil, Relative(err, b.at, b.name)
	}
	dst.AddNulls(n - k)
	return k, valid, nil
}

// SpreadBits moves the k bits that begin at bit at of b to the positions of the ones among the n bits that begin at bit
// at of valid; the other positions become 0. spare must have room for k bits.
func SpreadBits(b []byte, at, n, k int, valid, spare []byte) {
	plain.CopyBits(spare, 0, b, at, k)
	vec.SetBits(b, at, at+n, false)
	next := 0
	for i := 0; i < n; {
		if m := (at + i) & 7; m != 0 || n-i < 8 {
			spreadBit(b, at+i, valid, spare, &next)
			i++
			continue
		}
		j := (at + i) >> 3
		for w := valid[j]; w != 0; w &= w - 1 {
			x := spare[next>>3] >> (next & 7) & 1
			next++
			b[j] |= x << bits.TrailingZeros8(w)
		}
		i += 8
	}
}

func spreadBit(b []byte, i int, valid, spare []byte, next *int) {
	if valid[i>>3]>>(i&7)&1 != 0 {
		b[i>>3] |= spare[*next>>3] >> (*next & 7) & 1 << (i & 7)
		*next++
	}
}

// CheckOnes compares a bitmap with the number of values. There must be at least skipped+k values, which are the ones
// before and in the decoded part; exactly that many if end is true, which means that the part is the last of the block.
func CheckOnes(b *Bitmap, v *values, skipped, k int, end bool) error {
	if skipped+k > v.Count || end && skipped+k != v.Count {
		return fault.Rel(b.at, len(b.runs), b.name, "expected %[2]d ones, as many as the block has values, found %[1]d",
			skipped+k, v.Count)
	}
	return nil
}
