package schemafmt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/cmd/stoa/internal/display"
	"stoa/format"
)

// Dialect is how a dialect of SQL spells types and names.
type Dialect struct {
	name   func(string) string
	types  map[arrow.Type]string
	stamp  func(*arrow.TimestampType) string
	list   func(elem string, fixed int32) string // fixed: 0 for lists of any length
	strct  func(fields []arrow.Field, d *Dialect) string
	union  func(fields []arrow.Field, d *Dialect) string
	mapped func(key, item string) string
	bytes  string // type for binary values, and for types without an equivalent
	uuid   string
	tail   func(table string, sc *arrow.Schema, l format.Layout, d *Dialect) string // the text after the columns
	// partition columns are named in tail, and not listed with the others
	apart bool
}

var Dialects = map[string]*Dialect{"duckdb": &DuckDB, "spark": &spark, "iceberg": &iceberg, "carbon": &carbonData}

var DialectNames = []string{"duckdb", "spark", "iceberg", "carbon"}

// DuckDB has an equivalent for nearly every Arrow type.
var DuckDB = Dialect{
	name: func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` },
	types: map[arrow.Type]string{
		arrow.NULL: "INTEGER", arrow.BOOL: "BOOLEAN",
		arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
		arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT",
		arrow.FLOAT16: "REAL", arrow.FLOAT32: "REAL", arrow.FLOAT64: "DOUBLE",
		arrow.DATE32: "DATE", arrow.DATE64: "TIMESTAMP_MS", arrow.TIME32: "TIME", arrow.TIME64: "TIME",
		arrow.DURATION: "INTERVAL", arrow.INTERVAL_MONTHS: "INTERVAL", arrow.INTERVAL_DAY_TIME: "INTERVAL",
		arrow.INTERVAL_MONTH_DAY_NANO: "INTERVAL",
		arrow.STRING:                  "VARCHAR", arrow.LARGE_STRING: "VARCHAR", arrow.STRING_VIEW: "VARCHAR",
	},
	stamp: func(t *arrow.TimestampType) string {
		if t.TimeZone != "" {
			return "TIMESTAMPTZ"
		}
		return map[arrow.TimeUnit]string{arrow.Second: "TIMESTAMP_S", arrow.Millisecond: "TIMESTAMP_MS",
			arrow.Microsecond: "TIMESTAMP", arrow.Nanosecond: "TIMESTAMP_NS"}[t.Unit]
	},
	list: func(elem string, fixed int32) string {
		if fixed > 0 {
			return fmt.Sprintf("%s[%d]", elem, fixed)
		}
		return elem + "[]"
	},
	mapped: func(key, item string) string { return "MAP(" + key + ", " + item + ")" },
	strct:  func(f []arrow.Field, d *Dialect) string { return "STRUCT(" + d.members(f, " ") + ")" },
	union:  func(f []arrow.Field, d *Dialect) string { return "UNION(" + d.members(f, " ") + ")" },
	bytes:  "BLOB",
	uuid:   "UUID",
}

// spark is Spark SQL from 3.4 on (earlier versions had no TIMESTAMP_NTZ), for a table of Parquet files.
var spark = Dialect{
	name: func(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" },
	types: map[arrow.Type]string{
		arrow.NULL: "VOID", arrow.BOOL: "BOOLEAN",
		arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INT", arrow.INT64: "BIGINT",
		arrow.UINT8: "SMALLINT", arrow.UINT16: "INT", arrow.UINT32: "BIGINT", arrow.UINT64: "DECIMAL(20, 0)",
		arrow.FLOAT16: "FLOAT", arrow.FLOAT32: "FLOAT", arrow.FLOAT64: "DOUBLE",
		arrow.DATE32: "DATE", arrow.DATE64: "TIMESTAMP_NTZ", arrow.TIME32: "INT /* time of day */",
		arrow.TIME64:   "BIGINT /* time of day */",
		arrow.DURATION: "BIGINT /* duration */", arrow.INTERVAL_MONTHS: "INTERVAL YEAR TO MONTH",
		arrow.INTERVAL_DAY_TIME:       "INTERVAL DAY TO SECOND",
		arrow.INTERVAL_MONTH_DAY_NANO: "STRING /* interval */",
		arrow.STRING:                  "STRING", arrow.LARGE_STRING: "STRING", arrow.STRING_VIEW: "STRING",
	},
	stamp: func(t *arrow.TimestampType) string {
		if t.TimeZone != "" {
			return "TIMESTAMP"
		}
		return "TIMESTAMP_NTZ"
	},
	list:   func(elem string, _ int32) string { return "ARRAY<" + elem + ">" },
	mapped: func(key, item string) string { return "MAP<" + key + ", " + item + ">" },
	strct:  func(f []arrow.Field, d *Dialect) string { return "STRUCT<" + d.members(f, ": ") + ">" },
	union: func(f []arrow.Field, d *Dialect) string {
		return "STRUCT<" + d.members(f, ": ") + "> /* one of them */"
	},
	bytes: "BINARY",
	uuid:  "BINARY /* uuid */",
	tail:  sparkTail,
}

// iceberg is Spark SQL for an Apache Iceberg table, which has no integers of one or two bytes and no intervals.
var iceberg = func() Dialect {
	d := spark
	d.types = map[arrow.Type]string{arrow.NULL: "STRING", arrow.INT8: "INT", arrow.INT16: "INT", arrow.UINT8: "INT",
		arrow.INTERVAL_MONTHS: "INT /* months */", arrow.INTERVAL_DAY_TIME: "STRING /* interval */"}
	for t, s := range spark.types {
		if _, ok := d.types[t]; !ok {
			d.types[t] = s
		}
	}
	d.tail = icebergTail
	return d
}()

// Ddl returns the schema as CREATE TABLE, with the layout as far as the dialect can express it.
func Ddl(sc *arrow.Schema, table string, l format.Layout, d *Dialect) string {
	var lines []string
	for _, f := range sc.Fields() {
		_, computed := f.Metadata.GetValue(format.MetaComputed)
		if d.apart && (computed ||
			slices.ContainsFunc(l.Partitions, func(n string) bool { return strings.EqualFold(n, f.Name) })) {
			continue
		}
		s := "  " + d.name(f.Name) + " " + d.sqlType(f.Type)
		if !f.Nullable && !d.apart {
			s += " NOT NULL"
		}
		lines = append(lines, s+d.comment(f))
	}
	name := d.name(table)
	if d.tail == nil {
		return fmt.Sprintf("CREATE TABLE %s (\n%s\n);\n", name, strings.Join(lines, ",\n"))
	}
	if db, t, ok := strings.Cut(table, "."); ok {
		name = d.name(db) + "." + d.name(t)
	}
	return fmt.Sprintf("CREATE TABLE %s (\n%s\n)\n%s", name, strings.Join(lines, ",\n"), d.tail(name, sc, l, d))
}

// comment returns the clause with a column's comment, where the dialect has one.
func (d *Dialect) comment(f arrow.Field) string {
	s, _ := f.Metadata.GetValue(format.MetaComment)
	if s == "" || d.tail == nil {
		return ""
	}
	return " COMMENT " + sqlText(s)
}

// sparkTail returns the clauses for a table of Parquet files, which can be sorted only within buckets.
func sparkTail(_ string, sc *arrow.Schema, l format.Layout, d *Dialect) string {
	s := "USING parquet"
	parts, by, sorted := d.columns(sc, l.Partitions), d.columns(sc, l.BucketBy), d.columns(sc, l.Sorted)
	if parts != "" {
		s += "\nPARTITIONED BY (" + parts + ")"
	}
	bucketed := by != "" && l.Buckets > 0
	if bucketed {
		s += "\nCLUSTERED BY (" + by + ")"
		if sorted != "" {
			s += " SORTED BY (" + sorted + ")"
		}
		s += fmt.Sprintf(" INTO %d BUCKETS", l.Buckets)
	}
	s += ";\n"
	if sorted != "" && !bucketed {
		s += "-- rows are sorted by " + sorted + "\n"
	}
	return s
}

// icebergTail returns the clauses for Iceberg: buckets are partitions, and the order applies to writes (which needs
// Iceberg's extensions of Spark).
func icebergTail(table string, sc *arrow.Schema, l format.Layout, d *Dialect) string {
	var parts []string
	if p := d.columns(sc, l.Partitions); p != "" {
		parts = append(parts, p)
	}
	for _, c := range l.BucketBy {
		if by := d.columns(sc, []string{c}); by != "" && l.Buckets > 0 {
			parts = append(parts, fmt.Sprintf("bucket(%d, %s)", l.Buckets, by))
		}
	}
	s := "USING iceberg"
	if len(parts) > 0 {
		s += "\nPARTITIONED BY (" + strings.Join(parts, ", ") + ")"
	}
	s += ";\n"
	if sorted := d.columns(sc, l.Sorted); sorted != "" {
		s += "ALTER TABLE " + table + " WRITE ORDERED BY " + sorted + ";\n"
	}
	return s
}

// columns returns the quoted names that the schema has. A layout may name columns that are no longer in it.
func (d *Dialect) columns(sc *arrow.Schema, names []string) string {
	var out []string
	for _, n := range names {
		if i := slices.IndexFunc(sc.Fields(),
			func(f arrow.Field) bool { return strings.EqualFold(f.Name, n) }); i >= 0 {
			out = append(out, d.name(sc.Field(i).Name))
		}
	}
	return strings.Join(out, ", ")
}

// sqlType returns a type in SQL. A type without an equivalent becomes bytes.
func (d *Dialect) sqlType(t arrow.DataType) string {
	if s, ok := d.types[t.ID()]; ok {
		return s
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		return sqlDecimal(t)
	case *arrow.TimestampType:
		return d.stamp(t)
	case *arrow.DictionaryType:
		return d.sqlType(t.ValueType)
	case *arrow.RunEndEncodedType:
		return d.sqlType(t.Encoded())
	case *arrow.MapType:
		return d.mapped(d.sqlType(t.KeyType()), d.sqlType(t.ItemType()))
	case *arrow.FixedSizeListType:
		return d.list(d.sqlType(t.Elem()), t.Len())
	case arrow.ListLikeType:
		return d.list(d.sqlType(t.Elem()), 0)
	case *arrow.StructType:
		return d.strct(t.Fields(), d)
	case arrow.UnionType:
		return d.union(t.Fields(), d)
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return d.uuid
		}
		return d.sqlType(t.StorageType())
	}
	return d.bytes
}

// sqlDecimal writes a decimal that is too wide for SQL as DOUBLE, with its type in a comment.
func sqlDecimal(t arrow.DecimalType) string {
	p, s := t.GetPrecision(), t.GetScale()
	if s < 0 {
		p, s = p-s, 0
	}
	if p > 38 || s > p {
		return fmt.Sprintf("DOUBLE /* %s */", display.TypeWord(t))
	}
	return fmt.Sprintf("DECIMAL(%d, %d)", p, s)
}

func (d *Dialect) members(fields []arrow.Field, between string) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, d.name(f.Name)+between+d.sqlType(f.Type))
	}
	return strings.Join(parts, ", ")
}
