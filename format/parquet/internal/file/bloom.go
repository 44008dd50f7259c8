package file

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Bloom is the location of a Bloom filter: of its header and of the filter itself, each of which may be encrypted.
type Bloom struct {
	Header, Bits fault.Span // empty if there is none
	size         int64      // of the filter
	cipher       *meta.Cipher
}

// Bloom finds the Bloom filter to which a chunk's metadata points. If the filter is missing or cannot be parsed, Valid
// reports false; an error means that bytes could not be read.
func (r *File) Bloom(ctx context.Context, c *meta.ChunkMeta) (f Bloom, err error) {
	const limit = 128 // largest header, in bytes
	off := *c.MetaData.BloomFilterOffset
	if off < 0 || off >= r.Size || c.Encrypted {
		return f, nil
	}
	at := r.Span(off, min(limit, r.Size-off))
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, r.Src, at, "bloom_filter", b); err != nil {
		return f, err
	}
	cur, used := wire.NewCursor(b, at, "bloom_filter"), 0
	if c.Cipher != nil {
		plain, n, err := c.Cipher.Decrypt(b, meta.BloomHeaderModule, 0, meta.Alloc)
		if err != nil {
			return f, nil // not a header
		}
		cur, used = wire.NewInnerCursor(plain, at, "bloom_filter"), n
	}
	f.size = meta.ParseBloomHeader(thrift.NewReader(cur, thrift.Compact))
	if cur.Err() != nil || f.size < 0 {
		return f, nil
	}
	if c.Cipher == nil {
		f.Header = at.Sub(0, int64(cur.Pos()))
		f.Bits = at.Sub(f.Header.Len, f.size)
		return f, nil
	}
	f.cipher, f.Header = c.Cipher, at.Sub(0, int64(used))
	f.Bits = at.Sub(f.Header.Len, meta.EncryptedSize(f.size))
	return f, nil
}

// Valid reports whether there is a filter and its size is possible.
func (f *Bloom) Valid(r *File) bool {
	return f.Header.Len > 0 && f.size >= meta.SplitBlockLen && f.size%meta.SplitBlockLen == 0 &&
		f.Bits.End() <= r.Base+r.Size
}

// Read reads the filter.
func (f *Bloom) Read(ctx context.Context, r *File, path string) (meta.SplitBlock, error) {
	b := make([]byte, f.Bits.Len)
	if err := format.ReadFull(ctx, r.Src, f.Bits, path, b); err != nil || f.cipher == nil {
		return b, err
	}
	b, _, err := f.cipher.Decrypt(b, meta.BloomModule, 0, meta.Alloc)
	if err == nil && int64(len(b)) != f.size {
		err = fault.Rel(0, 4, "", "%d bytes, the header says %d", len(b), f.size)
	}
	return b, fault.Locate(err, f.Bits, true, path)
}
