package carbon

import (
	"fmt"
	"strconv"

	"stoa/internal/thrift"
)

// tableSchema is TableSchema of schema.thrift, of the table itself (there are no aggregate tables any more).
type tableSchema struct {
	id         string
	columns    []columnSchema
	history    []evolution
	properties map[string]string
	buckets    int32
	bucketBy   []columnSchema
	partition  *partitionInfo
	long       []string
	aggregates int
}

// evolution is SchemaEvolutionEntry.
type evolution struct {
	stamp          int64
	added, removed []columnSchema
	table          string
}

// partitionInfo is PartitionInfo.
type partitionInfo struct {
	columns []columnSchema
	kind    int32
}

// nativeHive is the kind of partitions that are directories NAME=VALUE.
const nativeHive = 4

func partitionText(v int32) string {
	names := [...]string{"RANGE", "RANGE_INTERVAL", "LIST", "HASH", "NATIVE_HIVE"}
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// parseTableInfo reads TableInfo, which is the whole schema file.
func parseTableInfo(r *thrift.Reader, name string) (t tableSchema) {
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

func parseTableSchema(r *thrift.Reader, name string) (t tableSchema) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			t.id = r.String("table_id")
		case 2:
			t.columns = parseColumnSchemas(r, "table_columns")
		case 3:
			for r.Struct("schema_evolution"); r.Next(); {
				if r.Field() == 1 {
					for range r.List("schema_evolution_history", thrift.Struct) {
						t.history = append(t.history, parseEvolution(r, ""))
					}
				}
			}
		case 4:
			t.properties = parsePairs(r, "tableProperties")
		case 5:
			for r.Struct("bucketingInfo"); r.Next(); {
				switch r.Field() {
				case 1:
					t.bucketBy = parseColumnSchemas(r, "table_columns")
				case 2:
					t.buckets = r.I32("number_of_buckets")
				}
			}
		case 6:
			t.partition = parsePartitionInfo(r, "partitionInfo")
		case 7:
			t.long = parseStrings(r, "long_string_columns")
		}
	}
	return t
}

func parseEvolution(r *thrift.Reader, name string) (e evolution) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			e.stamp = r.I64("time_stamp")
		case 2:
			e.added = parseColumnSchemas(r, "added")
		case 3:
			e.removed = parseColumnSchemas(r, "removed")
		case 4:
			e.table = r.String("tableName")
		}
	}
	return e
}

func parsePartitionInfo(r *thrift.Reader, name string) *partitionInfo {
	p := &partitionInfo{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			p.columns = parseColumnSchemas(r, "partition_columns")
		case 2:
			p.kind = r.Enum("partition_type", partitionText)
		case 3:
			for range r.List("list_info", thrift.List) {
				parseStrings(r, "")
			}
		case 4:
			parseStrings(r, "range_info")
		case 5:
			parseI32s(r, "partition_ids")
		case 6:
			r.I32("num_partitions")
		case 7:
			r.I32("max_partition")
		}
	}
	return p
}

// past are the columns that the table's history names.
func (s *tableSchema) past() (out [][]columnSchema) {
	for _, e := range s.history {
		out = append(out, e.added, e.removed)
	}
	return out
}

// facts are what `stoa meta` prints of a table's schema.
func (s *tableSchema) facts(add func(k string, v any)) {
	add("table_id", s.id)
	add("columns", len(s.columns))
	for _, k := range sorted(s.properties) {
		add("property."+k, s.properties[k])
	}
	if s.buckets > 0 {
		add("buckets", fmt.Sprintf("%d by %s", s.buckets, names(s.bucketBy)))
	}
	if s.partition != nil {
		add("partitions", fmt.Sprintf("%s by %s", partitionText(s.partition.kind), names(s.partition.columns)))
	}
	for i, e := range s.history {
		add(fmt.Sprintf("evolution[%d]", i), fmt.Sprintf("%s added %s removed %s", epoch(e.stamp), names(e.added), names(e.removed)))
	}
}

func names(cols []columnSchema) string {
	s := ""
	for i := range cols {
		if i > 0 {
			s += ","
		}
		s += cols[i].name
	}
	return "(" + s + ")"
}
