package parquet

import (
	"context"

	"stoa/format"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/rewrite"
)

// copyPages implements Format.Copy: it plans to copy the pages of files without decoding them. If that is impossible,
// the string says why.
func copyPages(ctx context.Context, from []format.Reader, o format.CopyOptions) (format.Copier, string, error) {
	var files []*read.Reader
	for _, f := range from {
		r, ok := f.(*reader)
		if !ok {
			return nil, "it was opened by another reader", nil
		}
		files = append(files, r.Reader)
	}
	j, why, err := rewrite.Plan(ctx, files, o)
	if err != nil || why != "" {
		return nil, why, err
	}
	return j, "", nil
}
