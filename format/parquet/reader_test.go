package parquet

import (
	"context"

	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/read"
)

// openReader opens a file without checking it for contradictions.
func openReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	f, err := file.Open(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return &reader{read.NewReader(f, nil)}, nil
}
