package verify

import (
	"context"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/region"
)

// CheckField checks a field of a row group: its pages and the claims about them; and, if values is set or a page has no
// checksum, its values and the claims about those. It stops at the first fault, so other faults may be missing.
func CheckField(ctx context.Context, r *read.Reader, group, field int, values bool) (found []region.Finding) {
	v := newVerifier(ctx, r.Target.Name, func(f region.Finding) bool {
		found = append(found, f)
		return false
	})
	v.r = r
	v.field(group, field, values)
	return found
}

// field is CheckField. It returns what was found of the leaves' chunks, unless they cannot be read.
func (v *verifier) field(group, field int, values bool) (pages []chunkWalk) {
	v.badPages, v.base.Column = map[fault.Span]bool{}, v.r.Shown.Field(field).Name
	for _, leaf := range v.r.FieldLeaves[field] {
		if err := v.r.Readable(group, leaf); err != nil {
			v.find("parquet.column", err)
			return nil
		}
		w := v.chunk(group, leaf)
		if v.Stopped() {
			return nil
		}
		for _, p := range w.data {
			values = values || !p.HasCRC || p.Kind == meta.DataPageV2 || !usual(&p)
		}
		values = values || w.dict != nil && (!w.dict.HasCRC || !w.dict.Plausible())
		pages = append(pages, w)
	}
	if !values {
		return pages
	}
	v.values(group, field, pages)
	for i, leaf := range v.r.FieldLeaves[field] {
		for _, look := range []func(){func() { v.bloom(group, leaf) }, func() { v.dictionary(&pages[i]) },
			func() { v.levels(&pages[i]) }} {
			if v.Stopped() {
				return pages
			}
			look()
		}
	}
	return pages
}

// CheckOrder returns the first row of a row group that is out of order by the sorting columns.
func CheckOrder(ctx context.Context, r *read.Reader, group int) (found []region.Finding) {
	v := newVerifier(ctx, r.Target.Name, func(f region.Finding) bool {
		found = append(found, f)
		return false
	})
	v.r = r
	v.rowOrder(group)
	return found
}

// CheckFile returns the contradictions of a file with itself, except for those about its pages.
func CheckFile(r *read.Reader) []region.Finding {
	found := Findings(r)
	v := Collect(r.Target.Name, &found)
	for g := range r.Footer.RowGroups {
		v.find("parquet.sizes", groupSizes(r, g))
	}
	return found
}

// usual reports whether a page header, which no checksum covers, is free of anything that could keep the page from
// being read.
func usual(p *meta.Page) bool {
	level := func(e int32) bool { return e == meta.RleLevels || e == meta.BitPacked }
	return p.Plausible() && (p.Kind != meta.DataPage || level(p.Levels[0]) && level(p.Levels[1]))
}
