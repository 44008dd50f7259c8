package file

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// BloomSpans is a Bloom filter's header, and the filter behind it; empty if there is none. An error says that
// bytes could not be read.
func (r *File) BloomSpans(ctx context.Context, off int64) (header, filter fault.Span, err error) {
	if off < 0 || off >= r.Size {
		return header, filter, nil
	}
	at := r.Span(off, min(64, r.Size-off))
	b := make([]byte, at.Len)
	c := wire.NewCursor(b, at, "bloom_filter")
	if err := format.ReadFull(ctx, r.Src, at, "bloom_filter", b); err != nil {
		return header, filter, err
	}
	n := meta.ParseBloomHeader(thrift.NewReader(c, thrift.Compact))
	if c.Err() != nil || n < 0 {
		return header, filter, nil
	}
	header = at.Sub(0, int64(c.Pos()))
	return header, at.Sub(header.Len, n), nil
}
