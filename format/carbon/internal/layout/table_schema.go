package layout

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/format"
	"stoa/internal/thrift"
)

// TableSchema is TableSchema of schema.thrift for the table itself; aggregate tables are skipped.
type TableSchema struct {
	ID         string
	Columns    []ColumnSchema
	History    []Evolution
	Properties map[string]string
	Buckets    int32
	BucketBy   []ColumnSchema
	Partition  *PartitionInfo
	long       []string // long_string_columns, kept so that it can be written back
}

// Evolution is SchemaEvolutionEntry.
type Evolution struct {
	Stamp          int64 // milliseconds since 1970
	Added, Removed []ColumnSchema
}

// PartitionInfo is PartitionInfo.
type PartitionInfo struct {
	Columns []ColumnSchema
	Kind    int32
}

// NativeHive is the kind of partitions whose directories are called NAME=VALUE.
const NativeHive = 4

func partitionText(v int32) string {
	names := [...]string{"RANGE", "RANGE_INTERVAL", "LIST", "HASH", "NATIVE_HIVE"}
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// ParseTableInfo reads TableInfo, which is the whole schema file. Errors are those of r.
func ParseTableInfo(r *thrift.Reader, name string) (t TableSchema) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			t = parseTableSchema(r, "fact_table")
		case 2:
			for range r.List("aggregate_table_list", thrift.Struct) {
				parseTableSchema(r, "")
			}
		}
	}
	return t
}

func parseTableSchema(r *thrift.Reader, name string) (t TableSchema) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			t.ID = r.String("table_id")
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
			r.String("tableName")
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

// HistoryColumns returns the lists of columns in the table's history: for each entry, the added and the removed
// columns.
func (s *TableSchema) HistoryColumns() (out [][]ColumnSchema) {
	for _, e := range s.History {
		out = append(out, e.Added, e.Removed)
	}
	return out
}

// Facts adds the facts that `stoa meta` prints about a table's schema.
func (s *TableSchema) Facts(add func(k string, v any)) {
	add("table_id", s.ID)
	add("columns", len(s.Columns))
	for _, k := range SortedKeys(s.Properties) {
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
			fmt.Sprintf("%s added %s removed %s", FormatTime(e.Stamp), names(e.Added), names(e.Removed)))
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

// FormatTime formats milliseconds since 1970 as RFC 3339 in UTC.
func FormatTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Drift is a contradiction between the list of columns of a schema and its history.
type Drift struct {
	Past *ColumnSchema // the column in the last entry of the history that has it
	At   int           // index in the list of the column with the same id; -1: missing
	Why  string

	Default bool // only the column's default differs
}

// Drifts compares the columns with the history: a column that was added and not removed afterwards must be in the list
// with that name, type and default; a removed column must be invisible or absent from the list. The history does not
// have the columns that the table was created with.
func (s *TableSchema) Drifts() (out []Drift) {
	last, added := map[string]*ColumnSchema{}, map[string]bool{}
	for i := range s.History {
		e := &s.History[i]
		for k := range e.Removed {
			last[e.Removed[k].ID], added[e.Removed[k].ID] = &e.Removed[k], false
		}
		for k := range e.Added { // after the removed ones, because a changed column is in both
			last[e.Added[k].ID], added[e.Added[k].ID] = &e.Added[k], true
		}
	}
	for _, id := range SortedKeys(last) {
		past := last[id]
		at := slices.IndexFunc(s.Columns, func(c ColumnSchema) bool { return c.ID == id })
		why := driftOf(past, s.Columns, at, added[id])
		if why == hidden && s.partOfDropped(past.Name, added) {
			continue
		}
		if why != "" {
			out = append(out, Drift{past, at, why, why == otherDefault})
		}
	}
	return out
}

// partOfDropped reports whether a name is that of a part of a nested column that was dropped: of its drop the history
// names only the whole, but of its renaming the parts, too.
func (s *TableSchema) partOfDropped(name string, added map[string]bool) bool {
	for i := strings.LastIndexByte(name, '.'); i > 0; i = strings.LastIndexByte(name[:i], '.') {
		for k := range s.Columns {
			c := &s.Columns[k]
			if there, known := added[c.ID]; c.Name == name[:i] && c.Invisible && known && !there {
				return true
			}
		}
	}
	return false
}

const hidden = "the history says that it was added, but it is invisible"

const otherDefault = "its default differs from the one that it was added with"

// driftOf compares past, a column as it was last added or removed, with element at of list; at is -1 if there is no
// such element. It returns the contradiction, or "".
func driftOf(past *ColumnSchema, list []ColumnSchema, at int, added bool) string {
	switch {
	case !added && (at < 0 || list[at].Invisible):
		return ""
	case !added:
		return "the history says that it was dropped, but it is among the columns"
	case at < 0:
		return "the history says that it was added with the id " + past.ID + ", which no column has"
	}
	text := func(t DataType) DataType {
		if t == TypeVarchar { // a table property makes a string a varchar
			return TypeString
		}
		return t
	}
	switch c := &list[at]; {
	case c.Invisible:
		return hidden
	case c.Name != past.Name:
		return fmt.Sprintf("the column of its id is called %q", c.Name)
	case text(c.Type) != text(past.Type) || c.Scale != past.Scale || c.Precision != past.Precision:
		return fmt.Sprintf("it is %s, but was added as %s", c.Type, past.Type)
	case !bytes.Equal(c.Default, past.Default):
		return otherDefault
	}
	return ""
}

// ViewsProperty has the materialised views of a table: their names by database, as JSON.
const ViewsProperty = "relatedmvtablesmap"

// IsIndexTable reports whether the table is a secondary index of another one. Its only mark is a column: those that
// users name have no capitals.
func (t *TableSchema) IsIndexTable() bool {
	return slices.ContainsFunc(t.Columns, func(c ColumnSchema) bool { return c.Name == "positionReference" })
}

// IndexTablesProperty says whether a table has secondary index tables.
const IndexTablesProperty = "indextableexists"

// Dependents returns the names of everything that CarbonData derives from the rows of a table and updates with every
// change, such as views. The table's properties record that they exist; only Hive's metastore records where they are,
// and whether they are used.
func (t *TableSchema) Dependents() (out []string) {
	for name, value := range t.Properties {
		what := ""
		switch key := strings.ToLower(name); {
		case value == "" || value == "{}" || strings.EqualFold(value, "false"):
		case key == IndexTablesProperty:
			what = format.IndexTables
		case key == "indexexists":
			what = "bloom or Lucene indexes"
		case key == ViewsProperty:
			what = "materialised views " + value
		case key == spatialIndex, key == "index_handler": // its name before release 2.0
			what = "the spatial index " + value
		case key == "parentmaintablename":
			what = "its main table " + value
		}
		if what != "" {
			out = append(out, what)
		}
	}
	if t.IsIndexTable() {
		out = append(out, "a main table, of which it is a secondary index")
	}
	slices.Sort(out)
	return out
}
