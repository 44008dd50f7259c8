package laws_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// surplus is the number of rows that a row group declares in excess.
const surplus = 1 << 57

// overstated is a reader whose row groups declare far more rows than they have: after the existing pages comes an
// error.
type overstated struct{ format.Reader }

func (r overstated) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	groups, err := r.Reader.RowGroups(ctx, p, q)
	for i := range groups {
		groups[i].Rows = max(0, groups[i].Rows) + surplus
	}
	return groups, err
}

func (r overstated) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	g.Rows -= surplus
	c, err := r.Reader.Chunk(ctx, g, col, rows)
	return overstatedChunk{c}, err
}

func (r overstated) Stored() *arrow.Schema {
	if p, ok := r.Reader.(format.Presenter); ok {
		return p.Stored()
	}
	return r.Schema()
}

func (r overstated) Present(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	if p, ok := r.Reader.(format.Presenter); ok {
		return p.Present(a, to, mem)
	}
	a.Retain()
	return a, nil
}

type overstatedChunk struct{ format.Chunk }

var errBeyond = fault.Corruptf(fault.Span{}, "", "nothing is there")

func (c overstatedChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.Chunk.Next(ctx)
	if err == io.EOF {
		err = errBeyond
	}
	return p, err
}

// overstatedBatches is boastful for a format without pages.
type overstatedBatches struct{ overstated }

func (r overstatedBatches) Batches(ctx context.Context, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range r.Reader.(format.Batcher).Batches(ctx, g, q, rows, mem) {
			if err != nil {
				break
			}
			if !yield(b, nil) {
				return
			}
		}
		yield(nil, errBeyond)
	}
}

// overstating is a format with boastful readers.
func overstating(f format.Format) format.Format {
	right := f.Open
	f.Open = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
		r, err := right(ctx, t, o)
		if _, ok := r.(format.Batcher); ok {
			return overstatedBatches{overstated{r}}, err
		}
		return overstated{r}, err
	}
	return f
}

// TestOverstatedRowGroups: however many rows a row group declares, a scan returns those that exist, reports the rest as
// lost, and takes no time for rows that no column has: in every format and with either policy.
func TestOverstatedRowGroups(t *testing.T) {
	var formats []format.Format
	for _, f := range everyFormat {
		formats = append(formats, overstating(f))
	}
	for _, p := range heldPlaces(t) {
		for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
			for _, parallel := range []int{1, 2} {
				o := p.held(t, p.files).opts
				o.Formats = formats
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				rows, lost, exact, err := scanOverstated(ctx, p.uri(), o, policy, parallel)
				cancel()
				whole := rows == 60 || rows == 59 && strings.HasSuffix(p.name, "nested") // the last list may be cut
				if err != nil || !whole || lost == 0 || exact {
					t.Errorf("%s, %v, %d workers: got %d rows of 60, %d losses (all exact: %v), %v", p.name, policy,
						parallel, rows, lost, exact, err)
				}
			}
		}
	}
}

func scanOverstated(ctx context.Context, uri string, o stoa.OpenOptions, policy stoa.Damaged, parallel int) (rows int64,
	lost int, exact bool, err error) {
	tab, err := stoa.Open(ctx, uri, o)
	if err != nil {
		return 0, 0, false, err
	}
	defer tab.Close()
	var losses []region.Loss
	spec := stoa.ScanSpec{Damaged: policy, Parallel: parallel, Lost: func(l region.Loss) { losses = append(losses, l) }}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			return rows, len(losses), false, err
		}
		if rows += b.NumRows(); rows > 1<<20 {
			break
		}
	}
	_, exact = region.LostRows(losses)
	return rows, len(losses), exact, nil
}
