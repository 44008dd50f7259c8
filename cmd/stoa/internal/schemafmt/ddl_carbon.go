package schemafmt

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// carbonData is Spark SQL for a table of CarbonData 2, whose partition columns are not listed with the others.
var carbonData = func() Dialect {
	d := spark
	d.types = map[arrow.Type]string{arrow.NULL: "STRING", arrow.DATE64: "TIMESTAMP"}
	for t, s := range spark.types {
		if _, ok := d.types[t]; !ok {
			d.types[t] = s
		}
	}
	d.stamp = func(*arrow.TimestampType) string { return "TIMESTAMP" }
	d.tail, d.apart = carbonTail, true
	return d
}()

// ownProperties are properties that CarbonData sets by itself, or that describe the effect of another statement or of
// another clause.
var ownProperties = []string{"comment", "indexexists", "indextableexists", "relatedmvtablesmap", "tablepath",
	"tablename", "dbname", "isexternal", "istransactional",
	"external", "_external", "isvisible", "latestversion", "carbonschemapartsno",
	"serialization.format", "path"}

// namingProperties are properties whose values are names of columns.
var namingProperties = []string{"sort_columns", "long_string_columns", "local_dictionary_include",
	"local_dictionary_exclude", "no_inverted_index", "inverted_index", "column_meta_cache", "range_column"}

// existing returns the names in a property that are those of columns. CarbonData's ADD COLUMNS lists children and
// an empty name, too, and its other changes leave old names, but its CREATE TABLE accepts only columns.
func existing(value string, sc *arrow.Schema) string {
	var list []string
	for n := range strings.SplitSeq(value, ",") {
		n = strings.TrimSpace(n)
		if slices.ContainsFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, n) }) {
			list = append(list, n)
		}
	}
	return strings.Join(list, ",")
}

// carbonTail returns the table's properties, if it is a CarbonData table, else those that describe its layout.
func carbonTail(_ string, sc *arrow.Schema, l format.Layout, d *Dialect) string {
	var parts []string
	for _, n := range l.Partitions {
		for _, f := range sc.Fields() {
			if strings.EqualFold(f.Name, n) {
				parts = append(parts, d.name(f.Name)+" "+d.sqlType(f.Type)+d.comment(f))
			}
		}
	}
	s := ""
	if c := l.Properties["comment"]; c != "" {
		s = "COMMENT " + sqlText(c) + "\n"
	}
	if len(parts) > 0 {
		s += "PARTITIONED BY (" + strings.Join(parts, ", ") + ")\n"
	}
	props := map[string]string{}
	if len(l.Sorted) > 0 {
		props["sort_columns"] = strings.Join(l.Sorted, ",")
	}
	if l.Buckets > 0 {
		props["bucket_number"], props["bucket_columns"] = strconv.Itoa(l.Buckets), strings.Join(l.BucketBy, ",")
	}
	for k, v := range l.Properties {
		k = strings.ToLower(k)
		if slices.Contains(namingProperties, k) {
			v = existing(v, sc)
		}
		if v != "" && !slices.Contains(ownProperties, k) && !strings.HasPrefix(k, "default.value.") &&
			!strings.HasPrefix(k, "bucketnumber") && !strings.HasPrefix(k, "bucketcolumns") && !ofIndex(k) {
			props[k] = v
		}
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(props)) {
		list = append(list, sqlText(k)+" = "+sqlText(props[k]))
	}
	s += "STORED AS carbondata"
	if len(list) > 0 {
		s += "\nTBLPROPERTIES (\n  " + strings.Join(list, ",\n  ") + "\n)"
	}
	return s + ";\n"
}

// ofIndex reports whether CarbonData itself sets a property of a spatial index.
func ofIndex(k string) bool {
	return strings.HasPrefix(k, "spatial_index.") && (strings.HasSuffix(k, ".instance") ||
		strings.HasSuffix(k, ".datatype") || strings.HasSuffix(k, ".sourcecolumntypes"))
}

// sqlText returns a string literal of Spark SQL.
func sqlText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
