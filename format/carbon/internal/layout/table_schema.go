package layout

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stoa/internal/thrift"
)

// TableSchema is TableSchema of schema.thrift, of the table itself (there are no aggregate tables any more).
type TableSchema struct {
	Id         string
	Columns    []ColumnSchema
	History    []Evolution
	Properties map[string]string
	Buckets    int32
	BucketBy   []ColumnSchema
	Partition  *PartitionInfo
	long       []string
	aggregates int
}

// Evolution is SchemaEvolutionEntry.
type Evolution struct {
	Stamp          int64
	Added, Removed []ColumnSchema
	table          string
}

// PartitionInfo is PartitionInfo.
type PartitionInfo struct {
	Columns []ColumnSchema
	Kind    int32
}

// NativeHive is the kind of partitions that are directories NAME=VALUE.
const NativeHive = 4

func partitionText(v int32) string {
	names := [...]string{"RANGE", "RANGE_INTERVAL", "LIST", "HASH", "NATIVE_HIVE"}
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// ParseTableInfo reads TableInfo, which is the whole schema file.
func ParseTableInfo(r *thrift.Reader, name string) (t TableSchema) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			t = parseTableSchema(r, "fact_table")
		case 2:
			for range r.List("aggregate_table_list", thrift.Struct) {
				parseTableSchema(r, "")
				t.aggregates++
			}
		}
	}
	return t
}

func parseTableSchema(r *thrift.Reader, name string) (t TableSchema) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			t.Id = r.String("table_id")
		case 2:
			t.Columns = parseColumnSchemas(r, "table_columns")
		case 3:
			for r.Struct("schema_evolution"); r.Next(); {
				if r.Field() == 1 {
					for range r.List("schema_evolution_history", thrift.Struct) {
						t.History = append(t.History, parseEvolution(r, ""))
					}
				}
			}
		case 4:
			t.Properties = parsePairs(r, "tableProperties")
		case 5:
			for r.Struct("bucketingInfo"); r.Next(); {
				switch r.Field() {
				case 1:
					t.BucketBy = parseColumnSchemas(r, "table_columns")
				case 2:
					t.Buckets = r.I32("number_of_buckets")
				}
			}
		case 6:
			t.Partition = parsePartitionInfo(r, "partitionInfo")
		case 7:
			t.long = parseStrings(r, "long_string_columns")
		}
	}
	return t
}

func parseEvolution(r *thrift.Reader, name string) (e Evolution) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			e.Stamp = r.I64("time_stamp")
		case 2:
			e.Added = parseColumnSchemas(r, "added")
		case 3:
			e.Removed = parseColumnSchemas(r, "removed")
		case 4:
			e.table = r.String("tableName")
		}
	}
	return e
}

func parsePartitionInfo(r *thrift.Reader, name string) *PartitionInfo {
	p := &PartitionInfo{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			p.Columns = parseColumnSchemas(r, "partition_columns")
		case 2:
			p.Kind = r.Enum("partition_type", partitionText)
		case 3:
			for range r.List("list_info", thrift.List) {
				parseStrings(r, "")
			}
		case 4:
			parseStrings(r, "range_info")
		case 5:
			ParseI32s(r, "partition_ids")
		case 6:
			r.I32("num_partitions")
		case 7:
			r.I32("max_partition")
		}
	}
	return p
}

// Past are the columns that the table's history names.
func (s *TableSchema) Past() (out [][]ColumnSchema) {
	for _, e := range s.History {
		out = append(out, e.Added, e.Removed)
	}
	return out
}

// Facts are what `stoa meta` prints of a table's schema.
func (s *TableSchema) Facts(add func(k string, v any)) {
	add("table_id", s.Id)
	add("columns", len(s.Columns))
	for _, k := range Sorted(s.Properties) {
		add("property."+k, s.Properties[k])
	}
	if s.Buckets > 0 {
		add("buckets", fmt.Sprintf("%d by %s", s.Buckets, names(s.BucketBy)))
	}
	if s.Partition != nil {
		add("partitions", fmt.Sprintf("%s by %s", partitionText(s.Partition.Kind), names(s.Partition.Columns)))
	}
	for i, e := range s.History {
		add(fmt.Sprintf("evolution[%d]", i),
			fmt.Sprintf("%s added %s removed %s", Epoch(e.Stamp), names(e.Added), names(e.Removed)))
	}
}

func names(cols []ColumnSchema) string {
	s := ""
	for i := range cols {
		if i > 0 {
			s += ","
		}
		s += cols[i].Name
	}
	return "(" + s + ")"
}

func Epoch(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Drift is a column of which the history of a schema says something else than its list of columns.
type Drift struct {
	Past *ColumnSchema // as it was added last
	At   int           // of the column of that id; -1: there is none
	Why  string

	Default bool // it is about the column's default
}

// Drifts compares the columns with the history: what was added and not removed since is a column, of that name, type
// and default; what was removed is none that anybody sees. The columns that a table began with the history does not
// have.
func (s *TableSchema) Drifts() (out []Drift) {
	last, added := map[string]*ColumnSchema{}, map[string]bool{}
	for i := range s.History {
		e := &s.History[i]
		for k := range e.Removed {
			last[e.Removed[k].Id], added[e.Removed[k].Id] = &e.Removed[k], false
		}
		for k := range e.Added { // a column that is changed is removed and added
			last[e.Added[k].Id], added[e.Added[k].Id] = &e.Added[k], true
		}
	}
	for _, id := range Sorted(last) {
		past := last[id]
		at := slices.IndexFunc(s.Columns, func(c ColumnSchema) bool { return c.Id == id })
		if why := driftOf(past, s.Columns, at, added[id]); why != "" {
			out = append(out, Drift{past, at, why, why == otherDefault})
		}
	}
	return out
}

const otherDefault = "its default is another than when it was added"

// driftOf says what is wrong about a column of the history, which the list has at a place; "" if nothing is.
func driftOf(past *ColumnSchema, list []ColumnSchema, at int, added bool) string {
	switch {
	case !added && (at < 0 || list[at].Invisible):
		return ""
	case !added:
		return "the history says that it was dropped, and it is among the columns"
	case at < 0:
		return "the history says that it was added with the id " + past.Id + ", which is no column's"
	}
	text := func(t DataType) DataType {
		if t == TypeVarchar { // which a property of the table makes of a string
			return TypeString
		}
		return t
	}
	switch c := &list[at]; {
	case c.Invisible:
		return "the history says that it was added, and it is not to be seen"
	case c.Name != past.Name:
		return fmt.Sprintf("the column of its id is called %q", c.Name)
	case text(c.Typ) != text(past.Typ) || c.Scale != past.Scale || c.Precision != past.Precision:
		return fmt.Sprintf("it is %s, and was added as %s", c.Typ, past.Typ)
	case !bytes.Equal(c.Def, past.Def):
		return otherDefault
	}
	return ""
}
