package parquet

import (
	"context"

	"stoa/format"
)

// openReader opens a file as it is, whether or not it agrees with itself.
func openReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	f, err := openFile(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return &reader{NewReader(f, nil)}, nil
}
