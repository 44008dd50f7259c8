package columnfile

import (
	"bytes"
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/bloom"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// maxHashes is the largest accepted number of hash functions of a filter. It bounds the time of a lookup; Kudu writes
// 13.
const maxHashes = 1024

// ParseBloom reads a block of a bloom file:
//
//	length   u32
//	header   BloomBlockHeaderPB: num_hash_functions (1)
//	bits     the filter, least significant bit of a byte first
func ParseBloom(c *wire.Cursor) (b bloom.Filter) {
	n := c.U32("length")
	if c.Err() == nil && uint64(n) > uint64(c.Left()) {
		c.Fail(0, 4, "length", "%d bytes are declared, %d are left", n, c.Left())
	}
	h := block.Part(c, "header", int(n))
	for r := pb.NewReader(h); r.Next(); {
		if r.Field() == 1 {
			b.Hashes = int(r.Int32("num_hash_functions"))
		} else {
			r.Unknown()
		}
	}
	c.Join(h)
	if c.Err() == nil && (b.Hashes < 1 || b.Hashes > maxHashes) {
		c.Fail(4, int(n), "header.num_hash_functions", "expected 1 to %d, found %d", maxHashes, b.Hashes)
	}
	if c.Err() != nil {
		return b
	}
	b.Bits = c.Rest()
	c.Node(region.Data, c.Pos(), c.Left(), "bits", "")
	if len(b.Bits) == 0 {
		c.Fail(c.Pos(), 0, "bits", "a filter without bits")
	}
	return b
}

// Bloom is an open bloom file.
type Bloom struct{ f *File }

// OpenBloom opens the bloom file that is all of src; name is the object in errors.
func OpenBloom(ctx context.Context, src store.Source, name string, o format.OpenOptions) (*Bloom, error) {
	return OpenBloomAt(ctx, src, fault.Span{Object: name, Len: src.Size()}, o)
}

// OpenBloomAt opens the bloom file that is the part at of src. The error is Invalid if it cannot be one.
func OpenBloomAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*Bloom, error) {
	f, err := OpenFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	if err := f.CheckBloom(); err != nil {
		return nil, err
	}
	return &Bloom{f}, nil
}

// CheckBloom returns an error, Invalid, if f cannot be a bloom file.
func (f *File) CheckBloom() error {
	if why := f.WhyNot(block.KindBloom); why != "" {
		return fault.New(fault.Invalid, f.FootSpan(), "footer", "%s", why)
	}
	return nil
}

// MayContain reports whether an encoded key may be in the filters. False means that it is certainly absent; true is not
// certain.
func (b *Bloom) MayContain(ctx context.Context, key []byte) (bool, error) {
	w := b.f.Values()
	if err := w.seek(ctx, key, false); err != nil || w.Eof {
		return false, err
	}
	e, err := w.Current()
	if err != nil || bytes.Compare(e.Key, key) > 0 {
		return false, err // key is less than the first key of the file
	}
	if err := w.Block(e); err != nil {
		return false, err
	}
	filter, err := b.f.ReadBloom(ctx, e.Ptr, w.Path())
	if err != nil {
		return false, err
	}
	return filter.Has(bloom.Hash(key)), nil
}

// ReadBloom reads and parses the filter in block p; path is its place in errors.
func (f *File) ReadBloom(ctx context.Context, p block.BlockPtr, path string) (bloom.Filter, error) {
	blk, err := f.readBlock(ctx, p, path)
	if err != nil {
		return bloom.Filter{}, err
	}
	c := blk.Cursor(path)
	filter := ParseBloom(c)
	return filter, c.Err()
}
