package schemafmt

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"

	"github.com/apache/arrow-go/v18/arrow"
)

// The JSON form of a schema. It is complete: the schema can be reconstructed from it.
//
//	{"fields": [{"name": "id", "type": "int64", "nullable": false, "metadata": {…}}, …], "metadata": {…}}
//
// type is a word with its parameters (display.TypeWord): int64, utf8, decimal128(9, 2), timestamp[us, tz=UTC],
// fixed_size_list[3], union types with their codes: sparse_union[0,5]. What is in a nested type follows as
// children, in this order: list: its element; map: key, value; struct and union: the fields; run_end_encoded:
// run ends, values; dictionary: index, value; extension: storage, and the extension's parameters as
// "extension".
type SchemaJSON struct {
	Fields   []fieldJSON `json:"fields"`
	Metadata Pairs       `json:"metadata,omitempty"`
}

type fieldJSON struct {
	Name      string      `json:"name"`
	Type      string      `json:"type"`
	Nullable  bool        `json:"nullable"`
	Extension string      `json:"extension,omitempty"`
	Children  []fieldJSON `json:"children,omitempty"`
	Metadata  Pairs       `json:"metadata,omitempty"`
}

func SchemaDoc(sc *arrow.Schema) SchemaJSON {
	d := SchemaJSON{Fields: []fieldJSON{}, Metadata: pairsOf(sc.Metadata())}
	for _, f := range sc.Fields() {
		d.Fields = append(d.Fields, fieldDoc(f))
	}
	return d
}

func fieldDoc(f arrow.Field) fieldJSON {
	d := fieldJSON{Name: f.Name, Type: display.TypeWord(f.Type), Nullable: f.Nullable, Metadata: pairsOf(f.Metadata)}
	if e, ok := f.Type.(arrow.ExtensionType); ok {
		d.Extension = e.Serialize()
	}
	for _, c := range display.ChildFields(f.Type) {
		d.Children = append(d.Children, fieldDoc(c))
	}
	return d
}

// Pairs is a JSON object whose members keep their order.
type Pairs [][2]string

func pairsOf(m arrow.Metadata) Pairs {
	var p Pairs
	for i, k := range m.Keys() {
		p = append(p, [2]string{k, m.Values()[i]})
	}
	return p
}

// MarshalJSON writes a value that is not text as {"base64": …}, so that it is not changed.
func (p Pairs) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, kv := range p {
		if i > 0 {
			b = append(b, ',')
		}
		k, err := textJSON(kv[0])
		if err != nil {
			return nil, err
		}
		var v []byte
		if utf8.ValidString(kv[1]) {
			v, err = textJSON(kv[1])
		} else {
			v, err = json.Marshal(map[string][]byte{"base64": []byte(kv[1])})
		}
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), nil
}

// textJSON encodes a text as JSON, without escapes for HTML.
func textJSON(s string) ([]byte, error) {
	b, err := output.JsonLine(s)
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// Text returns all facts on one line.
func (p Pairs) Text() string {
	var parts []string
	for _, kv := range p {
		parts = append(parts, kv[0]+" "+kv[1])
	}
	return strings.Join(parts, ", ")
}
