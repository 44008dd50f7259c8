package file

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Bloom is where a Bloom filter is: its header and the filter itself, each of which may be encrypted.
type Bloom struct {
	Header, Bits fault.Span // empty if there is none
	size         int64      // of the filter
	cipher       *meta.Cipher
}

// Bloom finds the Bloom filter that a chunk's metadata names. A filter that is missing or cannot be parsed is not
// Valid; an error means that bytes could not be read.
func (r *File) Bloom(ctx context.Context, c *meta.ChunkMeta) (f Bloom, err error) {
	const limit = 128 // bytes of a header
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
			return f, nil // it is no header
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

// Valid reports whether there is a filter, of a possible size.
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
