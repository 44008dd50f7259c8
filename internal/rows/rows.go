// Package rows is the common part of the formats' native readers: an open file as rows, from a position on, from a key
// on, or a single one. It runs the scan engine over one file, for programs that use one format on its own; filters,
// policies for damage, tables of many files and workers are in package stoa.
package rows

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// Rows are the rows of an open file. Its methods are safe for concurrent use if those of its reader are.
type Rows struct {
	src  scan.Source
	n    int64
	kind string // the name of the format
}

// Of returns the n rows of r, a file of the format kind whose bytes are in tree.
func Of(kind string, r format.Reader, n int64, tree store.Tree, o format.OpenOptions) *Rows {
	return &Rows{kind: kind, n: n, src: scan.Source{Reader: r, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(),
		Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify}}
}

// NumRows returns the number of rows.
func (r *Rows) NumRows() int64 { return r.n }

// From returns the rows from row n on, in batches that are valid until the next iteration. After the last row it yields
// nothing.
func (r *Rows) From(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.between(ctx, n, r.n, mem)
}

func (r *Rows) between(ctx context.Context, from, to int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	switch {
	case from < 0 || from > r.n:
		return failed(fault.Invalidf("there is no row %d: the file has %d", from, r.n))
	case from == to:
		return func(func(arrow.RecordBatch, error) bool) {}
	}
	return scan.Run(ctx, r.src, scan.Spec{Rows: vec.Range{From: from, To: to}, Alloc: mem}, nil)
}

// Row returns row n as a batch of one row, which the caller releases.
func (r *Rows) Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	if n == r.n {
		return nil, fault.Invalidf("there is no row %d: the file has %d", n, r.n)
	}
	for b, err := range r.between(ctx, n, n+1, mem) {
		if err != nil {
			return nil, err
		}
		b.Retain()
		return b, nil
	}
	return nil, fault.Bugf("row %d of %d was not given", n, r.n)
}

// FromKey returns the rows whose key is at least key, as From does. The key is the first column of the order that the
// file promises; if it promises none, the error is of class Invalid.
func (r *Rows) FromKey(ctx context.Context, key pred.Value, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	name := r.key()
	if name == "" {
		return failed(fault.Invalidf("%s: the file promises no order in which rows rise, so there are none from a "+
			"key on", r.kind))
	}
	return scan.Run(ctx, r.src, scan.Spec{Filter: pred.Test(name, pred.OpGe, key), Alloc: mem}, nil)
}

// key returns the name of the first column of the order that the file promises, or by which it states that it was
// sorted; "" if there is none.
func (r *Rows) key() string {
	if order := r.src.Reader.Order(); len(order) > 0 && !order[0].Descending {
		c := r.src.Reader.Columns()[order[0].Column]
		return pred.JoinPath(r.src.Reader.Schema().Field(c.Path[0]).Name)
	}
	if l, ok := r.src.Reader.(format.Layouter); ok && len(l.Layout().Sorted) > 0 {
		return pred.JoinPath(l.Layout().Sorted[0])
	}
	return ""
}

// Close closes the objects opened to read rows; the reader stays open.
func (r *Rows) Close() error { return r.src.Objects.Close() }

func failed(err error) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
}

// With returns tree with the object name replaced by src, which remains owned by the caller.
func With(tree store.Tree, name string, src store.Source) store.Tree { return with{tree, name, src} }

type with struct {
	store.Tree
	name string
	src  store.Source
}

func (t with) Open(ctx context.Context, name string) (store.Source, error) {
	if name == t.name {
		return kept{t.src}, nil
	}
	return t.Tree.Open(ctx, name)
}

// kept is a source that its readers do not close.
type kept struct{ store.Source }

func (kept) Close() error { return nil }
