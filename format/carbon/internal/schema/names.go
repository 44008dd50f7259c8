package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stoa/fault"
)

// CheckNames returns Corrupt, without a place, for columns that no writer produces: a name that is not UTF-8, two
// columns with the same name, or a schemaOrdinal that only some columns have or that two share.
func CheckNames(roots []*Column) error {
	bad := func(format string, args ...any) error { return fault.Corruptf(fault.Span{}, "", format, args...) }
	names, places := map[string]bool{}, map[int32]*Column{}
	for _, r := range roots {
		var odd *Column
		r.Walk(func(c *Column) {
			if odd == nil && !utf8.ValidString(c.Name) {
				odd = c
			}
		})
		if odd != nil {
			return bad("the name %q of a column is not UTF-8", odd.Name)
		}
		if r.Invisible { // a dropped column: another may have its name
			continue
		}
		if names[r.Name] {
			return bad("two columns are called %q", r.Name)
		}
		names[r.Name] = true
		if (r.Ordinal < 0) != (roots[0].Ordinal < 0) {
			return bad("expected a schemaOrdinal for all columns or none: one of %s and %s has none", roots[0].Name,
				r.Name)
		}
		if x := places[r.Ordinal]; x != nil && r.Ordinal >= 0 {
			return bad("columns %s and %s have the same schemaOrdinal, %d", x.Name, r.Name, r.Ordinal)
		}
		places[r.Ordinal] = r
	}
	return nil
}

// RepairNames renames columns so that the rest of a damaged schema can be read: names that are not UTF-8 are quoted.
// Names that several columns have are numbered, all of them: which of the columns has its own name is not known, and
// none may be taken for the other.
func RepairNames(roots []*Column) {
	times := map[string]int{}
	for _, r := range roots {
		r.Walk(func(c *Column) {
			if !utf8.ValidString(c.Name) {
				c.Name = strings.Trim(fmt.Sprintf("%+q", c.Name), `"`)
			}
		})
		if !r.Invisible {
			times[r.Name]++
		}
	}
	for _, r := range roots {
		if r.Invisible || times[r.Name] < 2 {
			continue
		}
		name := r.Name
		for n := 1; times[r.Name] > 0; n++ {
			r.Name = fmt.Sprintf("%s_%d", name, n)
		}
		times[r.Name]++
	}
}
