package block

import (
	"stoa/fault"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/wire"
)

// Block is a block without checksum and compression, as the block parsers read it.
type Block struct {
	Data  []byte
	At    fault.Span // of Data if Exact, otherwise of the compressed bytes
	Exact bool       // Data is a part of the file, so that places within it are known
}

// Cursor reads the block. path may be empty: see fault.Locate.
func (b *Block) Cursor(path string) *wire.Cursor {
	if b.Exact {
		return wire.NewCursor(b.Data, b.At, path)
	}
	return wire.NewInnerCursor(b.Data, b.At, path)
}

// Reader is Cursor as a value, which is not allocated.
func (b *Block) Reader() wire.Cursor {
	if b.Exact {
		return *wire.NewCursor(b.Data, b.At, "")
	}
	return *wire.NewInnerCursor(b.Data, b.At, "")
}

// Locate adds the place in the file to a relative error from a decoder whose input began at offset off of the block.
func (b *Block) Locate(err error, off int, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fault.Error); ok && e.At.Object == "" {
		moved := *e
		moved.At.Off += int64(off)
		err = &moved
	}
	return fault.Locate(err, b.At, b.Exact, path)
}

// SplitChecksum splits a stored block, of more than four bytes, into its data and its checksum.
func SplitChecksum(stored []byte) ([]byte, Frame) {
	n := len(stored) - 4
	return stored[:n], Frame{size: len(stored), Stored: Le32(stored[n:]), Computed: sum.CRC32C(stored[:n])}
}

// compressed is a parsed compressed block.
type compressed struct {
	Raw   int // bytes when decompressed
	Data  []byte
	Plain bool // the data is not compressed
}

// ParseCompressed reads a block of a file that has a codec:
//
//	v1   compressed_size u32, uncompressed_size u32, data
//	v2   uncompressed_size u32, data; data of just that size is not compressed
func ParseCompressed(c *wire.Cursor, version int) (h compressed) {
	if version == 1 {
		n := c.U32("compressed_size")
		if c.Err() == nil && int64(n) != int64(c.Left())-4 {
			c.Fail(0, 4, "compressed_size", "%d bytes, but %d are stored", n, c.Left()-4)
		}
	}
	raw := c.U32("uncompressed_size")
	switch {
	case raw > MaxUncompressed:
		c.Fail(c.Pos()-4, 4, "uncompressed_size", "%d bytes, a block of a compressed file has at most %d",
			raw, MaxUncompressed)
	case version == 2 && c.Err() == nil && uint64(c.Left()) > uint64(raw):
		c.Fail(c.Pos()-4, 4, "uncompressed_size", "%d bytes, but %d are stored", raw, c.Left())
	}
	h.Raw = int(raw)
	h.Plain = version == 2 && c.Left() == h.Raw
	h.Data = c.Rest()
	if !h.Plain { // if it is plain, the block's parser traces it
		c.Node(region.Data, c.Pos(), c.Left(), "compressed", "")
	}
	return h
}
