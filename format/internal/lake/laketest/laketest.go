// Package laketest is shared by the tests of the lake formats.
package laketest

import (
	"context"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/internal/content"
)

// Same fails the test unless two tables have the same rows, in any order; values are compared by meaning.
func Same(t *testing.T, got, want *stoa.Table) {
	t.Helper()
	plan := content.Between(want.Schema(), got.Schema())
	if c := plan.Incomparable(); len(c) > 0 {
		t.Errorf("columns %v cannot be compared", c)
	}
	sums := [2]content.Sum{}
	for side, table := range []*stoa.Table{want, got} {
		s := plan.Summer(side)
		for b, err := range table.Scan(context.Background(), stoa.ScanSpec{Parallel: side + 1}) {
			if err != nil {
				t.Fatal(err)
			}
			s.Add(b)
		}
		sums[side] = s.Sum()
	}
	if why := sums[0].Difference(sums[1]); why != "" {
		t.Error(why)
	}
}

// Open opens a table of format f, or of one of stoa's.
func Open(t *testing.T, f format.Format, name string, opts map[string]string) *stoa.Table {
	t.Helper()
	table, err := stoa.Open(context.Background(), name, stoa.OpenOptions{Opts: opts,
		Formats: append([]format.Format{f}, stoa.Formats...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}
