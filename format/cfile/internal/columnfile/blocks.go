package columnfile

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/vec"
	"stoa/wire"
)

// readBlock reads and opens the block at p, which Problem must have accepted, within the metadata limit. It is for
// index blocks, filters and the last data block.
func (f *File) readBlock(ctx context.Context, p block.BlockPtr, path string) (block.Block, error) {
	at := f.Span(p)
	if p.Size > f.Limits.Metadata {
		return block.Block{}, fault.Limitf(at, path, "%d bytes, and at most %d are read (metadata limit)", p.Size,
			f.Limits.Metadata)
	}
	stored := make([]byte, p.Size)
	if err := format.ReadFull(ctx, f.Src, at, path, stored); err != nil {
		return block.Block{}, err
	}
	b, err := f.openBlock(stored, at, nil, f.NoVerify, f.Limits.Metadata, "metadata limit")
	return b, fault.Locate(err, at, true, path)
}

// OpenBlock verifies the checksum of a stored block, unless noVerify is true, and decompresses it. The result aliases
// stored or is allocated from a (nil: from the heap). The error is Corrupt, or Limit if the block exceeds the page
// limit.
func (f *File) OpenBlock(stored []byte, at fault.Span, a *vec.Arena, noVerify bool) (block.Block, error) {
	return f.openBlock(stored, at, a, noVerify, f.Limits.Page, "page limit")
}

// openBlock is OpenBlock for a block that decompresses to at most maxRaw bytes; limit names that limit in errors.
func (f *File) openBlock(stored []byte, at fault.Span, a *vec.Arena, noVerify bool, maxRaw int64,
	limit string) (block.Block, error) {
	if f.Footer.Checksums() {
		if len(stored) < 4 {
			return block.Block{}, fault.Corruptf(at, "checksum", "the block has only %d bytes", len(stored))
		}
		if !noVerify { // checksums are a large part of the read time
			if _, fr := block.SplitChecksum(stored); fr.Stored != fr.Computed {
				return block.Block{}, ChecksumError(at, "checksum", fr)
			}
		}
		stored = stored[:len(stored)-4]
		at.Len -= 4
	}
	if f.Codec == nil {
		return block.Block{Data: stored, At: at, Exact: true}, nil
	}
	c := wire.NewCursor(stored, at, "")
	h := block.ParseCompressed(c, f.Header.Version)
	if c.Err() != nil {
		return block.Block{}, c.Err()
	}
	head := int64(len(stored) - len(h.Data))
	if h.Plain {
		return block.Block{Data: h.Data, At: at.Sub(head, int64(len(h.Data))), Exact: true}, nil
	}
	if int64(h.Raw) > maxRaw {
		return block.Block{}, fault.Limitf(at, "uncompressed_size", "%d bytes, and at most %d are read (%s)", h.Raw,
			maxRaw, limit)
	}
	var raw []byte
	if a != nil {
		raw = a.Bytes(h.Raw)
	} else {
		raw = make([]byte, h.Raw)
	}
	if err := f.Codec.Decompress(raw, h.Data); err != nil {
		return block.Block{}, fault.Locate(err, at.Sub(head, int64(len(h.Data))), true, "")
	}
	return block.Block{Data: raw, At: at}, nil
}

// ChecksumError is the error of a checksum that does not match.
func ChecksumError(at fault.Span, path string, fr block.Frame) error {
	return fault.Corruptf(at, path, "expected %#08x, computed %#08x", fr.Stored, fr.Computed)
}
