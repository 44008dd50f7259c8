package file

import (
	"context"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/region"
)

// Pages walks the page headers of a column chunk. An error ends the walk.
func (r *File) Pages(ctx context.Context, group, column int) iter.Seq2[meta.Page, error] {
	return func(yield func(meta.Page, error) bool) {
		at := r.ChunkSpan(group, column)
		s := meta.PageModule{Cipher: r.Footer.RowGroups[group].Columns[column].Cipher, First: true}
		for i := 0; at.Len > 0; i++ {
			path := meta.IndexPath(group, column, fmt.Sprintf("page[%d]", i))
			p, err := r.PageHeader(ctx, at, path, s, nil)
			if err != nil {
				yield(meta.Page{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
			at = at.Sub(p.Body.End()-at.Off, at.End()-p.Body.End())
			s.Advance(&p)
		}
	}
}

// PlainPageHeader reads the header of the unencrypted page at the start of at. trace, which may be nil, receives its
// fields.
func (r *File) PlainPageHeader(ctx context.Context, at fault.Span, path string,
	trace func(region.Node)) (meta.Page, error) {
	return r.PageHeader(ctx, at, path, meta.PageModule{}, trace)
}

// PageHeader is PlainPageHeader for a page that may be encrypted.
func (r *File) PageHeader(ctx context.Context, at fault.Span, path string, s meta.PageModule,
	trace func(region.Node)) (meta.Page, error) {
	for n := int64(1 << 10); ; n *= 16 {
		n = min(n, at.Len, meta.MaxHeader)
		b := make([]byte, n)
		if err := format.ReadFull(ctx, r.Src, at.Sub(0, n), path, b); err != nil {
			return meta.Page{}, err
		}
		c, used, err := meta.HeaderCursor(b, at.Sub(0, n), path, s)
		if err != nil && n < min(at.Len, meta.MaxHeader) && meta.ModuleSize(b, meta.SignatureSize) == 0 {
			continue
		}
		if err != nil {
			return meta.Page{}, err
		}
		p := meta.ParsePageHeader(thrift.NewReader(c, thrift.Compact))
		if c.Err() != nil && used < 0 && n < min(at.Len, meta.MaxHeader) {
			continue // the header may just be longer
		}
		if c.Err() != nil {
			return meta.Page{}, c.Err()
		}
		if trace != nil {
			again, _, _ := meta.HeaderCursor(b, at.Sub(0, n), path, s)
			meta.ParsePageHeader(thrift.NewReader(again.Trace(trace, 3), thrift.Compact))
		}
		if used < 0 {
			used = c.Pos()
		}
		p.Header = at.Sub(0, int64(used))
		if p.Size < 0 || p.Size > at.Len-p.Header.Len {
			return p, fault.Corruptf(p.Header, path+".compressed_page_size",
				"%d bytes, but the column chunk has %d left", p.Size, at.Len-p.Header.Len)
		}
		if p.Raw < 0 || p.Values < 0 || p.Kind < 0 {
			return p, fault.Corruptf(p.Header, path, "no page type, or negative sizes")
		}
		if p.MissingField != "" {
			return p, fault.Corruptf(p.Header, path+"."+p.MissingField, "a required field is missing")
		}
		p.Body = at.Sub(p.Header.Len, p.Size)
		return p, nil
	}
}
