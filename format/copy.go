package format

import (
	"context"
	"io"

	"stoa/region"
	"stoa/store"
)

// CopyOptions are the options of Format.Copy.
type CopyOptions struct {
	Columns  []string          // top-level ones; nil = all
	Opts     map[string]string // of Create
	NoCheck  bool              // values are not decoded where checksums cover them
	Parallel int
	// Found is called with each finding because of which pages are not copied: copying looks at more than reading. nil:
	Found func(region.Finding)
}

// Copier copies.
type Copier interface {
	Write(ctx context.Context, w io.Writer) error
	Rows() int64
	// Cut is how many pages are decoded and encoded again, since they have rows of two row groups.
	Cut() int64
	// Check compares what was written with what was copied.
	Check(ctx context.Context, t store.Tree, name string) error
}
