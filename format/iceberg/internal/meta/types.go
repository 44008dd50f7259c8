// Package meta reads and writes the metadata of Iceberg tables: table metadata in JSON, manifests and their lists in
// Avro.
package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"stoa/format/internal/lake"
)

// Field is a field of a schema.
type Field struct {
	ID             int             `json:"id"`
	Name           string          `json:"name"`
	Required       bool            `json:"required"`
	Type           Type            `json:"type"`
	Doc            string          `json:"doc,omitempty"`
	InitialDefault json.RawMessage `json:"initial-default,omitempty"`
	WriteDefault   json.RawMessage `json:"write-default,omitempty"`
}

// Type is the type of a field: a word, or a struct, a list, a map.
type Type struct {
	Name   string
	Fields []Field // of a struct; for a list its element, for a map its key and value
}

// The names of types that have fields.
const (
	structType = "struct"
	listType   = "list"
	mapType    = "map"
)

type nestedJSON struct {
	Type            string  `json:"type"`
	Fields          []Field `json:"fields,omitempty"`
	ElementID       int     `json:"element-id,omitempty"`
	Element         *Type   `json:"element,omitempty"`
	ElementRequired *bool   `json:"element-required,omitempty"`
	KeyID           int     `json:"key-id,omitempty"`
	Key             *Type   `json:"key,omitempty"`
	ValueID         int     `json:"value-id,omitempty"`
	Value           *Type   `json:"value,omitempty"`
	ValueRequired   *bool   `json:"value-required,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (t Type) MarshalJSON() ([]byte, error) {
	n := nestedJSON{Type: t.Name}
	switch t.Name {
	case structType:
		n.Fields = t.Fields
	case listType:
		e := t.Fields[0]
		n.ElementID, n.Element, n.ElementRequired = e.ID, &e.Type, &e.Required
	case mapType:
		k, v := t.Fields[0], t.Fields[1]
		n.KeyID, n.Key, n.ValueID, n.Value, n.ValueRequired = k.ID, &k.Type, v.ID, &v.Type, &v.Required
	default:
		return json.Marshal(t.Name)
	}
	return json.Marshal(n)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Type) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &t.Name) == nil {
		return nil
	}
	var n nestedJSON
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	is := func(b *bool) bool { return b != nil && *b }
	switch t.Name = n.Type; {
	case n.Type == structType:
		t.Fields = n.Fields
	case n.Type == listType && n.Element != nil:
		t.Fields = []Field{{ID: n.ElementID, Name: "element", Required: is(n.ElementRequired), Type: *n.Element}}
	case n.Type == mapType && n.Key != nil && n.Value != nil:
		t.Fields = []Field{{ID: n.KeyID, Name: "key", Required: true, Type: *n.Key},
			{ID: n.ValueID, Name: "value", Required: is(n.ValueRequired), Type: *n.Value}}
	default:
		return fmt.Errorf("%q is not a type with fields", n.Type)
	}
	return nil
}

// FieldsOf converts Arrow fields with ids to Iceberg's; see lake.Rules.Storage.
func FieldsOf(fields []arrow.Field) (out []Field) {
	for _, f := range fields {
		out = append(out, Field{ID: lake.IDOf(f), Name: f.Name, Required: !f.Nullable, Type: typeOf(f.Type)})
	}
	return out
}

func typeOf(t arrow.DataType) Type {
	switch t := t.(type) {
	case *arrow.StructType:
		return Type{structType, FieldsOf(t.Fields())}
	case *arrow.MapType:
		return Type{mapType, FieldsOf([]arrow.Field{t.KeyField(), t.ItemField()})}
	case *arrow.ListType:
		return Type{listType, FieldsOf([]arrow.Field{t.ElemField()})}
	case *arrow.FixedSizeBinaryType:
		return Type{Name: fmt.Sprintf("fixed[%d]", t.ByteWidth)}
	case *arrow.Decimal128Type:
		return Type{Name: fmt.Sprintf("decimal(%d, %d)", t.Precision, t.Scale)}
	case *arrow.TimestampType:
		word := "timestamp"
		if t.TimeZone != "" {
			word = "timestamptz"
		}
		if t.Unit == arrow.Nanosecond {
			word += "_ns"
		}
		return Type{Name: word}
	case arrow.ExtensionType:
		return Type{Name: "uuid"}
	}
	return Type{Name: map[arrow.Type]string{arrow.BOOL: "boolean", arrow.INT32: "int", arrow.INT64: "long",
		arrow.FLOAT32: "float", arrow.FLOAT64: "double", arrow.STRING: "string", arrow.BINARY: "binary",
		arrow.DATE32: "date", arrow.TIME64: "time"}[t.ID()]}
}

// Retyped returns the field with the type of an Arrow field that differs from its own at most in types without fields.
func (f Field) Retyped(to arrow.Field) Field {
	if len(f.Type.Fields) == 0 && to.Type.ID() != arrow.NULL { // null is the type "unknown"
		f.Type = typeOf(to.Type)
	}
	var inner []arrow.Field
	switch x := to.Type.(type) {
	case *arrow.StructType:
		inner = x.Fields()
	case *arrow.MapType:
		inner = []arrow.Field{x.KeyField(), x.ItemField()}
	case *arrow.ListType:
		inner = []arrow.Field{x.ElemField()}
	}
	f.Type.Fields = slices.Clone(f.Type.Fields)
	for i := range f.Type.Fields {
		f.Type.Fields[i] = f.Type.Fields[i].Retyped(inner[i])
	}
	return f
}

// primitives maps the types without parameters to Arrow's.
var primitives = map[string]arrow.DataType{
	"boolean": arrow.FixedWidthTypes.Boolean, "int": arrow.PrimitiveTypes.Int32, "long": arrow.PrimitiveTypes.Int64,
	"float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64, "string": arrow.BinaryTypes.String,
	"binary": arrow.BinaryTypes.Binary, "date": arrow.FixedWidthTypes.Date32, "time": arrow.FixedWidthTypes.Time64us,
	"timestamp":      &arrow.TimestampType{Unit: arrow.Microsecond},
	"timestamptz":    &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"timestamp_ns":   &arrow.TimestampType{Unit: arrow.Nanosecond},
	"timestamptz_ns": &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
	"unknown":        arrow.Null,
}

// ErrType is a type that stoa does not read, such as variant.
var ErrType = errors.New("stoa does not read the type")

// maxDepth is the maximum nesting depth of types.
const maxDepth = 64

// Arrow converts the fields to Arrow's, with their ids.
func Arrow(fields []Field, depth int) (out []arrow.Field, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	seen := map[int]bool{}
	for _, f := range fields {
		if seen[f.ID] {
			return nil, fmt.Errorf("two fields have the id %d", f.ID)
		}
		seen[f.ID] = true
		t, err := f.Type.arrow(depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out = append(out, arrow.Field{Name: f.Name, Type: t, Nullable: !f.Required,
			Metadata: arrow.NewMetadata([]string{lake.FieldID}, []string{strconv.Itoa(f.ID)})})
	}
	return out, nil
}

func (t Type) arrow(depth int) (arrow.DataType, error) {
	if x := primitives[t.Name]; x != nil {
		return x, nil
	}
	if t.Name == "uuid" {
		return extensions.NewUUIDType(), nil
	}
	var n, scale int32
	if _, err := fmt.Sscanf(strings.ReplaceAll(t.Name, " ", ""), "decimal(%d,%d)", &n, &scale); err == nil {
		if n < 1 || n > 38 || scale < 0 || scale > n {
			return nil, fmt.Errorf("%q is not a type", t.Name)
		}
		return &arrow.Decimal128Type{Precision: n, Scale: scale}, nil
	}
	if _, err := fmt.Sscanf(t.Name, "fixed[%d]", &n); err == nil && n > 0 && n < 1<<20 {
		return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}, nil
	}
	fs, err := Arrow(t.Fields, depth+1)
	switch {
	case err != nil:
		return nil, err
	case t.Name == structType:
		return arrow.StructOf(fs...), nil
	case t.Name == listType:
		return arrow.ListOfField(fs[0]), nil
	case t.Name == mapType:
		return arrow.MapOfFields(fs[0], fs[1]), nil
	}
	return nil, fmt.Errorf("%w %q", ErrType, t.Name)
}

// NameMapping returns the text of the property schema.name-mapping.default.
func NameMapping(fields []Field) string {
	b, err := json.Marshal(mappedFields(fields))
	if err != nil {
		return "[]"
	}
	return string(b)
}

// MappedField is a field of a name mapping.
type MappedField struct {
	ID     *int          `json:"field-id,omitempty"`
	Names  []string      `json:"names"`
	Fields []MappedField `json:"fields,omitempty"`
}

func mappedFields(fields []Field) (out []MappedField) {
	for _, f := range fields {
		id := f.ID
		out = append(out, MappedField{ID: &id, Names: []string{f.Name}, Fields: mappedFields(f.Type.Fields)})
	}
	return out
}
