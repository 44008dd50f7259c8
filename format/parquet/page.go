package parquet

import (
	"context"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
)

// pages walks the page headers of a column chunk. An error comes last.
func (r *reader) pages(ctx context.Context, group, column int) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		at := r.chunkSpan(group, column)
		s := sealedPage{sealed: r.meta.RowGroups[group].Columns[column].sealed, first: true}
		for i := 0; at.Len > 0; i++ {
			p, err := r.pageOf(ctx, at, fmt.Sprintf("row_groups[%d].columns[%d].page[%d]", group, column, i), s, nil)
			if err != nil {
				yield(page{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
			at = at.Sub(p.body.End()-at.Off, at.End()-p.body.End())
			s.after(&p)
		}
	}
}

// pageAt reads the header of the page at the start of at; trace, which may be nil, sees it.
func (r *reader) pageAt(ctx context.Context, at fault.Span, path string, trace func(region.Node)) (page, error) {
	return r.pageOf(ctx, at, path, sealedPage{}, trace)
}

// pageOf is pageAt of a page that may be encrypted.
func (r *reader) pageOf(ctx context.Context, at fault.Span, path string, s sealedPage,
	trace func(region.Node)) (page, error) {
	for n := int64(1 << 10); ; n *= 16 {
		n = min(n, at.Len, mostHeader)
		b := make([]byte, n)
		if err := format.ReadFull(ctx, r.src, at.Sub(0, n), path, b); err != nil {
			return page{}, err
		}
		c, used, err := headerOf(b, at.Sub(0, n), path, s)
		if err != nil && n < min(at.Len, mostHeader) && moduleSize(b, signatureSize) == 0 {
			continue
		}
		if err != nil {
			return page{}, err
		}
		p := parsePageHeader(thrift.NewReader(c, thrift.Compact))
		if c.Err() != nil && used < 0 && n < min(at.Len, mostHeader) {
			continue // perhaps it is only longer
		}
		if c.Err() != nil {
			return page{}, c.Err()
		}
		if trace != nil {
			again, _, _ := headerOf(b, at.Sub(0, n), path, s)
			parsePageHeader(thrift.NewReader(again.Trace(trace, 3), thrift.Compact))
		}
		if used < 0 {
			used = c.Pos()
		}
		p.header = at.Sub(0, int64(used))
		if p.size < 0 || p.size > at.Len-p.header.Len {
			return p, fault.Corruptf(p.header, path+".compressed_page_size",
				"%d bytes, the column chunk has %d left", p.size, at.Len-p.header.Len)
		}
		if p.raw < 0 || p.values < 0 || p.kind < 0 {
			return p, fault.Corruptf(p.header, path, "no kind of page, or negative sizes")
		}
		p.body = at.Sub(p.header.Len, p.size)
		return p, nil
	}
}
