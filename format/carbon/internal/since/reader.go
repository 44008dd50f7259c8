package since

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
)

// Column is the name of the column that says what happened to a row: Deleted or Added.
const (
	Column  = "stoa_change"
	Deleted = "deleted"
	Added   = "added"
)

// column describes it.
var column = &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeString, Name: Column,
	ID: "\x00change"}, Cardinality: -1}

// reader is a format.Reader of the changes. It is a format.Overlayer.
type reader struct {
	*table.Managed
	parts map[string]part
	loads []*load // that were ever visible
}

// Meta implements format.Reader: it has all loads that were ever visible, also those that clean removed.
func (r *reader) Meta() (out []format.KeyValue) {
	const key = "segment."
	for _, kv := range r.Managed.Meta() {
		if !strings.HasPrefix(kv.Key, key) {
			out = append(out, kv)
		}
	}
	for _, l := range r.loads {
		out = append(out, format.KeyValue{Key: key + l.Name, Value: l.Summary()})
	}
	return out
}

// Open returns a reader of what changed in m since the moment that its options name.
func Open(ctx context.Context, m *table.Managed, op format.OpenOptions) (format.Reader, error) {
	r, err := open(ctx, m, op, "since", m.O.Since, newPlan)
	if err != nil {
		return nil, err
	}
	r.AddColumn(column, arrow.BinaryTypes.String)
	for name, x := range r.parts {
		f, err := r.Part(ctx, name)
		if err != nil {
			return nil, err
		}
		f.Mark(Column, x.kind())
	}
	return r, nil
}

// OpenAt returns a reader of the rows that m had at the moment that its options name.
func OpenAt(ctx context.Context, m *table.Managed, op format.OpenOptions) (format.Reader, error) {
	return open(ctx, m, op, "at", m.O.At, planOf)
}

func open(ctx context.Context, m *table.Managed, op format.OpenOptions, option, text string,
	plan func(context.Context, *table.Managed, []*load, int64) (*plan, error)) (*reader, error) {
	for p, err := range m.Parts(ctx, format.Query{}) { // of a damaged table neither is known
		if err == nil {
			err = m.Missing(p.Ref)
		}
		if err != nil {
			return nil, err
		}
	}
	list, ends, err := loads(ctx, m)
	if err != nil {
		return nil, err
	}
	at, err := moment(option, text, list, ends, m.O.Zone)
	if err != nil {
		return nil, err
	}
	all, err := table.OpenManaged(ctx, m.Tree, m.Path, op, m.O.Everything(), nil)
	if err != nil {
		return nil, err
	}
	p, err := plan(ctx, all, list, at)
	if err != nil {
		return nil, err
	}
	all.Loads = p.used
	return &reader{all, p.parts, list}, nil
}

// kind returns Deleted if rows of the data file were deleted, or Added.
func (p part) kind() string {
	if p.before.none {
		return Added
	}
	return Deleted
}

// Parts implements format.Reader: the data files with deleted rows first.
func (r *reader) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, kind := range []string{Deleted, Added} {
			for p, err := range r.Managed.Parts(ctx, q) {
				if err != nil {
					yield(p, err)
					return
				}
				x, ok := r.parts[p.Ref]
				if ok && x.kind() == kind && !yield(p, nil) {
					return
				}
			}
		}
	}
}

// Overlay implements format.Overlayer: it leaves out the rows that did not change.
func (r *reader) Overlay(ctx context.Context, g format.RowGroup, _ []int) (format.Overlay, error) {
	x := r.parts[g.Part]
	f, err := r.File(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	starts, err := f.PageStarts(ctx, g.Index)
	if err != nil {
		return nil, err
	}
	var drop format.Drops
	for page := range len(starts) - 1 {
		key := table.PageKey{Blocklet: int64(g.Index), Page: int64(page)}
		n := starts[page+1] - starts[page]
		for _, i := range x.same(key, n) {
			if i < 0 || i >= n {
				at := fmt.Sprintf("blocklet %d, page %d", g.Index, page)
				return nil, fault.Corruptf(fault.Span{Object: g.Part}, at,
					"expected deleted rows below %d, found %d", n, i)
			}
			drop = append(drop, starts[page]+i)
		}
	}
	if len(drop) == 0 {
		return nil, nil
	}
	return drop, nil
}

// same returns the rows of a page of n rows that did not change, ascending.
func (p part) same(key table.PageKey, n int64) (rows []int64) {
	before, after := p.before.gone[key], p.after.gone[key]
	switch {
	case p.before.none:
		return after
	case p.after.none:
		return before
	}
	for i := range n {
		if _, now := slices.BinarySearch(after, i); !now {
			rows = append(rows, i)
		} else if _, then := slices.BinarySearch(before, i); then {
			rows = append(rows, i)
		}
	}
	return rows
}
