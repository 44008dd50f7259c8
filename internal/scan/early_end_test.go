package scan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// uneven is a reader of two row groups: in the first a column ends early, or is missing; the second is intact.
type uneven struct {
	*toy
	groups   [2]*toy
	declared int64 // rows of the first row group; -1: unknown
	missing  int   // its missing column; -1: none
}

func (u *uneven) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	second := int64(u.groups[1].rows)
	if u.declared < 0 {
		second = -1
	}
	return []format.RowGroup{{Part: "toy", Rows: u.declared}, {Part: "toy", Index: 1, Rows: second}}, nil
}

func (u *uneven) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if g.Index == 0 && col == u.missing {
		return nil, fault.Corruptf(fault.Span{Object: "toy"}, "", "column %d was not found", col)
	}
	return u.groups[g.Index].Chunk(ctx, g, col, rows)
}

// columnsOf returns columns a and b of ints, whose values begin at base.
func columnsOf(prefix string, base int64, hide bool, rows ...int) *toy {
	f := &toy{rows: max(rows[0], rows[1]), hide: hide}
	for i, n := range rows {
		c := toyColumn{prefix: prefix, name: string(rune('a' + i)), typ: arrow.PrimitiveTypes.Int64, cuts: []int{0, 50}}
		if n <= 50 {
			c.cuts = c.cuts[:min(n, 1)]
		}
		for r := range n {
			c.vals = append(c.vals, base+int64(r))
		}
		f.columns = append(f.columns, c)
	}
	return f
}

// TestColumnsThatEndEarly: under a damage policy a column that ends before the others, or before the rows that the
// row group declares, costs the rows that it lacks, which are reported; the others and the row groups after it are
// read.
func TestColumnsThatEndEarly(t *testing.T) {
	for _, rows := range [][2]int{{100, 90}, {90, 100}, {100, 0}, {0, 100}, {100, 50}, {50, 100}, {100, 100}} {
		for _, declared := range []int64{-1, 100, 150} {
			for missing := -1; missing < 2; missing++ {
				u := &uneven{declared: declared, missing: missing}
				u.groups[0] = columnsOf("x", 0, declared < 0, rows[0], rows[1])
				u.groups[1] = columnsOf("y", 1000, declared < 0, 60, 60)
				u.toy = u.groups[1]
				for _, filter := range []string{"", "a >= 0"} {
					for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
						u.check(t, rows, filter, policy)
					}
				}
			}
		}
	}
}

func (u *uneven) check(t *testing.T, rows [2]int, filter string, policy scan.Damaged) {
	t.Helper()
	m := store.NewMemory(nil)
	for _, g := range u.groups {
		for i := range g.columns {
			m.Put(g.columns[i].object(), g.columns[i].bytes())
		}
	}
	reported := false
	spec := scan.Spec{Damaged: policy, Batch: 40, Lost: func(l region.Loss) {
		reported = true
		if l.Group != 0 || l.Err == nil || l.Rows[1] >= 0 && l.Rows[1] <= l.Rows[0] {
			t.Errorf("got loss %+v, want one in row group 0", l)
		}
	}}
	if filter != "" {
		spec.Filter = parse(t, filter)
	}
	var got []string
	for b, err := range scan.Run(context.Background(), withReader(u.toy.source(store.NewCounter(m)), u), spec, nil) {
		if err != nil {
			t.Fatalf("rows %v of %d, missing %d, filter %q, policy %v: %v", rows, u.declared, u.missing, filter,
				policy, err)
		}
		got = append(got, lines(b)...)
	}
	want := u.want(rows, filter != "", policy == scan.NullCells)
	damaged := rows[0] != rows[1] || u.declared > int64(max(rows[0], rows[1])) || u.missing >= 0
	if strings.Join(got, "\n") != strings.Join(want, "\n") || reported != damaged {
		t.Errorf("rows %v of %d, missing %d, filter %q, policy %v, reported %v\ngot  %q\nwant %q", rows, u.declared,
			u.missing, filter, policy, reported, got, want)
	}
}

// want returns the rows of both row groups: of the first those that all columns have, or, if nulls is true, those that
// any column has.
func (u *uneven) want(rows [2]int, filtered, nulls bool) (out []string) {
	has := func(col, row int) bool { return col != u.missing && row < rows[col] }
	for r := range 150 {
		a, b := has(0, r), has(1, r)
		if !a && !b || !nulls && !(a && b) || filtered && !a {
			continue
		}
		cell := func(has bool) string {
			if has {
				return fmt.Sprint(r)
			}
			return "null"
		}
		out = append(out, cell(a)+"|"+cell(b))
	}
	for r := range 60 {
		out = append(out, fmt.Sprintf("%d|%d", 1000+r, 1000+r))
	}
	return out
}
