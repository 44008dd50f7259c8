package meta

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// The values of some metadata keys describe columns by name. If a column were dropped they would be wrong, and readers
// trust them (Spark reads its schema from one, GeoParquet readers look for primary_column).

// columnKeys are these keys, each with a function that reduces its JSON to some of the columns; ok is false if nothing
// is left.
var columnKeys = map[string]func(doc map[string]json.RawMessage, columns []arrow.Field) (changed, ok bool){
	"geo": cutGeo,
	"org.apache.spark.sql.parquet.row.metadata": cutFields("fields", "name", true),
	"parquet.avro.schema":                       cutFields("fields", "name", true),
	"avro.schema":                               cutFields("fields", "name", true),
	"pandas":                                    cutPandas,
}

// CutToColumns returns the value of a metadata key for a file that has only some of the columns, or only parts of them;
// ok is false if the key no longer applies. A value that is not JSON is returned unchanged.
func CutToColumns(key, value string, columns []arrow.Field) (cut string, ok bool) {
	how := columnKeys[key]
	var doc map[string]json.RawMessage
	if how == nil || json.Unmarshal([]byte(value), &doc) != nil || doc == nil {
		return value, true
	}
	changed, ok := how(doc, columns)
	if !ok || !changed {
		return value, ok
	}
	return jsonText(doc), true
}

// jsonText encodes a value as JSON without escaping < and &.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// cutGeo reduces GeoParquet's document: an object with a member for each geometry column, one of which is primary.
func cutGeo(doc map[string]json.RawMessage, columns []arrow.Field) (changed, ok bool) {
	var described map[string]json.RawMessage
	var primary string
	if json.Unmarshal(doc["columns"], &described) != nil || described == nil {
		return false, true
	}
	for name := range described {
		if member(columns, name) == nil {
			delete(described, name)
			changed = true
		}
	}
	if len(described) == 0 {
		return changed, !changed
	}
	_ = json.Unmarshal(doc["primary_column"], &primary)
	if _, there := described[primary]; changed && !there {
		for _, f := range columns { // the first remaining one
			if _, there := described[f.Name]; there {
				doc["primary_column"] = json.RawMessage(jsonText(f.Name))
				break
			}
		}
	}
	if changed {
		doc["columns"] = json.RawMessage(jsonText(described))
	}
	return changed, true
}

// member returns the column or struct field with the given name; nil if there is none.
func member(fields []arrow.Field, name string) *arrow.Field {
	i := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// cutFields reduces a list of objects, each of which names its column and, if typed is set, has its type.
func cutFields(list, name string, typed bool) func(map[string]json.RawMessage, []arrow.Field) (bool, bool) {
	return func(doc map[string]json.RawMessage, columns []arrow.Field) (changed, ok bool) {
		all, is := jsonValue(doc[list]).([]any)
		if !is {
			return false, true
		}
		left, changed := cutMembers(all, name, columns, typed)
		if changed && typed && slices.ContainsFunc(all, func(x any) bool { return splitStruct(x, name, columns) }) {
			return true, false // a schema that lacks an existing column would hide that column
		}
		if changed {
			doc[list] = json.RawMessage(jsonText(left))
		}
		return changed, !changed || len(left) > 0
	}
}

// splitStruct reports whether x names a struct whose fields are stored as separate columns, struct.field.
func splitStruct(x any, name string, columns []arrow.Field) bool {
	m, _ := x.(map[string]any)
	n, is := m[name].(string)
	return is && member(columns, n) == nil && slices.ContainsFunc(columns, func(f arrow.Field) bool {
		return strings.HasPrefix(f.Name, n+".")
	})
}

// jsonValue parses a value, with numbers kept as text; nil if it is not JSON.
func jsonValue(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	if d.UseNumber(); d.Decode(&v) != nil {
		return nil
	}
	return v
}

// cutMembers keeps the objects of a list whose name is one of fields, and reduces their types to those of the fields.
func cutMembers(all []any, name string, fields []arrow.Field, typed bool) (left []any, changed bool) {
	for _, x := range all {
		m, _ := x.(map[string]any)
		if n, is := m[name].(string); is {
			f := member(fields, n)
			if f == nil {
				changed = true
				continue
			}
			if typed && cutType(m, "type", f.Type) {
				changed = true
			}
		}
		left = append(left, x)
	}
	return left, changed
}

// cutType reduces a type in a Spark or Avro schema, in[key], to the fields that t has. It leaves alone a union of
// several types, and a struct that shares no field with t, because t's names do not describe it.
func cutType(in map[string]any, key string, t arrow.DataType) (changed bool) {
	x := in[key]
	if union, is := x.([]any); is { // Avro's: null, or one type
		union = slices.DeleteFunc(slices.Clone(union), func(v any) bool { return v == "null" })
		if len(union) == 1 {
			x = union[0]
		}
	}
	m, is := x.(map[string]any)
	if !is {
		return false
	}
	switch t := t.(type) {
	case *arrow.StructType:
		if all, is := m["fields"].([]any); is {
			left, changed := cutMembers(all, "name", t.Fields(), true)
			if changed = changed && len(left) > 0; changed {
				m["fields"] = left
			}
			return changed
		}
	case *arrow.MapType:
		changed = cutType(m, "keyType", t.KeyType())
		for _, key := range []string{"valueType", "values"} { // Spark's, and Avro's
			changed = cutType(m, key, t.ItemType()) || changed
		}
		return changed
	case arrow.ListLikeType:
		for _, key := range []string{"elementType", "items"} {
			changed = cutType(m, key, t.Elem()) || changed
		}
		return changed
	}
	return false
}

// cutPandas reduces the columns of pandas and the columns that form its index.
func cutPandas(doc map[string]json.RawMessage, columns []arrow.Field) (changed, ok bool) {
	changed, _ = cutFields("columns", "field_name", false)(doc, columns)
	var index, left []any
	if json.Unmarshal(doc["index_columns"], &index) != nil {
		return changed, true
	}
	for _, x := range index {
		if name, is := x.(string); !is || member(columns, name) != nil {
			left = append(left, x)
		}
	}
	if len(left) < len(index) {
		changed = true
		if left == nil {
			left = []any{}
		}
		doc["index_columns"] = json.RawMessage(jsonText(left))
	}
	return changed, true
}
