package write

import (
	"encoding/binary"
	"math"
	"math/bits"

	"stoa/internal/enc/bitshuffle"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
)

const (
	spaceLeft fullness = iota
	// fullNow: the block ends here.
	fullNow
	// fullAtRunEnd: the block ends where the run of values in which it became full ends. Kudu passes on runs of present
	// values from row blocks of 100 rows, and these encoders check their size only between two runs.
	fullAtRunEnd
)

// plainFixed: u32 count, u32 ordinal, values. (The document places count and ordinal after the values; in the files
// they come first.)
type plainFixed struct {
	width, limit int
	buf          []byte
}

func (b *plainFixed) add(v *dense, from, to int, all bool) (int, fullness) {
	k := to - from
	if room := (b.limit-8)/b.width + 1 - len(b.buf)/b.width; !all && k >= room {
		k = max(room, 0)
	}
	b.buf = append(b.buf, v.fixed[from*b.width:(from+k)*b.width]...)
	if len(b.buf)+8 > b.limit {
		return k, fullAtRunEnd
	}
	return k, spaceLeft
}

func (b *plainFixed) rest(v *dense, from, to int) int { n, _ := b.add(v, from, to, true); return n }

func (b *plainFixed) Finish(dst []byte, ordinal uint32) []byte {
	return append(appendTwo(dst, uint32(len(b.buf)/b.width), ordinal), b.buf...)
}

func (b *plainFixed) reset() { b.buf = b.buf[:0] }

// plainBools: u32 count, u32 ordinal, bits.
type plainBools struct {
	limit, n int
	buf      []byte
}

func (b *plainBools) add(v *dense, from, to int, all bool) (int, fullness) {
	k := to - from
	if room := (b.limit-8)*8 + 1 - b.n; !all && k >= room {
		k = max(room, 0)
	}
	for need := (b.n + k + 7) / 8; len(b.buf) < need; {
		b.buf = append(b.buf, make([]byte, need-len(b.buf))...)
	}
	plain.CopyBits(b.buf, b.n, v.bits, v.at+from, k)
	b.n += k
	if (b.n+7)/8+8 > b.limit {
		return k, fullAtRunEnd
	}
	return k, spaceLeft
}

func (b *plainBools) rest(v *dense, from, to int) int { n, _ := b.add(v, from, to, true); return n }

func (b *plainBools) Finish(dst []byte, ordinal uint32) []byte {
	if r := b.n & 7; r != 0 {
		b.buf[b.n>>3] &= 1<<uint(r) - 1
	}
	return append(appendTwo(dst, uint32(b.n), ordinal), b.buf...)
}

func (b *plainBools) reset() { b.buf, b.n = b.buf[:0], 0 }

// rleBools: u32 count, u32 ordinal, runs of width 1.
type rleBools struct {
	limit int
	enc   BitRuns
}

func (b *rleBools) add(v *dense, from, to int, all bool) (int, fullness) {
	i := from
	for i < to {
		k := min(to-i, 56)
		// 56 bits never take 64 bytes. Near the limit bits are added one at a time, so that the block ends at exactly
		// the right bit.
		if !all && len(b.enc.Buf)+8+64 > b.limit {
			if len(b.enc.Buf)+8 > b.limit {
				return i - from, fullAtRunEnd
			}
			k = 1
		}
		b.enc.PutWord(loadBits(v.bits, v.at+i, k), k)
		i += k
	}
	if len(b.enc.Buf)+8 > b.limit {
		return i - from, fullAtRunEnd
	}
	return i - from, spaceLeft
}

func (b *rleBools) rest(v *dense, from, to int) int { n, _ := b.add(v, from, to, true); return n }

func (b *rleBools) Finish(dst []byte, ordinal uint32) []byte {
	dst = appendTwo(dst, uint32(b.enc.N), ordinal)
	return append(dst, b.enc.Finish()...)
}

func (b *rleBools) reset() { b.enc.reset() }

// rleInts: u32 count, u32 ordinal, runs of the type's width.
type rleInts struct {
	enc             *rle.Encoder
	width, limit, n int
}

func (b *rleInts) add(v *dense, from, to int, all bool) (int, fullness) {
	limit := b.limit - 8
	if all {
		limit = math.MaxInt
	}
	k := 0
	switch b.width {
	case 1:
		k = rlePut(b.enc, view[uint8](v.fixed)[from:to], limit)
	case 2:
		k = rlePut(b.enc, view[uint16](v.fixed)[from:to], limit)
	case 4:
		k = rlePut(b.enc, view[uint32](v.fixed)[from:to], limit)
	default:
		k = rlePut(b.enc, view[uint64](v.fixed)[from:to], limit)
	}
	b.n += k
	if b.enc.Written()+8 > b.limit {
		return k, fullAtRunEnd
	}
	return k, spaceLeft
}

// rlePut encodes values until more than limit bytes are written, and returns the number of values encoded. Runs of
// equal values are added at once, except within the last 128 bytes before the limit; no single run makes the encoder
// write that many.
func rlePut[T uint8 | uint16 | uint32 | uint64](e *rle.Encoder, vals []T, limit int) int {
	for i := 0; i < len(vals); {
		x := vals[i]
		j := i + 1
		for j < len(vals) && vals[j] == x {
			j++
		}
		if j-i < 16 || e.Written() > limit-128 {
			j = i + 1
			e.Put(uint64(x))
		} else {
			e.PutRun(uint64(x), j-i)
		}
		i = j
		if e.Written() > limit {
			return i
		}
	}
	return len(vals)
}

func (b *rleInts) rest(v *dense, from, to int) int { n, _ := b.add(v, from, to, true); return n }

func (b *rleInts) Finish(dst []byte, ordinal uint32) []byte {
	return append(appendTwo(dst, uint32(b.n), ordinal), b.enc.Finish()...)
}

func (b *rleInts) reset() { b.enc.Reset(); b.n = 0 }

// shuffled is bitshuffle: five u32 (ordinal, count, size including these 20 bytes, count rounded up to a multiple of 8,
// element size), then chunks. u32 values, which include dictionary codes, are stored in as few bytes as the largest
// value of the block needs.
type shuffled struct {
	width, max int // bytes per value; largest number of values in a block
	shrink     bool
	buf, small []byte
}

func newShuffled(limit, width int, shrink bool) *shuffled {
	return &shuffled{width: width, max: limit / width, shrink: shrink}
}

func (b *shuffled) n() int { return len(b.buf) / b.width }

func (b *shuffled) add(v *dense, from, to int, all bool) (int, fullness) {
	k := to - from
	if !all {
		k = min(k, max(b.max-b.n(), 0))
	}
	b.buf = append(b.buf, v.fixed[from*b.width:(from+k)*b.width]...)
	if b.n() >= b.max {
		return k, fullNow
	}
	return k, spaceLeft
}

func (b *shuffled) rest(*dense, int, int) int { return 0 }

func (b *shuffled) Finish(dst []byte, ordinal uint32) []byte {
	n := b.n()
	padded := (n + 7) &^ 7
	src, elem := b.buf, b.width
	if b.shrink {
		src, elem = b.shrunk()
	}
	src = append(src, make([]byte, (padded-n)*elem)...)
	at := len(dst)
	dst = append(dst, make([]byte, 20)...)
	dst = bitshuffle.Append(dst, src, elem)
	for i, x := range [5]int{int(ordinal), n, len(dst) - at, padded, elem} {
		binary.LittleEndian.PutUint32(dst[at+4*i:], uint32(x))
	}
	if !b.shrink || elem == b.width {
		b.buf = src // append may have reallocated it
	}
	return dst
}

// shrunk returns u32 values as u8 or u16 if all of them fit.
func (b *shuffled) shrunk() ([]byte, int) {
	vals := view[uint32](b.buf)
	var or uint32 // as many bits as the largest value
	for _, x := range vals {
		or |= x
	}
	switch {
	case or <= 0xff:
		b.small = b.small[:0]
		for _, x := range vals {
			b.small = append(b.small, byte(x))
		}
		return b.small, 1
	case or <= 0xffff:
		b.small = b.small[:0]
		for _, x := range vals {
			b.small = append(b.small, byte(x), byte(x>>8))
		}
		return b.small, 2
	}
	return b.buf, 4
}

func (b *shuffled) reset() { b.buf = b.buf[:0] }

// groupVarints is GROUP_VARINT of UINT32 (v1 only): a group of count, smallest value, ordinal and 0; then the
// differences from the smallest value in groups of four; the last group is padded with zeros.
type groupVarints struct {
	limit, raw int
	vals       []uint32
}

func (b *groupVarints) add(v *dense, from, to int, all bool) (int, fullness) {
	for i, x := range view[uint32](v.fixed)[from:to] {
		b.vals = append(b.vals, x)
		b.raw += varintGroupBytes(x)
		if b.full() && !all {
			return i + 1, fullNow
		}
	}
	if b.full() {
		return to - from, fullNow
	}
	return to - from, spaceLeft
}

// full compares Kudu's estimate of the block size with the limit: 10 bytes for the header, 3 for the padding.
func (b *groupVarints) full() bool { return b.raw+(len(b.vals)+3)/4+13 > b.limit }

func (b *groupVarints) rest(*dense, int, int) int { return 0 }

func (b *groupVarints) Finish(dst []byte, ordinal uint32) []byte {
	base := ^uint32(0)
	for _, x := range b.vals {
		base = min(base, x)
	}
	if len(b.vals) == 0 {
		base = 0
	}
	dst = groupvarint.Append4(dst, uint32(len(b.vals)), base, ordinal, 0)
	for i := range b.vals {
		b.vals[i] -= base
	}
	return groupvarint.Append(dst, b.vals)
}

func (b *groupVarints) reset() { b.vals, b.raw = b.vals[:0], 0 }

// varintGroupBytes returns the bytes that x takes in a group, without its share of the tag byte.
func varintGroupBytes(x uint32) int { return (bits.Len32(x|1) + 7) / 8 }
