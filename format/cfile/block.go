package cfile

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// block is a block without checksum and compression: what one of the block parsers reads.
type block struct {
	data  []byte
	at    fault.Span // where data lies, if exact; otherwise what it was made from
	exact bool
}

// cursor reads the block. path may be empty: see fault.Locate.
func (b *block) cursor(path string) *wire.Cursor {
	if b.exact {
		return wire.NewCursor(b.data, b.at, path)
	}
	return wire.NewInnerCursor(b.data, b.at, path)
}

// reader is cursor as a value, which a caller may have on its stack.
func (b *block) reader() wire.Cursor {
	if b.exact {
		return *wire.NewCursor(b.data, b.at, "")
	}
	return *wire.NewInnerCursor(b.data, b.at, "")
}

// locate places the relative error of a decoder that was given the block's bytes from off on.
func (b *block) locate(err error, off int, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fault.Error); ok && e.At.Object == "" {
		moved := *e
		moved.At.Off += int64(off)
		err = &moved
	}
	return fault.Locate(err, b.at, b.exact, path)
}

// readBlock reads and opens the block at p, which bad has found good. It is for metadata: index blocks, the blocks of a look-up.
func (f *file) readBlock(ctx context.Context, p blockPtr, path string) (block, error) {
	at := f.span(p)
	if p.size > f.limits.Metadata {
		return block{}, fault.Limitf(at, path, "%d bytes are more than metadata may have (%d)", p.size, f.limits.Metadata)
	}
	stored := make([]byte, p.size)
	if err := format.ReadFull(ctx, f.src, at, path, stored); err != nil {
		return block{}, err
	}
	b, err := f.openBlock(stored, at, nil, f.noVerify)
	return b, fault.Locate(err, at, true, path)
}

// openBlock verifies the checksum and decompresses. The result is part of stored, or lies in a (nil: in fresh memory).
func (f *file) openBlock(stored []byte, at fault.Span, a *vec.Arena, noVerify bool) (block, error) {
	if f.footer.Checksums() {
		if !noVerify { // it is a large part of what reading costs
			if _, fr := splitChecksum(stored); fr.crc != fr.want {
				return block{}, checksumError(at, "checksum", fr)
			}
		}
		stored = stored[:len(stored)-4]
		at.Len -= 4
	}
	if f.codec == nil {
		return block{stored, at, true}, nil
	}
	c := wire.NewCursor(stored, at, "")
	h := parseCompressed(c, f.header.Version)
	if c.Err() != nil {
		return block{}, c.Err()
	}
	head := int64(len(stored) - len(h.data))
	if h.plain {
		return block{h.data, at.Sub(head, int64(len(h.data))), true}, nil
	}
	if int64(h.raw) > f.limits.Page {
		return block{}, fault.Limitf(at, "uncompressed_size", "%d bytes are more than a page may have (%d)", h.raw, f.limits.Page)
	}
	var raw []byte
	if a != nil {
		raw = a.Bytes(h.raw)
	} else {
		raw = make([]byte, h.raw)
	}
	if err := f.codec.Decompress(raw, h.data); err != nil {
		return block{}, fault.Locate(err, at.Sub(head, int64(len(h.data))), true, "")
	}
	return block{raw, at, false}, nil
}

// splitChecksum takes the checksum off a stored block, which has more than four bytes.
func splitChecksum(stored []byte) ([]byte, frame) {
	n := len(stored) - 4
	return stored[:n], frame{size: len(stored), crc: le32(stored[n:]), want: sum.CRC32C(stored[:n])}
}

// compressed is what stands before the data of a compressed block.
type compressed struct {
	raw   int // bytes when decompressed
	data  []byte
	plain bool // data is not compressed
}

// parseCompressed reads a block of a file that has a codec:
//
//	v1   compressed_size u32, uncompressed_size u32, data
//	v2   uncompressed_size u32, data; data of just that size is not compressed
func parseCompressed(c *wire.Cursor, version int) (h compressed) {
	if version == 1 {
		n := c.U32("compressed_size")
		if c.Err() == nil && int64(n) != int64(c.Left())-4 {
			c.Fail(0, 4, "compressed_size", "%d bytes, but %d are there", n, c.Left()-4)
		}
	}
	raw := c.U32("uncompressed_size")
	switch {
	case raw > maxUncompressed:
		c.Fail(c.Pos()-4, 4, "uncompressed_size", "%d bytes, more than a block of a compressed file may have (%d)", raw, maxUncompressed)
	case version == 2 && c.Err() == nil && uint64(c.Left()) > uint64(raw):
		c.Fail(c.Pos()-4, 4, "uncompressed_size", "%d bytes, but %d are stored", raw, c.Left())
	}
	h.raw = int(raw)
	h.plain = version == 2 && c.Left() == h.raw
	h.data = c.Rest()
	if !h.plain { // otherwise they are told by the block's own parser
		c.Node(region.Data, c.Pos(), c.Left(), "compressed", "")
	}
	return h
}
