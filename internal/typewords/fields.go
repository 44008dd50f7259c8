package typewords

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// Of returns the Arrow schema of fields. It accepts the types that Parse understands, and dictionaries; unions and
// others are refused.
func Of(fields []format.SchemaField) (*arrow.Schema, error) {
	out, err := fieldsOf(fields, 0)
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(out, nil), nil
}

func fieldsOf(fields []format.SchemaField, depth int) ([]arrow.Field, error) {
	seen := map[string]bool{}
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		if seen[f.Name] {
			return nil, fault.Invalidf("schema: field %q occurs twice", f.Name)
		}
		seen[f.Name] = true
		t, err := typeOf(&f, depth)
		if err != nil {
			return nil, err
		}
		out[i] = arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable}
		if len(f.Metadata) > 0 {
			out[i].Metadata = arrow.MetadataFrom(f.Metadata)
		}
	}
	return out, nil
}

// typeOf returns the type of a field: nested types are named by a word, all others in the words of Parse.
func typeOf(f *format.SchemaField, depth int) (arrow.DataType, error) {
	wrong := func() (arrow.DataType, error) {
		return nil, fault.Invalidf("schema: field %q: %q with %d children is not a type that can be taken from a text",
			f.Name, f.Type, len(f.Children))
	}
	if depth > maxTypeDepth {
		return nil, fault.Invalidf("schema: types are nested deeper than %d", maxTypeDepth)
	}
	word, parameters, _ := strings.Cut(f.Type, "[")
	n, _ := strconv.ParseInt(strings.TrimSuffix(parameters, "]"), 10, 32)
	inside := map[string]int{"list": 1, "large_list": 1, "fixed_size_list": 1, "map": 2, "dictionary": 2}
	if word != "struct" && len(f.Children) != inside[word] || word == "fixed_size_list" && (n < 1 || n > maxFixed) {
		return wrong()
	}
	if word != "struct" && inside[word] == 0 {
		p := &typeParser{s: f.Type}
		t, err := p.typ()
		if _, nested := t.(arrow.NestedType); err != nil || nested || p.at < len(p.s) {
			return wrong()
		}
		return t, nil
	}
	children, err := fieldsOf(f.Children, depth+1)
	if err != nil {
		return nil, err
	}
	switch word {
	case "struct":
		return arrow.StructOf(children...), nil
	case "list":
		return arrow.ListOfField(children[0]), nil
	case "large_list":
		return arrow.LargeListOfField(children[0]), nil
	case "fixed_size_list":
		return arrow.FixedSizeListOfField(int32(n), children[0]), nil
	}
	if word == "dictionary" {
		_, nested := children[1].Type.(arrow.NestedType)
		if nested || children[1].Type.ID() == arrow.DICTIONARY || !arrow.IsInteger(children[0].Type.ID()) {
			return wrong()
		}
		return &arrow.DictionaryType{IndexType: children[0].Type, ValueType: children[1].Type}, nil
	}
	m := arrow.MapOf(children[0].Type, children[1].Type)
	m.SetItemNullable(children[1].Nullable)
	return m, nil
}
