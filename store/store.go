// Package store reads and writes bytes by name: Tree and Source to read, Sink to write. Local files and memory are in
// this package; remote stores have packages of their own.
//
// Names use slashes. In the Local tree a name is a path as the user typed it, so that the spans of errors use the
// user's words.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
)

// ErrChanged is in errors about an object that has changed since it was opened, or since its reading was planned.
var ErrChanged = errors.New("changed")

// Source is one object, open for reading. It is safe for concurrent use.
type Source interface {
	// ReadAt fills p from offset off. As with io.ReaderAt, n < len(p) comes with an error; io.EOF at the end.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	// Size returns the object's length in bytes.
	Size() int64
	Close() error
}

// Info is what is known about an object without opening it.
type Info struct {
	Name  string // full name in the tree
	Size  int64  // bytes; 0 for a directory
	Dir   bool
	Stamp string // changes when the object does: size and modification time, an etag, …
}

// Tree is a set of named objects. For a name that does not exist the error is fs.ErrNotExist.
type Tree interface {
	Open(ctx context.Context, name string) (Source, error)
	Stat(ctx context.Context, name string) (Info, error)
	// List yields the direct children of a directory, sorted by name.
	List(ctx context.Context, dir string) iter.Seq2[Info, error]
}

// Object is one object being written. The data are on stable storage when Close returns nil, but visible only after the
// Sink's Commit.
type Object interface {
	io.Writer
	Close() error
}

// Scratch is a temporary file for sorting and spilling; it vanishes with Close.
type Scratch interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Sink is a place being written: one object, or a directory of objects. Nothing is visible before Commit, and nothing
// remains after Abort.
type Sink interface {
	// Create begins an object. The name "" is the place itself (one object); other names lie in the place, which is
	// then a directory. A sink is either one object or a directory.
	Create(ctx context.Context, name string) (Object, error)
	Scratch(ctx context.Context) (Scratch, error)
	// Commit makes everything that was created visible at once.
	Commit(ctx context.Context) error
	// Abort removes everything. After Commit it does nothing.
	Abort(ctx context.Context) error
}

// ReaderAt returns an io.ReaderAt of a Source, for libraries. All reads use ctx.
func ReaderAt(ctx context.Context, s Source) io.ReaderAt { return readerAt{ctx, s} }

type readerAt struct {
	ctx context.Context
	s   Source
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.s.ReadAt(r.ctx, p, off) }
