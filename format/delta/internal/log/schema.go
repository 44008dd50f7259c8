// Package log implements the transaction log of Delta tables: its actions, and the schema in it.
package log

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/internal/lake"
)

// Struct is a type with fields: a table's schema.
type Struct struct {
	Type   string  `json:"type"`
	Fields []Field `json:"fields"`
}

// Field is a field of a schema. Type is a word, or an object.
type Field struct {
	Name     string                     `json:"name"`
	Type     json.RawMessage            `json:"type"`
	Nullable bool                       `json:"nullable"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

// Keys of a field's metadata that map columns.
const (
	MappedID   = "delta.columnMapping.id"
	MappedName = "delta.columnMapping.physicalName"
)

type listJSON struct {
	Type         string          `json:"type"`
	ElementType  json.RawMessage `json:"elementType"`
	ContainsNull bool            `json:"containsNull"`
}

type mapJSON struct {
	Type              string          `json:"type"`
	KeyType           json.RawMessage `json:"keyType"`
	ValueType         json.RawMessage `json:"valueType"`
	ValueContainsNull bool            `json:"valueContainsNull"`
}

// FieldsOf converts Arrow's fields to those of a schema. With mapped, they get the metadata of column mapping, with
// their own names as physical names.
func FieldsOf(fields []arrow.Field, mapped bool) (out []Field, err error) {
	for _, f := range fields {
		t, err := typeOf(f.Type, mapped)
		if err != nil {
			return nil, err
		}
		x := Field{Name: f.Name, Type: t, Nullable: f.Nullable, Metadata: map[string]json.RawMessage{}}
		if mapped {
			name, err := json.Marshal(f.Name)
			if err != nil {
				return nil, err
			}
			x.Metadata[MappedID], x.Metadata[MappedName] = json.RawMessage(strconv.Itoa(lake.IDOf(f))), name
		}
		out = append(out, x)
	}
	return out, nil
}

func typeOf(t arrow.DataType, mapped bool) (json.RawMessage, error) {
	switch t := t.(type) {
	case *arrow.StructType:
		fs, err := FieldsOf(t.Fields(), mapped)
		if err != nil {
			return nil, err
		}
		return json.Marshal(Struct{"struct", fs})
	case *arrow.MapType:
		key, err := typeOf(t.KeyType(), mapped)
		if err != nil {
			return nil, err
		}
		value, err := typeOf(t.ItemType(), mapped)
		if err != nil {
			return nil, err
		}
		return json.Marshal(mapJSON{"map", key, value, t.ItemField().Nullable})
	case *arrow.ListType:
		in, err := typeOf(t.Elem(), mapped)
		if err != nil {
			return nil, err
		}
		return json.Marshal(listJSON{"array", in, t.ElemField().Nullable})
	case *arrow.Decimal128Type:
		return json.Marshal(fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale))
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return json.Marshal("timestamp_ntz")
		}
		return json.Marshal("timestamp")
	}
	return json.Marshal(map[arrow.Type]string{arrow.BOOL: "boolean", arrow.INT8: "byte", arrow.INT16: "short",
		arrow.INT32: "integer", arrow.INT64: "long", arrow.FLOAT32: "float", arrow.FLOAT64: "double",
		arrow.STRING: "string", arrow.BINARY: "binary", arrow.DATE32: "date"}[t.ID()])
}

var primitives = map[string]arrow.DataType{
	"boolean": arrow.FixedWidthTypes.Boolean, "byte": arrow.PrimitiveTypes.Int8, "short": arrow.PrimitiveTypes.Int16,
	"integer": arrow.PrimitiveTypes.Int32, "long": arrow.PrimitiveTypes.Int64, "float": arrow.PrimitiveTypes.Float32,
	"double": arrow.PrimitiveTypes.Float64, "string": arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary,
	"date":          arrow.FixedWidthTypes.Date32,
	"timestamp":     &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"timestamp_ntz": &arrow.TimestampType{Unit: arrow.Microsecond},
	"void":          arrow.Null, "null": arrow.Null,
}

// ErrType is a type that stoa does not read, such as variant.
var ErrType = errors.New("stoa does not read the type")

// maxDepth is the maximum nesting depth of types.
const maxDepth = 64

// The metadata of Arrow's fields that locate a column in the files.
const (
	PhysicalName = "delta.physical"
)

// Arrow converts the fields to Arrow's. mode is that of column mapping, which determines whether fields have ids or
// physical names.
func Arrow(fields []Field, mode string, depth int) (out []arrow.Field, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	for _, f := range fields {
		t, err := arrowType(f.Type, mode, depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		var keys, values []string
		if mode != "" && mode != "none" {
			var name string
			var id int
			if json.Unmarshal(f.Metadata[MappedName], &name) != nil || name == "" {
				return nil, fmt.Errorf("%s: the column has no physical name", f.Name)
			}
			keys, values = []string{PhysicalName}, []string{name}
			if mode == "id" && json.Unmarshal(f.Metadata[MappedID], &id) == nil {
				keys, values = append(keys, lake.FieldID), append(values, strconv.Itoa(id))
			}
		}
		out = append(out, arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable,
			Metadata: arrow.NewMetadata(keys, values)})
	}
	return out, nil
}

func arrowType(raw json.RawMessage, mode string, depth int) (arrow.DataType, error) {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if t := primitives[word]; t != nil {
			return t, nil
		}
		var p, s int32
		if word == "decimal" {
			return &arrow.Decimal128Type{Precision: 10}, nil
		}
		if _, err := fmt.Sscanf(strings.ReplaceAll(word, " ", ""), "decimal(%d,%d)", &p, &s); err == nil && p > 0 &&
			p <= 38 && s >= 0 && s <= p {
			return &arrow.Decimal128Type{Precision: p, Scale: s}, nil
		}
		return nil, fmt.Errorf("%w %q", ErrType, word)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	switch kind.Type {
	case "struct":
		var s Struct
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		fs, err := Arrow(s.Fields, mode, depth+1)
		return arrow.StructOf(fs...), err
	case "array":
		var l listJSON
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, err
		}
		in, err := arrowType(l.ElementType, mode, depth+1)
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(arrow.Field{Name: "element", Type: in, Nullable: l.ContainsNull}), nil
	case "map":
		var m mapJSON
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		k, err := arrowType(m.KeyType, mode, depth+1)
		if err != nil {
			return nil, err
		}
		v, err := arrowType(m.ValueType, mode, depth+1)
		if err != nil {
			return nil, err
		}
		return arrow.MapOfFields(arrow.Field{Type: k}, arrow.Field{Type: v, Nullable: m.ValueContainsNull}), nil
	}
	return nil, fmt.Errorf("%w %q", ErrType, kind.Type)
}
