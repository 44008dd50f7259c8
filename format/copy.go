package format

import (
	"context"
	"io"

	"stoa/region"
	"stoa/store"
)

// CopyOptions are the options of Format.Copy.
type CopyOptions struct {
	Columns  []string          // names of top-level columns; nil: all
	Opts     map[string]string // of Create
	NoCheck  bool              // do not decode values that checksums cover
	Parallel int
	// Found is called with each finding that prevents pages from being copied: copying checks more than reading does.
	// May be nil.
	Found func(region.Finding)
}

// Copier copies the pages of files into one.
type Copier interface {
	Write(ctx context.Context, w io.Writer) error
	Rows() int64
	// Cut returns how many pages were decoded and encoded again because they have rows of two row groups.
	Cut() int64
	// Check compares what was written with the pages that were copied.
	Check(ctx context.Context, t store.Tree, name string) error
}
