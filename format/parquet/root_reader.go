package parquet

import (
	"context"

	"stoa/format"
	"stoa/region"
)

// reader is an open file with what is wrong about it.
type reader struct{ *Reader }

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	f, err := openAgreed(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return &reader{NewReader(f, nil)}, nil
}

func recoverReader(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	r, found, err := recoverFile(ctx, t, o)
	if err != nil {
		return nil, found, err
	}
	return &reader{r}, found, nil
}

var _ format.Finder = (*reader)(nil)

// Findings is format.Finder's.
func (r *reader) Findings() []region.Finding { return Findings(r.Reader) }
