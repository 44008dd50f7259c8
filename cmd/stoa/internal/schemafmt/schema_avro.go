package schemafmt

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
)

// The Avro form of a schema, by the Avro specification 1.12. A name that Avro does not allow is changed, and the
// original is kept as the property "arrow.name".

type avroField struct {
	Name     string  `json:"name"`
	Original string  `json:"arrow.name,omitempty"`
	Type     any     `json:"type"`
	Default  *string `json:"default"`
}

// avroNoDefault is a field without a default.
type avroNoDefault struct {
	Name     string `json:"name"`
	Original string `json:"arrow.name,omitempty"`
	Type     any    `json:"type"`
}

// avro records which record names are taken.
type avro struct{ taken map[string]int }

func AvroSchema(sc *arrow.Schema, name string) (any, error) {
	a := avro{taken: map[string]int{}}
	return a.record(name, sc.Fields())
}

func (a avro) record(name string, fields []arrow.Field) (any, error) {
	name = a.unique(avroName(name))
	out := []any{}
	taken := map[string]bool{}
	for _, f := range fields {
		t, err := a.typeOf(name+"_"+f.Name, f.Type)
		if err != nil {
			return nil, err
		}
		fn := avroName(f.Name)
		for taken[fn] {
			fn += "_"
		}
		taken[fn] = true
		original := ""
		if fn != f.Name {
			original = f.Name
		}
		if f.Nullable && t != "null" {
			out = append(out, avroField{Name: fn, Original: original, Type: []any{"null", t}})
		} else {
			out = append(out, avroNoDefault{Name: fn, Original: original, Type: t})
		}
	}
	return struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Fields []any  `json:"fields"`
	}{"record", name, out}, nil
}

// unique appends a number to a record's name if the name is taken.
func (a avro) unique(name string) string {
	a.taken[name]++
	if n := a.taken[name]; n > 1 {
		return a.unique(fmt.Sprintf("%s_%d", name, n))
	}
	return name
}

// avroName converts a name to letters, digits and underscores.
func avroName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "_" + s
	}
	return s
}

var avroTypes = map[arrow.Type]string{
	arrow.NULL: "null", arrow.BOOL: "boolean",
	arrow.INT8: "int", arrow.INT16: "int", arrow.INT32: "int", arrow.INT64: "long",
	arrow.UINT8: "int", arrow.UINT16: "int", arrow.UINT32: "long",
	arrow.FLOAT16: "float", arrow.FLOAT32: "float", arrow.FLOAT64: "double",
	arrow.STRING: "string", arrow.LARGE_STRING: "string", arrow.STRING_VIEW: "string",
	arrow.BINARY: "bytes", arrow.LARGE_BINARY: "bytes", arrow.BINARY_VIEW: "bytes",
	arrow.DURATION: "long",
}

// logical is a logical type.
type logical struct {
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Size      int    `json:"size,omitempty"`
	Logical   string `json:"logicalType,omitempty"`
	Precision int32  `json:"precision,omitempty"`
	Scale     int32  `json:"scale,omitempty"`
}

// typeOf returns a type in Avro's terms; name is for the records and fixed types in it.
func (a avro) typeOf(name string, t arrow.DataType) (any, error) {
	if s, ok := avroTypes[t.ID()]; ok {
		return s, nil
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		if t.GetScale() >= 0 && t.GetScale() <= t.GetPrecision() {
			return logical{Type: "bytes", Logical: "decimal", Precision: t.GetPrecision(), Scale: t.GetScale()}, nil
		}
	case *arrow.FixedSizeBinaryType:
		return logical{Type: "fixed", Name: a.unique(avroName(name)), Size: t.ByteWidth}, nil
	case *arrow.DictionaryType:
		return a.typeOf(name, t.ValueType)
	case *arrow.RunEndEncodedType:
		return a.typeOf(name, t.Encoded())
	case *arrow.StructType:
		return a.record(name, t.Fields())
	case *arrow.MapType:
		return a.mapOf(name, t)
	case arrow.ListLikeType:
		items, err := a.nullable(name, t.ElemField())
		return map[string]any{"type": "array", "items": items}, err
	case arrow.ExtensionType:
		return a.typeOf(name, t.StorageType())
	}
	if l, ok := avroTime(t); ok {
		return l, nil
	}
	if t.ID() == arrow.UINT64 {
		return logical{Type: "bytes", Logical: "decimal", Precision: 20}, nil
	}
	return nil, fault.Unsupportedf(fault.Span{}, "", "Avro has no type for %s (%s)", display.TypeName(t), name)
}

func avroTime(t arrow.DataType) (logical, bool) {
	switch t := t.(type) {
	case *arrow.Date32Type:
		return logical{Type: "int", Logical: "date"}, true
	case *arrow.Date64Type:
		return logical{Type: "long", Logical: "local-timestamp-millis"}, true
	case *arrow.Time32Type:
		return logical{Type: "int", Logical: "time-millis"}, true
	case *arrow.Time64Type:
		return logical{Type: "long", Logical: "time-micros"}, true
	case *arrow.TimestampType:
		unit := map[arrow.TimeUnit]string{arrow.Second: "millis", arrow.Millisecond: "millis",
			arrow.Microsecond: "micros", arrow.Nanosecond: "nanos"}[t.Unit]
		if t.TimeZone == "" {
			return logical{Type: "long", Logical: "local-timestamp-" + unit}, true
		}
		return logical{Type: "long", Logical: "timestamp-" + unit}, true
	}
	return logical{}, false
}

// mapOf returns a map if the keys are text, else an array of records.
func (a avro) mapOf(name string, t *arrow.MapType) (any, error) {
	if t.KeyType().ID() != arrow.STRING && t.KeyType().ID() != arrow.LARGE_STRING &&
		t.KeyType().ID() != arrow.STRING_VIEW {
		items, err := a.record(name, []arrow.Field{t.KeyField(), t.ItemField()})
		return map[string]any{"type": "array", "items": items}, err
	}
	values, err := a.nullable(name, t.ItemField())
	return map[string]any{"type": "map", "values": values}, err
}

func (a avro) nullable(name string, f arrow.Field) (any, error) {
	t, err := a.typeOf(name, f.Type)
	if f.Nullable && t != "null" {
		return []any{"null", t}, err
	}
	return t, err
}
