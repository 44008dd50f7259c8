package parquet

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// verify reads every column of every row group, and compares the checksums of pages that have one. Its findings are
// parquet.footer, parquet.page (a page header), parquet.page.checksum, parquet.column (values), parquet.layout (bytes
// that nothing claims) and parquet.unreadable (not the file's fault, perhaps).
func verify(ctx context.Context, t format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		r, err := openReader(ctx, t, o)
		if err != nil {
			yield(finding("parquet.footer", region.Finding{Part: t.Name, Rows: [2]int64{-1, -1}, Lost: -1}, err))
			return
		}
		defer r.Close()
		at := int64(0)
		for g, rg := range r.meta.RowGroups {
			rows := [2]int64{at, at + rg.NumRows}
			at = rows[1]
			for f := range r.leaves {
				if !r.verifyColumn(ctx, g, f, rows, o.NoVerify, yield) {
					return
				}
			}
		}
		for n, err := range describe(ctx, t, format.DescribeOptions{OpenOptions: o}) {
			if err == nil && n.Kind == region.Gap && n.Depth == 1 {
				err = fmt.Errorf("%d bytes that nothing claims", n.At.Len)
				f := region.Finding{Code: "parquet.layout", Severity: region.Note, At: n.At, Part: t.Name, Rows: [2]int64{-1, -1}, Message: err.Error()}
				if !yield(f) {
					return
				}
			}
		}
	}
}

// verifyColumn checks one field in one row group.
func (r *reader) verifyColumn(ctx context.Context, group, field int, rows [2]int64, noSums bool, yield func(region.Finding) bool) bool {
	base := region.Finding{Part: r.target.Name, Column: r.schema.Field(field).Name, Rows: rows, Lost: rows[1] - rows[0]}
	for _, leaf := range r.leaves[field] {
		for p, err := range r.pages(ctx, group, leaf) {
			code := "parquet.page"
			if err == nil && p.hasCRC && !noSums {
				code, err = "parquet.page.checksum", r.checkSum(ctx, p)
			}
			if err != nil && !yield(finding(code, base, err)) {
				return false
			}
		}
	}
	q := format.Query{Cols: []int{field}}
	for _, err := range r.Batches(ctx, format.RowGroup{Part: r.target.Name, Index: group}, q, vec.Range{}, nil) {
		if err != nil && !yield(finding("parquet.column", base, err)) {
			return false
		}
	}
	return true
}

func (r *reader) checkSum(ctx context.Context, p page) error {
	if p.body.Len > r.limits.Page {
		return fault.Limitf(p.body, "page", "%d bytes, the limit is %d", p.body.Len, r.limits.Page)
	}
	b := make([]byte, p.body.Len)
	if err := format.ReadFull(ctx, r.src, p.body, "page", b); err != nil {
		return err
	}
	if got := crc32.ChecksumIEEE(b); got != p.crc {
		return fault.Corruptf(p.body, "page.crc", "the checksum is %08x, the header says %08x", got, p.crc)
	}
	return nil
}

func finding(code string, f region.Finding, err error) region.Finding {
	f.Code, f.Severity, f.Message = code, region.Error, strings.ReplaceAll(err.Error(), "\n", "; ")
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		f.Code = "parquet.unreadable"
	}
	if e != nil {
		f.At, f.Path = e.At, e.Path
	}
	return f
}
