package cfile

import (
	"context"
	"io"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/rows"
	"stoa/store"
)

// NewReader opens a CFile of size bytes.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	return OpenReader(context.Background(), readerSource{r, size}, "", o)
}

// OpenReader opens the CFile that is all of src; name is the object in errors; "" stands for "cfile".
func OpenReader(ctx context.Context, src store.Source, name string, o format.OpenOptions) (*Reader, error) {
	opts, err := columnfile.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "cfile"
	}
	f, err := columnfile.OpenFile(ctx, src, fault.Span{Object: name, Len: src.Size()}, o)
	if err == nil {
		err = f.CheckRows(ctx)
	}
	if err != nil {
		return nil, err
	}
	r := &Reader{f: f, field: f.Field(opts)}
	tg := format.Target{Tree: rows.With(store.NewMemory(nil), name, src), Name: name}
	t, err := newTable(ctx, tg, f, opts, nil)
	if err != nil {
		return nil, err
	}
	r.table = t
	r.rows = sync.OnceValues(func() (*rows.Reader, error) {
		return rows.Over(context.WithoutCancel(ctx), Format.Name, t, tg.Tree, o)
	})
	return r, nil
}
