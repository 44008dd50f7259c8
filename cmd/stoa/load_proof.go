package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/internal/content"
)

// provenLoad sums up the rows of a load while they pass, and has the load ask, before its segment counts, whether that holds the same. Columns whose values
// the load changes or reads from text are not compared, but by their number of rows.
func (a *app) provenLoad(ctx context.Context, dir string, sc *arrow.Schema, rows batches, o *carbon.LoadOptions) (batches, error) {
	t, err := a.openCarbon(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	out, parts := t.Schema(), t.Sources()[0].Layout.Partitions
	if err := t.Close(); err != nil {
		return nil, err
	}
	if len(parts) > 0 { // where their files are, is known only when the segment counts
		a.detail("%s: the segment of a partitioned table is not read back", dir)
		return rows, nil
	}
	plan := content.Between(sc, out)
	plan.LeaveWords()
	if carbon.Format.Alters != nil {
		for _, name := range carbon.Format.Alters(sc, format.WriteOptions{Opts: o.Opts}) {
			plan.Leave(name)
		}
	}
	in := plan.Summer(0)
	o.Check = func(ctx context.Context, segment string) error {
		t, err := a.openCarbon(ctx, dir, map[string]string{"segment": segment})
		if err != nil {
			return fmt.Errorf("segment %s was written and cannot be read back: %v", segment, err)
		}
		defer t.Close()
		s := plan.Summer(1)
		for b, err := range t.Scan(ctx, stoa.ScanSpec{Alloc: pool, Unordered: true}) {
			if err != nil {
				return fmt.Errorf("segment %s was written and cannot be read back: %v", segment, err)
			}
			s.Add(b)
		}
		if why := in.Sum().Difference(s.Sum()); why != "" {
			return &stoa.UnprovenError{Output: "segment " + segment, Rows: [2]int64{in.Sum().Rows, s.Sum().Rows}, Columns: in.Sum().Differing(s.Sum()), Reason: why}
		}
		return nil
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range rows {
			if err == nil {
				in.Add(b)
			}
			if !yield(b, err) {
				return
			}
		}
	}, nil
}
