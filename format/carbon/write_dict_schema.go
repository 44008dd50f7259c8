package carbon

import (
	"slices"
	"strings"

	"stoa/fault"
)

// Columns with a dictionary of the table: those that the property dictionary_include names. In files of formats 1 and 2 without a table
// timestamps have a direct dictionary, as 1.0 gives them by itself.

// keyedTypes are the types whose values may be kept as codes of a global dictionary.
var keyedTypes = map[dataType]bool{typeString: true, typeShort: true, typeInt: true, typeLong: true, typeDouble: true, typeDecimal: true,
	typeDate: true, typeTimestamp: true, typeArray: true, typeStruct: true}

// keyed reports whether a column has a global dictionary.
func (s *columnSchema) keyed() bool {
	return s.encoders.has(encDictionary) && !s.encoders.has(encDirectDictionary)
}

// dictionaries gives a column the encoders that say how its values are coded. What is in a list or struct is coded if that is.
func (p *planner) dictionaries(c *columnSchema, parent *columnSchema) error {
	keyed := parent == nil && p.keyed[strings.ToLower(c.name)] || parent != nil && parent.encoders.has(encDictionary)
	if keyed && (!keyedTypes[c.typ] || c.typ == typeTimestamp && parent != nil) {
		return fault.Unsupportedf(fault.Span{}, c.name, "values of type %s cannot have a global dictionary", c.typ)
	}
	direct := c.typ == typeDate || c.typ == typeTimestamp
	switch {
	case keyed && direct, p.version < 3 && direct && parent == nil:
		c.encoders = encodings{encDictionary, encDirectDictionary}
	case keyed:
		c.encoders = encodings{encDictionary}
	}
	c.dimension = c.dimension || keyed
	if p.version < 3 && parent == nil && c.dimension && !c.typ.complex() && !slices.Contains(c.encoders, encInvertedIndex) {
		c.encoders = append(c.encoders, encInvertedIndex) // 1.0 gives it to all that are not named in no_inverted_index
	}
	return nil
}
