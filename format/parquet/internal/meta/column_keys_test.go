package meta

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestPartsOfColumns: schemas of Spark and Avro lose the struct fields that are not kept, also in lists and maps, and
// keep everything else, with numbers as written.
func TestPartsOfColumns(t *testing.T) {
	a := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64})
	in := arrow.StructOf(arrow.Field{Name: "s", Type: a}, arrow.Field{Name: "l", Type: arrow.ListOf(a)},
		arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, a)})
	columns := []arrow.Field{{Name: "x", Type: in}, {Name: "u", Type: a}}
	for _, c := range []struct{ key, value, want string }{
		{"org.apache.spark.sql.parquet.row.metadata",
			`{"type":"struct","fields":[{"name":"gone","type":"long"},{"name":"x","nullable":true,"type":{
			"type":"struct","fields":[{"name":"s","type":{"type":"struct","fields":[
			{"name":"a","type":"long"},{"name":"b","type":"long"}]}},
			{"name":"b","type":"string"},
			{"name":"l","type":{"type":"array","containsNull":true,"elementType":{"type":"struct","fields":[
			{"name":"b","type":"long"},{"name":"a","type":"long"}]}}},
			{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[
			{"name":"a","type":"long"},{"name":"c","type":"long"}]}}}]}}]}`,
			`{"type":"struct","fields":[{"name":"x","nullable":true,"type":{"type":"struct",
			"fields":[{"name":"s","type":{"type":"struct","fields":[{"name":"a","type":"long"}]}},
			{"name":"l","type":{"type":"array","containsNull":true,"elementType":{"type":"struct","fields":[
			{"name":"a","type":"long"}]}}},
			{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[
			{"name":"a","type":"long"}]}}}]}}]}`},
		{"parquet.avro.schema",
			`{"type":"record","name":"r","fields":[{"name":"x","type":["null",{"type":"record","name":"y","fields":[
			{"name":"s","default":12345678901234567890,"type":{"type":"record","name":"z","fields":[
			{"name":"a","type":"long"},{"name":"b","type":"long"}]}},
			{"name":"l","type":{"type":"array","items":["null",{"type":"record","name":"w","fields":[
			{"name":"a","type":"long"},{"name":"b","type":"long"}]}]}},
			{"name":"m","type":{"type":"map","values":{"type":"record","name":"v","fields":[
			{"name":"b","type":"long"},{"name":"a","type":"long"}]}}}]}]}]}`,
			`{"type":"record","name":"r","fields":[{"name":"x","type":["null",{"type":"record","name":"y","fields":[
			{"name":"s","default":12345678901234567890,"type":{"type":"record","name":"z","fields":[
			{"name":"a","type":"long"}]}},
			{"name":"l","type":{"type":"array","items":["null",{"type":"record","name":"w","fields":[
			{"name":"a","type":"long"}]}]}},
			{"name":"m","type":{"type":"map","values":{"type":"record","name":"v","fields":[
			{"name":"a","type":"long"}]}}}]}]}]}`},
		// a union of several types, other names, and values that are not schemas
		{"avro.schema", `{"fields":[{"name":"u","type":["null","long",{"fields":[{"name":"b"}]}]}]}`, ""},
		{"avro.schema", `{"fields":[{"name":"u","type":{"fields":[{"name":"b","type":"long"}]}}]}`, ""},
		{"avro.schema", `{"fields":[{"name":"u","type":{"fields":7}},{"name":4},5]}`, ""},
	} {
		got, ok := CutToColumns(c.key, c.value, columns)
		if c.want == "" {
			if got != c.value || !ok {
				t.Errorf("%s: %t, %s", c.value, ok, got)
			}
			continue
		}
		if !ok || !reflect.DeepEqual(jsonValue([]byte(got)), jsonValue([]byte(c.want))) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %t, %s, want %s", c.key, ok, got, c.want)
		}
		if again, ok := CutToColumns(c.key, got, columns); again != got || !ok {
			t.Errorf("%s: again: %t, %s", c.key, ok, again)
		}
	}
}

// TestFieldsApart: a schema of Spark or Avro is dropped if a struct field has become a column of its own, which that
// schema does not have.
func TestFieldsApart(t *testing.T) {
	columns := []arrow.Field{{Name: "s.a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: arrow.BinaryTypes.String}}
	value := `{"fields":[{"name":"s","type":{"fields":[{"name":"a"},{"name":"b"}]}},{"name":"k","type":"string"}]}`
	for _, key := range []string{"avro.schema", "org.apache.spark.sql.parquet.row.metadata"} {
		if got, ok := CutToColumns(key, value, columns); ok {
			t.Errorf("%s: %s", key, got)
		}
		if got, ok := CutToColumns(key, value, columns[1:]); !ok || got != `{"fields":[{"name":"k","type":"string"}]}` {
			t.Errorf("%s: of k alone: %t, %s", key, ok, got)
		}
	}
}
