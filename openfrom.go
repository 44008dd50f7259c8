package stoa

import (
	"context"
	"io"
	"io/fs"

	"stoa/fault"
	"stoa/store"
)

// OpenFS is Open for a name in an fs.FS: an embed.FS, a zip archive, os.DirFS, or any other (see store.FS, also for
// what is read into memory). o.Tree is ignored.
func OpenFS(ctx context.Context, fsys fs.FS, name string, o OpenOptions) (*Table, error) {
	o.Tree = store.FS(fsys)
	return Open(ctx, name, o)
}

// OpenReaderAt opens the file that r reads, of size bytes. name appears in errors; if neither o.From nor the contents
// identify the format (as with CSV), the extension of name does. r remains the caller's: it must be safe for concurrent
// use, and must not change or be closed before Close. o.Tree is ignored.
func OpenReaderAt(ctx context.Context, r io.ReaderAt, size int64, name string, o OpenOptions) (*Table, error) {
	if r == nil || size < 0 {
		return nil, fault.Invalidf("%s: a reader and a size of at least 0 are needed, got %T and %d", name, r, size)
	}
	o.Tree = store.One(name, r, size)
	return Open(ctx, name, o)
}
