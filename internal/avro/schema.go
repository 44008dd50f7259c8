// Package avro reads and writes object container files of Apache Avro, as lakes use them. Values are represented by
// Go's own types, and a file is read with the schema with which it was written.
//
//	null              nil                  boolean           bool
//	int, long         int64                float, double     float64
//	bytes, fixed      []byte               string, enum      string
//	array             []any                map               map[string]any
//	record            map[string]any       union             the value of its branch
//
// Source: the Apache Avro specification 1.12. Of its codecs, null, deflate and zstandard are supported.
package avro

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxDepth is the maximum nesting depth of schemas.
const maxDepth = 64

// Schema is a parsed schema.
type Schema struct {
	Type    string // a primitive, or record, enum, array, map, fixed, union
	Name    string
	Logical string
	Fields  []Field   // of a record
	Items   *Schema   // of an array; the values of a map
	Union   []*Schema // the branches
	Size    int       // of a fixed
	Symbols []string  // of an enum
	ID      int       // element-id or value-id, which Iceberg adds to arrays and maps; 0 if there is none
}

// Field is a field of a record.
type Field struct {
	Name string
	Type *Schema
	ID   int // field-id, which Iceberg adds; 0 if there is none
}

// ParseSchema parses a schema in JSON.
func ParseSchema(text []byte) (*Schema, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	p := parser{named: map[string]*Schema{}}
	return p.schema(v, 0)
}

type parser struct{ named map[string]*Schema }

var primitives = map[string]bool{"null": true, "boolean": true, "int": true, "long": true, "float": true,
	"double": true, "bytes": true, "string": true}

func (p *parser) schema(v any, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema is nested more than %d deep", maxDepth)
	}
	switch x := v.(type) {
	case string:
		if primitives[x] {
			return &Schema{Type: x}, nil
		}
		if s := p.named[x]; s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("the schema has no type %q", x)
	case []any:
		s := &Schema{Type: "union"}
		for _, b := range x {
			branch, err := p.schema(b, depth+1)
			if err != nil {
				return nil, err
			}
			s.Union = append(s.Union, branch)
		}
		return s, nil
	case map[string]any:
		return p.object(x, depth)
	}
	return nil, fmt.Errorf("the schema has %T where a type is expected", v)
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func number(m map[string]any, key string) int {
	f, _ := m[key].(float64)
	return int(f)
}

// object parses a type with attributes.
func (p *parser) object(m map[string]any, depth int) (*Schema, error) {
	kind, ok := m["type"].(string)
	if !ok {
		return p.schema(m["type"], depth+1)
	}
	s := &Schema{Type: kind, Name: text(m, "name"), Logical: text(m, "logicalType")}
	if s.Name != "" {
		p.name(s, text(m, "namespace"))
	}
	var err error
	switch kind {
	case "record", "error":
		s.Type = "record"
		err = p.fields(s, m, depth)
	case "array":
		s.ID = number(m, "element-id")
		s.Items, err = p.schema(m["items"], depth+1)
	case "map":
		s.ID = number(m, "value-id")
		s.Items, err = p.schema(m["values"], depth+1)
	case "fixed":
		if s.Size = number(m, "size"); s.Size < 0 || s.Size > 1<<20 {
			err = fmt.Errorf("the schema has values of %d bytes", s.Size)
		}
	case "enum":
		list, _ := m["symbols"].([]any)
		for _, x := range list {
			word, _ := x.(string)
			s.Symbols = append(s.Symbols, word)
		}
	default:
		if !primitives[kind] {
			return p.schema(kind, depth+1)
		}
	}
	return s, err
}

func (p *parser) name(s *Schema, space string) {
	if p.named[s.Name] = s; space != "" && !strings.Contains(s.Name, ".") {
		p.named[space+"."+s.Name] = s
	}
}

func (p *parser) fields(s *Schema, m map[string]any, depth int) error {
	list, ok := m["fields"].([]any)
	if !ok {
		return fmt.Errorf("the record %q of the schema has no fields", s.Name)
	}
	for _, x := range list {
		f, ok := x.(map[string]any)
		if !ok {
			return fmt.Errorf("a field of the record %q of the schema is no object", s.Name)
		}
		t, err := p.schema(f["type"], depth+1)
		if err != nil {
			return err
		}
		s.Fields = append(s.Fields, Field{Name: text(f, "name"), Type: t, ID: number(f, "field-id")})
	}
	return nil
}
