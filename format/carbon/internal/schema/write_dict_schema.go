package schema

import (
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// Columns with a global dictionary are those that the table's property dictionary_include names. In files of formats 1
// and 2 outside of a table, timestamps have a direct dictionary, which is the default of release 1.0.

// keyedTypes are the types of columns that may have a global dictionary.
var keyedTypes = map[layout.DataType]bool{layout.TypeString: true, layout.TypeShort: true, layout.TypeInt: true,
	layout.TypeLong: true, layout.TypeDouble: true, layout.TypeDecimal: true,
	layout.TypeDate: true, layout.TypeTimestamp: true, layout.TypeArray: true, layout.TypeStruct: true}

// dictionaries sets the encoders of a column that has a global or a direct dictionary. A child has one if its parent
// has one.
func (p *Planner) dictionaries(c *layout.ColumnSchema, parent *layout.ColumnSchema) error {
	keyed := parent == nil && p.keyed[strings.ToLower(c.Name)] || parent != nil &&
		parent.Encoders.Has(layout.EncDictionary)
	if keyed && (!keyedTypes[c.Type] || c.Type == layout.TypeTimestamp && parent != nil) {
		return fault.Unsupportedf(fault.Span{}, c.Name, "values of type %s cannot have a global dictionary", c.Type)
	}
	direct := c.Type == layout.TypeDate || c.Type == layout.TypeTimestamp
	switch {
	case keyed && direct, p.version < 3 && direct && parent == nil:
		c.Encoders = layout.Encodings{layout.EncDictionary, layout.EncDirectDictionary}
	case keyed:
		c.Encoders = layout.Encodings{layout.EncDictionary}
	}
	c.Dimension = c.Dimension || keyed
	if p.version < 3 && parent == nil && c.Dimension && !c.Type.Complex() &&
		!slices.Contains(c.Encoders, layout.EncInvertedIndex) {
		// release 1.0 gives an inverted index to all columns that no_inverted_index does not name
		c.Encoders = append(c.Encoders, layout.EncInvertedIndex)
	}
	return nil
}
