package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stoa/fault"
)

// Strange is an error if columns say what no writer does: a name that is no text, or is that of two, or places among
// the columns as the user gave them that only some have, or two have the same.
func Strange(roots []*Column) error {
	bad := func(format string, args ...any) error { return fault.Corruptf(fault.Span{}, "", format, args...) }
	names, places := map[string]bool{}, map[int32]*Column{}
	for _, r := range roots {
		var odd *Column
		r.All(func(c *Column) {
			if odd == nil && !utf8.ValidString(c.Name) {
				odd = c
			}
		})
		if odd != nil {
			return bad("the name %q of a column is not UTF-8", odd.Name)
		}
		if r.Invisible { // was dropped: another may have its name
			continue
		}
		if names[r.Name] {
			return bad("two columns are called %q", r.Name)
		}
		names[r.Name] = true
		if (r.Ordinal < 0) != (roots[0].Ordinal < 0) {
			return bad("schemaOrdinal: some columns have one, %s and %s do not both", roots[0].Name, r.Name)
		}
		if x := places[r.Ordinal]; x != nil && r.Ordinal >= 0 {
			return bad("schemaOrdinal: that of %s and %s is %d", x.Name, r.Name, r.Ordinal)
		}
		places[r.Ordinal] = r
	}
	return nil
}

// Rename returns columns whose names are no text, or those of others, names that are.
func Rename(roots []*Column) {
	names := map[string]bool{}
	for _, r := range roots {
		r.All(func(c *Column) {
			if !utf8.ValidString(c.Name) {
				c.Name = strings.Trim(fmt.Sprintf("%+q", c.Name), `"`)
			}
		})
		for n := 2; names[r.Name] && !r.Invisible; n++ {
			if next := fmt.Sprintf("%s_%d", r.Name, n); !names[next] {
				r.Name = next
			}
		}
		names[r.Name] = names[r.Name] || !r.Invisible
	}
}
