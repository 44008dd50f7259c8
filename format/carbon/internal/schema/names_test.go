package schema

import (
	"testing"

	"stoa/format/carbon/internal/layout"
)

// TestNames: columns as writers produce them are accepted, others are refused; RepairNames makes their names
// distinct, and leaves no column a name that two had.
func TestNames(t *testing.T) {
	roots := func(list ...layout.ColumnSchema) (out []*Column) {
		for i := range list {
			out = append(out, &Column{ColumnSchema: &list[i]})
		}
		return out
	}
	col := func(name string, at int32) layout.ColumnSchema { return layout.ColumnSchema{Name: name, Ordinal: at} }
	dropped := col("a", 0)
	dropped.Invisible = true
	for _, good := range [][]layout.ColumnSchema{nil, {col("a", -1), col("b", -1)}, {col("a", 1), col("b", 0)},
		{col("a", 0), dropped}, {col("Ångström", 0)}} {
		if err := CheckNames(roots(good...)); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]layout.ColumnSchema{{col("a", 0), col("b", -1)}, {col("a", -1), col("b", 0)},
		{col("a", 3), col("b", 3)}, {col("a\xe4", 0)}, {col("a", 0), col("a", 1)}} {
		list := roots(bad...)
		if err := CheckNames(list); err == nil {
			t.Errorf("%v: expected an error, found none", bad)
		}
		before := map[string]int{}
		for _, c := range list {
			before[c.Name]++
		}
		RepairNames(list)
		for _, c := range list {
			if before[c.Name] > 1 {
				t.Errorf("%v: a column is still called %q", bad, c.Name)
			}
		}
		for i := range list {
			list[i].Ordinal = int32(i)
		}
		if err := CheckNames(list); err != nil {
			t.Errorf("%v after Rename: %v", bad, err)
		}
	}
}
