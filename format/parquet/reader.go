package parquet

import (
	"context"

	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/recovery"
	"stoa/format/parquet/internal/verify"
	"stoa/region"
)

// reader is an open file that also reports findings.
type reader struct{ *read.Reader }

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	f, err := file.OpenConsistent(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return &reader{read.NewReader(f, nil)}, nil
}

// recoverReader opens the remainder of a damaged file.
func recoverReader(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	r, found, err := recovery.File(ctx, t, o)
	if err != nil {
		return nil, found, err
	}
	return &reader{r}, found, nil
}

var _ format.Finder = (*reader)(nil)

// Findings implements format.Finder.
func (r *reader) Findings() []region.Finding { return verify.Findings(r.Reader) }
