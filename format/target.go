package format

import (
	"context"
	"errors"
	"io"

	"stoa/fault"
	"stoa/store"
	"stoa/vec"
)

// OpenOptions returns the options with which List opens the objects that it lists: the target's limits, and its options
// with these names, since the others need not be options of this format.
func (t Target) OpenOptions(names ...string) OpenOptions {
	o := OpenOptions{Limits: t.Limits, Opts: map[string]string{}}
	for _, name := range names {
		if v, ok := t.Opts[name]; ok {
			o.Opts[name] = v
		}
	}
	return o
}

// Open opens a target for a format: the object, limited to t.At if that is set. Offsets passed to ReadAt, and those in
// spans, count from the beginning of the object in both cases; base is the offset at which t begins.
func (t Target) Open(ctx context.Context) (src store.Source, base, size int64, err error) {
	src, err = t.Tree.Open(ctx, t.Name)
	if err != nil {
		return nil, 0, 0, err
	}
	if t.At == (vec.Range{}) {
		return src, 0, src.Size(), nil
	}
	if t.At.From < 0 || t.At.To > src.Size() || t.At.Len() == 0 {
		src.Close()
		return nil, 0, 0, fault.New(fault.Invalid, fault.Span{Object: t.Name, Off: t.At.From, Len: t.At.Len()}, "",
			"not within the %d bytes of the object", src.Size())
	}
	return src, t.At.From, t.At.Len(), nil
}

// ReadPage is ReadFull for a page, into memory from room. A page larger than l.Page is an error of class Limit.
func ReadPage(ctx context.Context, src store.Source, at fault.Span, l Limits, path string,
	room func(n int) []byte) ([]byte, error) {
	if at.Len > l.Page {
		return nil, fault.Limitf(at, path,
			"%d bytes are more than a page may have (%d, page limit or memory limit)", at.Len, l.Page)
	}
	b := room(int(max(at.Len, 0)))
	return b, ReadFull(ctx, src, at, path, b)
}

// ReadFull reads exactly the bytes at. A file that is too short is Corrupt, because the span came from the file itself.
func ReadFull(ctx context.Context, src store.Source, at fault.Span, path string, buf []byte) error {
	if at.Off < 0 || at.Len < 0 || at.End() > src.Size() {
		return fault.Corruptf(at, path, "reaches past the end of the file (%d)", src.Size())
	}
	n, err := src.ReadAt(ctx, buf[:at.Len], at.Off)
	if int64(n) == at.Len {
		return nil
	}
	if err == io.EOF {
		return fault.Corruptf(at, path, "the file ended after %d of %d bytes while it was read", n, at.Len)
	}
	return err
}

// ReadSome reads from off until p is full or the file ends, which is not an error.
func ReadSome(ctx context.Context, src store.Source, p []byte, off int64) (n int, err error) {
	n, err = src.ReadAt(ctx, p, off)
	if n == len(p) || errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, err
}
