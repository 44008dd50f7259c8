package stoa

import (
	"context"
	"io"
	"io/fs"

	"stoa/store"
)

// OpenFS is Open for a name in an fs.FS: an embed.FS, a zip archive, os.DirFS, or any other (see store.FS, also for
// what is read into memory). o.Tree is not looked at.
func OpenFS(ctx context.Context, fsys fs.FS, name string, o OpenOptions) (*Table, error) {
	o.Tree = store.FS(fsys)
	return Open(ctx, name, o)
}

// OpenReaderAt opens the file that r gives, of size bytes. name is what errors call it; where neither o.From nor the
// bytes say of which format it is (CSV, for one), the extension of name does. r stays the caller's, has to be safe
// for concurrent use, and must not change before Close. o.Tree is not looked at.
func OpenReaderAt(ctx context.Context, r io.ReaderAt, size int64, name string, o OpenOptions) (*Table, error) {
	o.Tree = store.One(name, r, size)
	return Open(ctx, name, o)
}
