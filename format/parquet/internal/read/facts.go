package read

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

var (
	_ format.Physical = (*Reader)(nil)
	_ format.Placed   = (*Reader)(nil)
)

// Place returns the span that a chunk may occupy.
func (r *Reader) Place(g format.RowGroup, col int) fault.Span {
	if g.Index < 0 || g.Index >= len(r.Footer.RowGroups) || col < 0 || col >= len(r.Leaves) ||
		r.Readable(g.Index, col) != nil {
		return fault.Span{}
	}
	return r.padded(r.ChunkSpan(g.Index, col))
}

// ChunkFacts collects its facts from the page headers, because the footer also lists the encodings of levels and
// dictionaries, and some that were never used. Facts found before damage are returned with the error.
func (r *Reader) ChunkFacts(ctx context.Context, g format.RowGroup, col int) (f format.ChunkFacts, err error) {
	if err := r.Readable(g.Index, col); err != nil {
		return f, err
	}
	m := r.Footer.RowGroups[g.Index].Columns[col].MetaData
	f.Codec = m.Codec.String()
	for p, err := range r.File.Pages(ctx, g.Index, col) {
		if err != nil {
			return f, err
		}
		f.Stored += p.Header.Len + p.Body.Len
		f.Raw += p.Header.Len + p.Raw
		if !p.IsData() {
			continue
		}
		f.Pages++
		name := meta.Encoding(p.Encoding).String()
		i := slices.IndexFunc(f.Encodings, func(e format.EncodedPages) bool { return e.Encoding == name })
		if i < 0 {
			i, f.Encodings = len(f.Encodings), append(f.Encodings, format.EncodedPages{Encoding: name})
		}
		f.Encodings[i].Pages++
	}
	if m.BloomFilterOffset == nil {
		return f, nil
	}
	b, err := r.Bloom(ctx, r.Footer.RowGroups[g.Index].Columns[col])
	if err == nil && b.Valid(r.File) {
		f.Bloom = b.Header.Len + b.Bits.Len
	}
	return f, err
}
