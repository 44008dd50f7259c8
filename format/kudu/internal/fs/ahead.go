package fs

import (
	"context"
	"io"

	"stoa/store"
)

const (
	filesAhead = 16        // files that are read while an earlier one is parsed
	bytesAhead = 256 << 10 // files that are larger are left to the reader
	fewFiles   = 8         // for fewer files it is not worth it
)

// ahead reads small files in an order that is known, several at a time: a disk, or a file server, answers many requests
// in the time of one. It keeps none of them open.
type ahead struct {
	tree   store.Tree
	next   int
	read   []chan []byte // nil: the reader opens the file, and meets whatever is wrong with it
	places chan struct{}
	stop   context.CancelFunc
}

// readAhead starts to read files in the order of names, if tree is local: the trees of stores on a network do it
// themselves. The caller opens each of them by open, in that order, and calls stop at the end.
func readAhead(ctx context.Context, tree store.Tree, names []string) *ahead {
	a := &ahead{tree: tree, stop: func() {}}
	if len(names) < fewFiles || !store.IsLocal(tree) {
		return a
	}
	ctx, a.stop = context.WithCancel(ctx)
	a.places = make(chan struct{}, filesAhead)
	a.read = make([]chan []byte, len(names))
	for i := range a.read {
		a.read[i] = make(chan []byte, 1)
	}
	go func() {
		for i, name := range names {
			select {
			case a.places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() { a.read[i] <- small(ctx, tree, name) }()
		}
	}()
	return a
}

// open opens the next file.
func (a *ahead) open(ctx context.Context, name string) (store.Source, error) {
	if a.read == nil {
		return a.tree.Open(ctx, name)
	}
	var data []byte
	select {
	case data = <-a.read[a.next]:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.next++
	<-a.places
	if data == nil {
		return a.tree.Open(ctx, name)
	}
	return bytesOf(data), nil
}

// small returns the contents of a small file, or nil.
func small(ctx context.Context, tree store.Tree, name string) []byte {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil
	}
	defer src.Close()
	if store.Unsized(src) || src.Size() == 0 || src.Size() > bytesAhead {
		return nil
	}
	data := make([]byte, src.Size())
	if n, err := src.ReadAt(ctx, data, 0); n < len(data) || err != nil && err != io.EOF {
		return nil
	}
	return data
}

// bytesOf is a source of bytes.
type bytesOf []byte

func (b bytesOf) Size() int64  { return int64(len(b)) }
func (b bytesOf) Close() error { return nil }

func (b bytesOf) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
