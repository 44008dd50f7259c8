package schema

import (
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// Columns with a dictionary of the table: those that the property dictionary_include names. In files of formats
// 1 and 2 without a table timestamps have a direct dictionary, as 1.0 gives them by itself.

// keyedTypes are the types whose values may be kept as codes of a global dictionary.
var keyedTypes = map[layout.DataType]bool{layout.TypeString: true, layout.TypeShort: true, layout.TypeInt: true,
	layout.TypeLong: true, layout.TypeDouble: true, layout.TypeDecimal: true,
	layout.TypeDate: true, layout.TypeTimestamp: true, layout.TypeArray: true, layout.TypeStruct: true}

// dictionaries gives a column the encoders that say how its values are coded. What is in a list or struct is
// coded if that is.
func (p *Planner) dictionaries(c *layout.ColumnSchema, parent *layout.ColumnSchema) error {
	keyed := parent == nil && p.keyed[strings.ToLower(c.Name)] || parent != nil &&
		parent.Encoders.Has(layout.EncDictionary)
	if keyed && (!keyedTypes[c.Typ] || c.Typ == layout.TypeTimestamp && parent != nil) {
		return fault.Unsupportedf(fault.Span{}, c.Name, "values of type %s cannot have a global dictionary", c.Typ)
	}
	direct := c.Typ == layout.TypeDate || c.Typ == layout.TypeTimestamp
	switch {
	case keyed && direct, p.version < 3 && direct && parent == nil:
		c.Encoders = layout.Encodings{layout.EncDictionary, layout.EncDirectDictionary}
	case keyed:
		c.Encoders = layout.Encodings{layout.EncDictionary}
	}
	c.Dimension = c.Dimension || keyed
	if p.version < 3 && parent == nil && c.Dimension && !c.Typ.Complex() &&
		!slices.Contains(c.Encoders, layout.EncInvertedIndex) {
		// 1.0 gives it to all that are not named in no_inverted_index
		c.Encoders = append(c.Encoders, layout.EncInvertedIndex)
	}
	return nil
}
