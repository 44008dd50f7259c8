package schema

import (
	"strings"
	"testing"

	"stoa/format/carbon/internal/layout"
)

// TestContradicts: every property of a column that readers take from the table must be the same in a file, in some
// version of the schema; the name may differ.
func TestContradicts(t *testing.T) {
	base := layout.ColumnSchema{ID: "1", Name: "a", Type: layout.TypeDecimal, Precision: 9, Scale: 2, Dimension: true,
		Encoders: layout.Encodings{layout.EncDictionary, layout.EncDirectDictionary}}
	for what, change := range map[string]func(c *layout.ColumnSchema){
		"id":        func(c *layout.ColumnSchema) { c.ID = "2" },
		"long":      func(c *layout.ColumnSchema) { c.Type = layout.TypeLong },
		"precision": func(c *layout.ColumnSchema) { c.Precision = 10 },
		"scale":     func(c *layout.ColumnSchema) { c.Scale = 1 },
		"measure":   func(c *layout.ColumnSchema) { c.Dimension = false },
		"sorted":    func(c *layout.ColumnSchema) { c.Props = map[string]string{"sort_columns": "true"} },
		"plain":     func(c *layout.ColumnSchema) { c.Encoders = nil },
		"codes":     func(c *layout.ColumnSchema) { c.Encoders = c.Encoders[:1] },
		"struct":    func(c *layout.ColumnSchema) { c.Type, c.NumChild = layout.TypeStruct, 1 },
	} {
		other := base
		change(&other)
		file, now := []layout.ColumnSchema{other}, []layout.ColumnSchema{base}
		if why := Contradicts(file, now); !strings.Contains(why, "column a") {
			t.Errorf("%s: got %q, want what differs", what, why)
		}
		if why := Contradicts(now, file); why == "" {
			t.Errorf("%s, the other way: accepted", what)
		}
		if why := Contradicts(file, now, file); why != "" {
			t.Errorf("%s, as in the history: %s", what, why)
		}
	}
	renamed := base
	renamed.Name = "b"
	if why := Contradicts([]layout.ColumnSchema{renamed}, []layout.ColumnSchema{base}); why != "" {
		t.Errorf("renamed: %s", why)
	}
}
