package text

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// SchemaOf is the Arrow schema of fields, whose types must be such as texts can hold.
func SchemaOf(fields []format.SchemaField) (*arrow.Schema, error) {
	sc, err := parseWords(fieldsText(fields))
	if err != nil {
		for i, f := range fields {
			if _, err := parseWords(fieldsText(fields[i : i+1])); err != nil {
				return nil, fault.Invalidf("schema: column %q: %s is no type that can be taken from a schema's text", f.Name, typeText(&f))
			}
		}
		return nil, err
	}
	out := sc.Fields()
	for i, f := range fields {
		if len(f.Metadata) > 0 {
			out[i].Metadata = arrow.MetadataFrom(f.Metadata)
		}
	}
	return arrow.NewSchema(out, nil), nil
}

// fieldsText is fields in the words of ParseSchema.
func fieldsText(fields []format.SchemaField) string {
	var out []string
	for _, f := range fields {
		s := strconv.Quote(f.Name) + ": " + typeText(&f)
		if !f.Nullable {
			s += " not null"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// typeText is the type. A type that texts do not hold stays as it is, for the parser to refuse.
func typeText(f *format.SchemaField) string {
	if len(f.Children) == 0 {
		return f.Type
	}
	word, parameters, _ := strings.Cut(f.Type, "[")
	switch word {
	case "struct":
		return word + "<" + fieldsText(f.Children) + ">"
	case "fixed_size_list":
		return word + "<" + typeText(&f.Children[0]) + ">[" + parameters
	}
	var kids []string
	for _, c := range f.Children {
		kids = append(kids, typeText(&c))
	}
	return word + "<" + strings.Join(kids, ", ") + ">"
}
