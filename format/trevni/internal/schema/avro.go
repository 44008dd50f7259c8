package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// AvroType is a type of an Avro schema.
type AvroType struct {
	Kind      string // "null", "int", …, "record", "enum", "fixed", "array", "map", "union"
	Name      string // full name of a record, enum or fixed
	Fields    []AvroSchemaField
	Items     *AvroType // of an array; the values of a map
	Branches  []*AvroType
	symbols   []string
	Size      int
	Logical   string
	Precision int
	Scale     int
}

type AvroSchemaField struct {
	Name string
	Type *AvroType
}

// FullName returns the name of the type in column names made by Avro's shredder: its name, or its kind if it has none.
func (t *AvroType) FullName() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Kind
}

// Simple reports whether the type is stored as one column without children.
func (t *AvroType) Simple() bool {
	switch t.Kind {
	case "record", "array", "map", "union":
		return false
	}
	return true
}

// maxSchema is the maximum depth of a schema. Avro's own stack does not reach much deeper.
const maxSchema = 400

// schemaParser parses Avro's schemas.
type schemaParser struct {
	named map[string]*AvroType
}

// parseAvroSchema parses a schema in JSON. Aliases, defaults, orders and documentation are ignored.
func parseAvroSchema(text []byte) (*AvroType, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("expected JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something is after the schema")
	}
	p := schemaParser{named: map[string]*AvroType{}}
	return p.parse(v, "", 0)
}

func (p *schemaParser) parse(v any, space string, depth int) (*AvroType, error) {
	if depth > maxSchema {
		return nil, notShown(fmt.Sprintf("avro.schema is deeper than %d", maxSchema))
	}
	switch v := v.(type) {
	case string:
		return p.byName(v, space)
	case []any:
		t := &AvroType{Kind: "union"}
		for _, b := range v {
			bt, err := p.parse(b, space, depth+1)
			if err != nil {
				return nil, err
			}
			t.Branches = append(t.Branches, bt)
		}
		return t, nil
	case map[string]any:
		return p.object(v, space, depth)
	}
	return nil, fmt.Errorf("expected a name, an object or an array as a schema, found %T", v)
}

var primitives = map[string]bool{"null": true, "boolean": true, "int": true, "long": true, "float": true,
	"double": true, "string": true, "bytes": true}

func (p *schemaParser) byName(name, space string) (*AvroType, error) {
	if primitives[name] {
		return &AvroType{Kind: name}, nil
	}
	if t, ok := p.named[qualified(name, space)]; ok {
		return t, nil
	}
	if t, ok := p.named[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("the type %q is not defined", name)
}

func qualified(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func number(m map[string]any, key string) int {
	n, _ := m[key].(json.Number)
	i, err := n.Int64()
	if err != nil || i < 0 || i > 1<<30 {
		return 0
	}
	return int(i)
}

func (p *schemaParser) object(m map[string]any, space string, depth int) (t *AvroType, err error) {
	kind, ok := m["type"].(string)
	if !ok {
		if m["type"] == nil {
			return nil, fmt.Errorf("an object without type")
		}
		return p.parse(m["type"], space, depth+1) // {"type": {"type": …}}
	}
	t = &AvroType{Kind: kind, Logical: text(m, "logicalType"), Precision: number(m, "precision"),
		Scale: number(m, "scale")}
	switch kind {
	case "array", "map":
		key := map[string]string{"array": "items", "map": "values"}[kind]
		t.Items, err = p.parse(m[key], space, depth+1)
		return t, err
	case "record", "error", "enum", "fixed":
		t.Kind = strings.Replace(kind, "error", "record", 1)
		return t, p.define(t, m, space, depth)
	}
	if primitives[kind] {
		return t, nil
	}
	return p.byName(kind, space)
}

// define parses a named type, and registers it first: it may contain itself.
func (p *schemaParser) define(t *AvroType, m map[string]any, space string, depth int) error {
	name := text(m, "name")
	if name == "" {
		return fmt.Errorf("a %s without name", t.Kind)
	}
	if ns, ok := m["namespace"].(string); ok && !strings.Contains(name, ".") {
		space = ns
	}
	t.Name = qualified(name, space)
	if i := strings.LastIndexByte(t.Name, '.'); i >= 0 {
		space = t.Name[:i]
	} else {
		space = ""
	}
	if p.named[t.Name] != nil {
		return fmt.Errorf("%s is defined twice", t.Name)
	}
	p.named[t.Name] = t
	switch t.Kind {
	case "enum":
		symbols, _ := m["symbols"].([]any)
		for _, s := range symbols {
			s, ok := s.(string)
			if !ok {
				return fmt.Errorf("expected text as the symbols of %s", t.Name)
			}
			t.symbols = append(t.symbols, s)
		}
	case "fixed":
		t.Size = number(m, "size")
	case "record":
		fields, _ := m["fields"].([]any)
		for _, f := range fields {
			f, ok := f.(map[string]any)
			if !ok || text(f, "name") == "" {
				return fmt.Errorf("a field of %s has no name", t.Name)
			}
			ft, err := p.parse(f["type"], space, depth+1)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", t.Name, text(f, "name"), err)
			}
			t.Fields = append(t.Fields, AvroSchemaField{text(f, "name"), ft})
		}
	}
	return nil
}

// AvroNames makes valid, unique Avro names for the fields of one record. It contains the names in use.
type AvroNames map[string]bool

// Unique returns name with letters, digits and underscores only, no digit first, and a suffix if it is in use.
func (s AvroNames) Unique(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' {
		b = append([]byte{'_'}, b...)
	}
	name = string(b)
	for n := 2; s[name]; n++ {
		name = fmt.Sprintf("%s_%d", b, n)
	}
	s[name] = true
	return name
}

// JSON returns the type for encoding/json. A named type is spelled out unless it is in known, to which it is added.
func (t *AvroType) JSON(known map[string]bool) any {
	if t.Name != "" && known[t.Name] {
		return t.Name
	}
	known[t.Name] = true
	type object = map[string]any
	switch t.Kind {
	case "record":
		fields := []any{}
		for _, f := range t.Fields {
			fields = append(fields, struct {
				Name string `json:"name"`
				Type any    `json:"type"`
			}{f.Name, f.Type.JSON(known)})
		}
		return struct {
			Type   string `json:"type"`
			Name   string `json:"name"`
			Fields []any  `json:"fields"`
		}{"record", t.Name, fields}
	case "array":
		return object{"type": "array", "items": t.Items.JSON(known)}
	case "map":
		return object{"type": "map", "values": t.Items.JSON(known)}
	case "union":
		branches := []any{}
		for _, b := range t.Branches {
			branches = append(branches, b.JSON(known))
		}
		return branches
	case "fixed":
		return object{"type": "fixed", "name": t.Name, "size": t.Size}
	}
	switch {
	case t.Logical == "decimal":
		return object{"type": t.Kind, "logicalType": "decimal", "precision": t.Precision, "scale": t.Scale}
	case t.Logical != "":
		return object{"type": t.Kind, "logicalType": t.Logical}
	}
	return t.Kind
}
