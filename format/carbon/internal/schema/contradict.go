package schema

import (
	"fmt"

	"stoa/format/carbon/internal/layout"
)

// Contradicts says how the columns of a data file contradict those that a table has or had, in any version of its
// schema; "" if they do not. Readers find columns by their ids, and take the type, the number of children and the
// dictionary from the table: a file that was written with others would be read as other values.
func Contradicts(file []layout.ColumnSchema, versions ...[]layout.ColumnSchema) string {
	for i := range file {
		c := &file[i]
		why := fmt.Sprintf("column %s has the id %s, which no column of the table has or had: CarbonData finds "+
			"columns by their ids, and would read it as null", c.Name, c.ID)
		for _, list := range versions {
			for k := range list {
				if list[k].ID != c.ID {
					continue
				}
				if why = differs(c, &list[k]); why == "" {
					break
				}
			}
			if why == "" {
				break
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// differs says how a file's column differs from the table's column of the same id; "" if its values mean the same.
func differs(c, want *layout.ColumnSchema) string {
	kind := func(c *layout.ColumnSchema) string {
		t := c.Type
		if t == layout.TypeVarchar { // a table property makes a string a varchar
			t = layout.TypeString
		}
		switch {
		case t == layout.TypeDecimal:
			return fmt.Sprintf("%s(%d,%d)", t, c.Precision, c.Scale)
		case t.Complex():
			return fmt.Sprintf("%s of %d", t, c.NumChild)
		}
		return t.String()
	}
	coding := func(c *layout.ColumnSchema) string {
		switch {
		case c.HasGlobalDictionary():
			return "codes of a dictionary"
		case c.Encoders.Has(layout.EncDirectDictionary):
			return "a direct dictionary"
		}
		return "values"
	}
	role := func(c *layout.ColumnSchema) string {
		switch {
		case c.SortColumn():
			return "a sort column"
		case c.Dimension:
			return "a dimension"
		}
		return "a measure"
	}
	for _, said := range []func(c *layout.ColumnSchema) string{kind, coding, role} {
		if found, expected := said(c), said(want); found != expected {
			return fmt.Sprintf("column %s: expected %s as in the table, found %s", c.Name, expected, found)
		}
	}
	return ""
}
