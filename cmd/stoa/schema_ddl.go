package main

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// ddl is the schema as CREATE TABLE, in DuckDB's dialect, which has a word for nearly every Arrow type.
func ddl(sc *arrow.Schema, table string) string {
	var lines []string
	for _, f := range sc.Fields() {
		s := "  " + sqlName(f.Name) + " " + sqlType(f.Type)
		if !f.Nullable {
			s += " NOT NULL"
		}
		lines = append(lines, s)
	}
	return fmt.Sprintf("CREATE TABLE %s (\n%s\n);\n", sqlName(table), strings.Join(lines, ",\n"))
}

func sqlName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

var sqlTypes = map[arrow.Type]string{
	arrow.NULL: "INTEGER", arrow.BOOL: "BOOLEAN",
	arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT",
	arrow.FLOAT16: "REAL", arrow.FLOAT32: "REAL", arrow.FLOAT64: "DOUBLE",
	arrow.DATE32: "DATE", arrow.DATE64: "TIMESTAMP_MS", arrow.TIME32: "TIME", arrow.TIME64: "TIME",
	arrow.DURATION: "INTERVAL", arrow.INTERVAL_MONTHS: "INTERVAL", arrow.INTERVAL_DAY_TIME: "INTERVAL", arrow.INTERVAL_MONTH_DAY_NANO: "INTERVAL",
	arrow.STRING: "VARCHAR", arrow.LARGE_STRING: "VARCHAR", arrow.STRING_VIEW: "VARCHAR",
}

// sqlType is a type in SQL. What SQL has no word for is a BLOB.
func sqlType(t arrow.DataType) string {
	if s, ok := sqlTypes[t.ID()]; ok {
		return s
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		return sqlDecimal(t)
	case *arrow.TimestampType:
		return sqlTimestamp(t)
	case *arrow.DictionaryType:
		return sqlType(t.ValueType)
	case *arrow.RunEndEncodedType:
		return sqlType(t.Encoded())
	case *arrow.MapType:
		return fmt.Sprintf("MAP(%s, %s)", sqlType(t.KeyType()), sqlType(t.ItemType()))
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("%s[%d]", sqlType(t.Elem()), t.Len())
	case arrow.ListLikeType:
		return sqlType(t.Elem()) + "[]"
	case *arrow.StructType:
		return "STRUCT(" + sqlFields(t.Fields()) + ")"
	case arrow.UnionType:
		return "UNION(" + sqlFields(t.Fields()) + ")"
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return "UUID"
		}
		return sqlType(t.StorageType())
	}
	return "BLOB"
}

// sqlDecimal gives a decimal that is too wide for SQL as a DOUBLE with the truth beside it.
func sqlDecimal(t arrow.DecimalType) string {
	p, s := t.GetPrecision(), t.GetScale()
	if s < 0 {
		p, s = p-s, 0
	}
	if p > 38 || s > p {
		return fmt.Sprintf("DOUBLE /* %s */", typeWord(t))
	}
	return fmt.Sprintf("DECIMAL(%d, %d)", p, s)
}

func sqlTimestamp(t *arrow.TimestampType) string {
	if t.TimeZone != "" {
		return "TIMESTAMPTZ"
	}
	return map[arrow.TimeUnit]string{arrow.Second: "TIMESTAMP_S", arrow.Millisecond: "TIMESTAMP_MS",
		arrow.Microsecond: "TIMESTAMP", arrow.Nanosecond: "TIMESTAMP_NS"}[t.Unit]
}

func sqlFields(fields []arrow.Field) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, sqlName(f.Name)+" "+sqlType(f.Type))
	}
	return strings.Join(parts, ", ")
}
