package text

import (
	"encoding/json"
	"strconv"
	"strings"

	"stoa/fault"
)

// fieldJSON is a field as `stoa schema -f json` prints it: a type's word and parameters, and what is in it.
type fieldJSON struct {
	Name, Type string
	Nullable   bool
	Children   []fieldJSON
}

// schemaText is a schema in JSON in the words of ParseSchema.
func schemaText(doc string) (string, error) {
	var top struct{ Fields []fieldJSON }
	if err := json.Unmarshal([]byte(doc), &top); err != nil {
		return "", fault.Invalidf("schema: not as `stoa schema -f json` prints it: %v", err)
	}
	if len(top.Fields) == 0 {
		return "", fault.Invalidf("schema: the JSON has no fields; `stoa schema -f json` prints one")
	}
	return fieldsText(top.Fields), nil
}

func fieldsText(fields []fieldJSON) string {
	var out []string
	for _, f := range fields {
		s := strconv.Quote(f.Name) + ": " + f.text()
		if !f.Nullable {
			s += " not null"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// text is the type. A type that texts do not hold stays as it is, for the parser to refuse.
func (f *fieldJSON) text() string {
	if len(f.Children) == 0 {
		return f.Type
	}
	word, parameters, _ := strings.Cut(f.Type, "[")
	switch word {
	case "struct":
		return word + "<" + fieldsText(f.Children) + ">"
	case "fixed_size_list":
		return word + "<" + f.Children[0].text() + ">[" + parameters
	}
	var kids []string
	for _, c := range f.Children {
		kids = append(kids, c.text())
	}
	return word + "<" + strings.Join(kids, ", ") + ">"
}
