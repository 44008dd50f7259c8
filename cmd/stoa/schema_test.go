package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/format"
	"stoa/internal/typewords"
)

// leafTypes has every type without children, each parameter at least once.
var leafTypes = []arrow.DataType{
	arrow.Null, arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
	&arrow.FixedSizeBinaryType{ByteWidth: 16},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	&arrow.Time32Type{Unit: arrow.Second}, &arrow.Time32Type{Unit: arrow.Millisecond},
	&arrow.Time64Type{Unit: arrow.Microsecond}, &arrow.Time64Type{Unit: arrow.Nanosecond},
	&arrow.TimestampType{Unit: arrow.Second},
	&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Athens"},
	&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "+02:00"},
	&arrow.DurationType{Unit: arrow.Millisecond}, arrow.FixedWidthTypes.MonthInterval,
	arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
	&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 18},
	&arrow.Decimal128Type{Precision: 38, Scale: 10},
	&arrow.Decimal128Type{Precision: 5, Scale: -2}, &arrow.Decimal256Type{Precision: 76, Scale: 0},
}

// nestedTypes has every type with children, and unusual nullability.
var nestedTypes = []arrow.DataType{
	arrow.ListOf(arrow.BinaryTypes.String), arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int8),
	arrow.LargeListOf(arrow.PrimitiveTypes.Int64),
	arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), arrow.ListViewOf(arrow.PrimitiveTypes.Int16),
	arrow.LargeListViewOf(arrow.PrimitiveTypes.Int16),
	arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.ListOf(arrow.FixedWidthTypes.Date32), Nullable: true,
		Metadata: arrow.NewMetadata([]string{"m"}, []string{"1"})}),
	arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: `a "b", c`, Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true}), arrow.StructOf(),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), sortedMap(),
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.PrimitiveTypes.Int64, Ordered: true},
	arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
	arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []arrow.UnionTypeCode{5, 0}),
	arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}},
		[]arrow.UnionTypeCode{1}),
	extensions.NewUUIDType(),
}

func sortedMap() arrow.DataType {
	m := arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)
	m.KeysSorted = true
	return m
}

// TestSchemaJSONIsComplete: the JSON form of a schema parses back to the same schema.
func TestSchemaJSONIsComplete(t *testing.T) {
	md := arrow.NewMetadata([]string{"k", "binary", "k2"}, []string{"v <&>", "\xff\x00", ""})
	var fields []arrow.Field
	for i, dt := range append(append([]arrow.DataType{}, leafTypes...), nestedTypes...) {
		f := arrow.Field{Name: fmt.Sprintf("f %d", i), Type: dt, Nullable: i%2 == 0}
		if i%3 == 0 {
			f.Metadata = md
		}
		fields = append(fields, f)
	}
	sc := arrow.NewSchema(fields, &md)
	b, err := look.SchemaBytes("json", sc, "t", format.Layout{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := schemaFrom(b)
	if err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	for i, f := range sc.Fields() {
		if g := back.Field(i); !f.Equal(g) {
			t.Errorf("got %s %s (%v), want %s %s (%v)", g.Name, g.Type, g.Metadata, f.Name, f.Type, f.Metadata)
		}
	}
	if !sc.Equal(back) || !sc.Metadata().Equal(back.Metadata()) {
		t.Errorf("got\n%s\nwant\n%s", back, sc)
	}
}

// schemaFrom parses the JSON form of a schema.
func schemaFrom(b []byte) (*arrow.Schema, error) {
	var d struct {
		Fields   []fieldIn
		Metadata pairsIn
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	fields, err := fieldsFrom(d.Fields)
	if err != nil {
		return nil, err
	}
	m := arrow.Metadata(d.Metadata)
	return arrow.NewSchema(fields, &m), nil
}

type fieldIn struct {
	Name, Type, Extension string
	Nullable              bool
	Children              []fieldIn
	Metadata              pairsIn
}

type pairsIn arrow.Metadata

func (p *pairsIn) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		return err
	}
	var keys, values []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return err
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return err
		}
		s, ok := v.(string)
		if !ok {
			raw, err := base64.StdEncoding.DecodeString(v.(map[string]any)["base64"].(string))
			if err != nil {
				return err
			}
			s = string(raw)
		}
		keys, values = append(keys, k.(string)), append(values, s)
	}
	*p = pairsIn(arrow.NewMetadata(keys, values))
	return nil
}

func fieldsFrom(in []fieldIn) ([]arrow.Field, error) {
	out := []arrow.Field{}
	for _, f := range in {
		children, err := fieldsFrom(f.Children)
		if err != nil {
			return nil, err
		}
		t, err := typeFrom(f, children)
		if err != nil {
			return nil, err
		}
		out = append(out, arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable,
			Metadata: arrow.Metadata(f.Metadata)})
	}
	return out, nil
}

func typeFrom(f fieldIn, children []arrow.Field) (arrow.DataType, error) {
	word, param, _ := strings.Cut(strings.TrimSuffix(f.Type, "]"), "[")
	switch word {
	case "list":
		return arrow.ListOfField(children[0]), nil
	case "large_list":
		return arrow.LargeListOfField(children[0]), nil
	case "list_view":
		return arrow.ListViewOfField(children[0]), nil
	case "large_list_view":
		return arrow.LargeListViewOfField(children[0]), nil
	case "fixed_size_list":
		n, err := strconv.ParseInt(param, 10, 32)
		return arrow.FixedSizeListOfField(int32(n), children[0]), err
	case "struct":
		return arrow.StructOf(children...), nil
	case "map":
		m := arrow.MapOfFields(children[0], children[1])
		m.KeysSorted = param == "sorted"
		return m, nil
	case "dictionary":
		return &arrow.DictionaryType{IndexType: children[0].Type, ValueType: children[1].Type,
			Ordered: param == "ordered"}, nil
	case "run_end_encoded":
		return arrow.RunEndEncodedOf(children[0].Type, children[1].Type), nil
	case "sparse_union", "dense_union":
		var codes []arrow.UnionTypeCode
		for _, c := range strings.Split(param, ",") {
			n, err := strconv.ParseInt(c, 10, 8)
			if err != nil {
				return nil, err
			}
			codes = append(codes, arrow.UnionTypeCode(n))
		}
		if word == "dense_union" {
			return arrow.DenseUnionOf(children, codes), nil
		}
		return arrow.SparseUnionOf(children, codes), nil
	case "extension":
		return arrow.GetExtensionType(param).Deserialize(children[0].Type, f.Extension)
	}
	sc, err := typewords.Parse("x: " + f.Type)
	if err != nil {
		return nil, err
	}
	return sc.Field(0).Type, nil
}

// TestTypeNamesParse: --source-opt schema=… parses the types that schema prints.
func TestTypeNamesParse(t *testing.T) {
	try := append(append([]arrow.DataType{}, leafTypes...),
		arrow.ListOf(arrow.BinaryTypes.String), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64},
			arrow.Field{Name: "a: b", Type: arrow.LargeListOf(arrow.BinaryTypes.Binary), Nullable: true}))
	for _, dt := range try {
		sc, err := typewords.Parse("x: " + display.TypeName(dt))
		if err != nil {
			t.Errorf("%s: %v", display.TypeName(dt), err)
		} else if !arrow.TypeEqual(sc.Field(0).Type, dt) {
			t.Errorf("%s: got %s", display.TypeName(dt), sc.Field(0).Type)
		}
	}
}

// TestSchemaFormsTakeEveryType: every form of schema supports all types, but Avro refuses by name those that it does
// not have.
func TestSchemaFormsTakeEveryType(t *testing.T) {
	for _, dt := range append(append([]arrow.DataType{}, leafTypes...), nestedTypes...) {
		sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
		for _, form := range []string{"text", "json", "ddl", "arrow"} {
			if b, err := look.SchemaBytes(form, sc, "t", format.Layout{}, &schemafmt.DuckDB); err != nil ||
				len(b) == 0 {
				t.Errorf("%s as %s: got %d bytes, %v", dt, form, len(b), err)
			}
		}
		b, err := look.SchemaBytes("avro", sc, "t", format.Layout{}, nil)
		switch {
		case err != nil && !strings.Contains(err.Error(), "Avro has no type for"):
			t.Errorf("%s: %v", dt, err)
		case err == nil && !json.Valid(b):
			t.Errorf("%s: got invalid JSON: %s", dt, b)
		}
	}
}
