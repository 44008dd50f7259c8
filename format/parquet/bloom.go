package parquet

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// bloomSpans is a Bloom filter's header, and the filter behind it; empty if there is none. An error says that
// bytes could not be read.
func (r *File) bloomSpans(ctx context.Context, off int64) (header, filter fault.Span, err error) {
	if off < 0 || off >= r.size {
		return header, filter, nil
	}
	at := r.span(off, min(64, r.size-off))
	b := make([]byte, at.Len)
	c := wire.NewCursor(b, at, "bloom_filter")
	if err := format.ReadFull(ctx, r.src, at, "bloom_filter", b); err != nil {
		return header, filter, err
	}
	n := meta.ParseBloomHeader(thrift.NewReader(c, thrift.Compact))
	if c.Err() != nil || n < 0 {
		return header, filter, nil
	}
	header = at.Sub(0, int64(c.Pos()))
	return header, at.Sub(header.Len, n), nil
}
