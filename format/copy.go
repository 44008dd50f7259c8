package format

import (
	"context"
	"io"

	"stoa/region"
	"stoa/store"
)

// CopyOptions say what is copied.
type CopyOptions struct {
	Columns  []string          // top-level ones; nil = all
	Opts     map[string]string // of Create
	NoCheck  bool              // values are not read where checksums say that they are whole
	Parallel int
	// Found gets each finding for which pages are not copied: who copies looks at more than who reads. nil: nobody
	Found func(region.Finding)
}

// Copier copies.
type Copier interface {
	Write(ctx context.Context, w io.Writer) error
	Rows() int64
	// Check compares what was written with what was copied.
	Check(ctx context.Context, t store.Tree, name string) error
}
