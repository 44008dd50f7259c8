package layout

import (
	"context"
	"errors"
	"fmt"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

const (
	MagicV2  = "CARBONDATAVERSION#ColumnarFormatV2" // magic at the beginning of files of format 2
	TailLen  = 8                                    // the last bytes of a data file: offset of the footer, big-endian
	readHead = 16 << 10                             // size in bytes of ParseGrowing's first read
)

// Object is a file that is opened for each read: a table may have more files than a process may have open.
type Object struct {
	Tree   store.Tree
	At     fault.Span // span of the whole object
	Limits format.Limits
}

// OpenObject looks up the size of an object. Errors are those of tree.
func OpenObject(ctx context.Context, tree store.Tree, name string, l format.Limits) (Object, error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return Object{}, err
	}
	defer src.Close()
	return Object{Tree: tree, At: fault.Span{Object: name, Len: src.Size()}, Limits: l.WithDefaults()}, nil
}

// Read reads n bytes of metadata at off. Reading past the end is Corrupt; reading more than Limits.Metadata is Limit.
func (o *Object) Read(ctx context.Context, off, n int64, path string) ([]byte, error) {
	src, err := o.Tree.Open(ctx, o.At.Object)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return o.read(ctx, src, off, n, path)
}

func (o *Object) read(ctx context.Context, src store.Source, off, n int64, path string) ([]byte, error) {
	at := o.At.Sub(off, n)
	if off < 0 || n < 0 || off > o.At.Len || n > o.At.Len-off {
		return nil, fault.Corruptf(at, path, "reaches past the end of the file (%d)", o.At.Len)
	}
	if n > o.Limits.Metadata {
		return nil, fault.Limitf(at, path, "%d bytes, and at most %d are read (metadata limit)", n, o.Limits.Metadata)
	}
	b := make([]byte, n)
	return b, format.ReadFull(ctx, src, at, path, b)
}

// ReadObject opens an object once and reads all of it: one that somebody may replace is of one version then.
func ReadObject(ctx context.Context, tree store.Tree, name string, l format.Limits) ([]byte, fault.Span, error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil, fault.Span{}, err
	}
	defer src.Close()
	o := Object{Tree: tree, At: fault.Span{Object: name, Len: src.Size()}, Limits: l.WithDefaults()}
	b, err := o.read(ctx, src, 0, o.At.Len, "")
	return b, o.At, err
}

// Cursor returns a cursor over metadata that o.Read returned. Structures parsed from it are charged to the memory
// budget of o.
func (o *Object) Cursor(b []byte, at fault.Span, path string) *wire.Cursor {
	c := wire.NewCursor(b, at, path).Within(o.Limits.Memory())
	c.Spend(int64(len(b)))
	return c
}

// ParseGrowing parses a structure at off whose size is recorded nowhere: more and more bytes are read until parse
// succeeds. It returns the bytes that parse used.
func (o *Object) ParseGrowing(ctx context.Context, off int64, path string, parse func(c *wire.Cursor)) ([]byte, error) {
	for n := int64(readHead); ; n *= 8 {
		n = min(n, o.At.Len-off, o.Limits.Metadata)
		b, err := o.Read(ctx, off, n, path)
		if err != nil {
			return nil, err
		}
		c := o.Cursor(b, o.At.Sub(off, n), path)
		parse(c)
		if c.Err() == nil || fault.OverBudget(c.Err()) || n == min(o.At.Len-off, o.Limits.Metadata) {
			return b[:c.Pos()], c.Err()
		}
	}
}

// Trace calls trace(n) unless trace is nil.
func Trace(trace func(region.Node), n region.Node) {
	if trace != nil {
		trace(n)
	}
}

// ReadSome reads from off to p; it fills only a part of p if the file ends before.
func ReadSome(ctx context.Context, src store.Source, p []byte, off int64) error {
	n, err := src.ReadAt(ctx, p, off)
	if n == len(p) || err == io.EOF {
		return nil
	}
	return err
}

// ReadIndex reads a .carbonindex or, if merged is true, a .carbonindexmerge. With an error it also returns the files
// before it.
func (o *Object) ReadIndex(ctx context.Context, merged bool, trace func(region.Node)) ([]IndexFile, error) {
	b, err := o.Read(ctx, 0, o.At.Len, "")
	if err != nil {
		return nil, err
	}
	c := o.Cursor(b, o.At, "").Trace(trace, 1)
	if !merged {
		x := ParseIndex(c)
		x.Name = o.At.Object
		return []IndexFile{x}, c.Err()
	}
	return ParseMergedIndex(c, trace), c.Err()
}

// Findingf is a finding of recovery. If an argument is an error in the same object, only its reason is printed.
func Findingf(code string, at fault.Span, part, format string, args ...any) region.Finding {
	for i, a := range args {
		if err, _ := a.(error); err == nil {
			continue
		} else if e := (*fault.Error)(nil); errors.As(err, &e) && e.At.Object == at.Object && e.Cause == nil {
			args[i] = e.Reason
		}
	}
	return Codes.Finding(code, at, part, fmt.Sprintf(format, args...))
}
