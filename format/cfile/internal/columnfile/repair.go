package columnfile

import (
	"bytes"
	"context"
	"math/bits"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/sum"
	"stoa/wire"
)

// maxFooterRepair is the largest footer, in bytes, in which a flipped bit is searched for.
const maxFooterRepair = 4 << 10

// FlipBack opens f, whose footer does not match its checksum, with the one bit of the footer or of the checksum flipped
// that makes them match. There is at most one such bit, since CRC-32C distinguishes any two footers of this size that
// differ in fewer than four bits. at is the byte with the bit. mended is nil if there is no such bit.
func (f *File) FlipBack(ctx context.Context) (repaired *File, at fault.Span) {
	end := make([]byte, min(f.At.Len, readTail))
	from := f.At.Len - int64(len(end))
	if len(end) < block.MinFile || format.ReadFull(ctx, f.Src, f.At.Sub(from, int64(len(end))), "footer", end) != nil {
		return nil, at
	}
	c := wire.NewCursor(end[len(end)-block.Tail:], f.At.Sub(f.At.Len-block.Tail, block.Tail), "footer")
	_, n := block.ParseTail(c)
	size := 4 + n + block.Tail
	if c.Err() != nil || size > min(len(end), maxFooterRepair) {
		return nil, at
	}
	foot := bytes.Clone(end[len(end)-size:])
	bit := flippedBit(foot)
	if bit < 0 {
		return nil, at
	}
	foot[bit/8] ^= 1 << (bit % 8)
	g := &File{Src: f.Src, At: f.At, Limits: f.Limits, NoVerify: f.NoVerify, taken: f.taken, Foot: foot}
	c = wire.NewCursor(foot, g.FootSpan(), "footer").Within(g.taken)
	g.Footer, _ = block.ParseFooter(c, true)
	if c.Err() != nil || !g.Footer.Checksums() || block.Support(&g.Footer, g.FootSpan()) != nil {
		return nil, at
	}
	at = g.FootSpan().Sub(int64(bit/8), 1)
	if g.readHeader(ctx, end, true) != nil || g.Resolve() != nil {
		return nil, at
	}
	return g, at
}

// flippedBit returns the bit of foot that, flipped back, makes the checksum at the beginning of foot match the rest of
// it; -1 if there is none.
func flippedBit(foot []byte) int {
	diff, body := block.Le32(foot)^sum.CRC32C(foot[4:]), foot[4:]
	if bits.OnesCount32(diff) == 1 {
		return bits.TrailingZeros32(diff)
	}
	if bit := sum.NewFlips(sum.Castagnoli(), len(body)).Bit(len(body), diff); bit >= 0 {
		return 32 + bit
	}
	return -1
}
