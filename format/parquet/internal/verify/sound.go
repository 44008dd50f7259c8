package verify

import (
	"context"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/region"
)

// Sound gives what is wrong about a field of a row group, or the first of it: its pages, with all that is said of them,
// and, if values is set or some page has no checksum, what they hold, with all that is said of that.
func Sound(ctx context.Context, r *read.Reader, group, fd int, values bool) (found []region.Finding) {
	v := newVerifier(ctx, r.Target.Name, func(f region.Finding) bool {
		found = append(found, f)
		return false
	})
	v.r, v.told = r, map[fault.Span]bool{}
	v.base.Column = r.Shown.Field(fd).Name
	var pages []chunkWalk
	for _, leaf := range r.FieldLeaves[fd] {
		if err := r.Readable(group, leaf); err != nil {
			v.find("parquet.column", err)
			return found
		}
		w := v.chunk(group, leaf)
		if v.Stopped() {
			return found
		}
		for _, p := range w.data {
			values = values || !p.HasCRC || p.Kind == meta.DataPageV2 || !usual(&p)
		}
		values = values || w.dict != nil && (!w.dict.HasCRC || !w.dict.Sane())
		pages = append(pages, w)
	}
	if !values {
		return found
	}
	v.values(group, fd, pages)
	for i, leaf := range r.FieldLeaves[fd] {
		for _, look := range []func(){func() { v.bloom(group, leaf) }, func() { v.dictionary(&pages[i]) },
			func() { v.levels(&pages[i]) }} {
			if v.Stopped() {
				return found
			}
			look()
		}
	}
	return found
}

// SoundOrder gives the first row of a row group that is not where its sorting columns say.
func SoundOrder(ctx context.Context, r *read.Reader, group int) (found []region.Finding) {
	v := newVerifier(ctx, r.Target.Name, func(f region.Finding) bool {
		found = append(found, f)
		return false
	})
	v.r = r
	v.rowOrder(group)
	return found
}

// SoundFile gives what a file contradicts itself about without its pages.
func SoundFile(r *read.Reader) []region.Finding {
	found := Findings(r)
	v := Collect(r.Target.Name, &found)
	for g := range r.Footer.RowGroups {
		v.find("parquet.sizes", groupSizes(r, g))
	}
	return found
}

// usual reports whether nothing in a header, over which there is no checksum, may keep its page from being read.
func usual(p *meta.Page) bool {
	level := func(e int32) bool { return e == meta.RleLevels || e == meta.BitPacked }
	return p.Sane() && (p.Kind != meta.DataPage || level(p.Levels[0]) && level(p.Levels[1]))
}
