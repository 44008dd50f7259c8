package meta

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Some keys of a file's metadata describe its columns by their names: of a file that lacks one of these they would be
// untrue, and readers believe them (Spark takes its schema from there, GeoParquet's readers look for primary_column).

// describing are the keys, with how their JSON is cut to some columns; ok is false if nothing is left.
var describing = map[string]func(doc map[string]json.RawMessage, columns []string) (changed, ok bool){
	"geo": cutGeo,
	"org.apache.spark.sql.parquet.row.metadata": cutFields("fields", "name"),
	"parquet.avro.schema":                       cutFields("fields", "name"),
	"avro.schema":                               cutFields("fields", "name"),
	"pandas":                                    cutPandas,
}

// OfColumns is the value of a key as a file of some top-level columns has it; ok is false if the key says nothing of
// them. What is no JSON is left as it is.
func OfColumns(key, value string, columns []string) (cut string, ok bool) {
	how := describing[key]
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

// jsonText is a value as JSON, with < and & as they are.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// cutGeo: GeoParquet has an object with a member for each geometry column, one of which is the primary one.
func cutGeo(doc map[string]json.RawMessage, columns []string) (changed, ok bool) {
	var described map[string]json.RawMessage
	var primary string
	if json.Unmarshal(doc["columns"], &described) != nil || described == nil {
		return false, true
	}
	for name := range described {
		if !slices.Contains(columns, name) {
			delete(described, name)
			changed = true
		}
	}
	if len(described) == 0 {
		return changed, !changed
	}
	_ = json.Unmarshal(doc["primary_column"], &primary)
	if _, there := described[primary]; changed && !there {
		for _, name := range columns { // the first that is left
			if _, there := described[name]; there {
				doc["primary_column"] = json.RawMessage(jsonText(name))
				break
			}
		}
	}
	if changed {
		doc["columns"] = json.RawMessage(jsonText(described))
	}
	return changed, true
}

// cutFields: a list of objects, each with the name of its column.
func cutFields(list, name string) func(map[string]json.RawMessage, []string) (bool, bool) {
	return func(doc map[string]json.RawMessage, columns []string) (changed, ok bool) {
		var all, left []json.RawMessage
		if json.Unmarshal(doc[list], &all) != nil {
			return false, true
		}
		for _, f := range all {
			var x map[string]any
			if json.Unmarshal(f, &x) == nil {
				if n, is := x[name].(string); is && !slices.Contains(columns, n) {
					continue
				}
			}
			left = append(left, f)
		}
		if len(left) == len(all) {
			return false, true
		}
		doc[list] = json.RawMessage(jsonText(left))
		return true, len(left) > 0
	}
}

// cutPandas: columns, and those that are the index.
func cutPandas(doc map[string]json.RawMessage, columns []string) (changed, ok bool) {
	changed, _ = cutFields("columns", "field_name")(doc, columns)
	var index, left []any
	if json.Unmarshal(doc["index_columns"], &index) != nil {
		return changed, true
	}
	for _, x := range index {
		if name, is := x.(string); !is || slices.Contains(columns, name) {
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
