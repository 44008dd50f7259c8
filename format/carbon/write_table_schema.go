package carbon

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/thrift"
)

// TableSpec says what a new table is.
type TableSpec struct {
	Schema      *arrow.Schema
	SortColumns []string
	Inverted    []string // sort columns with an inverted index
	LongStrings []string // strings that are varchar
	Partition   []string // Hive-style partition columns; they are the last ones
	BucketBy    []string
	Buckets     int
	Properties  map[string]string
}

// tableSchema makes the schema of a new table at a time (milliseconds).
func (s *TableSpec) tableSchema(stamp int64) (*tableSchema, error) {
	if err := checkProperties(s.Properties); err != nil {
		return nil, err
	}
	o := defaultWriteOptions()
	o.sortColumns, o.inverted, o.longStrings, o.keyed = s.SortColumns, s.Inverted, s.LongStrings, propertyNames(s.Properties["dictionary_include"])
	list, err := planColumns(s.partitionsLast(), &o)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].id = newUUID()
		if list[i].encoders.has(encDirectDictionary) { // as Spark has them
			list[i].encoders[0], list[i].encoders[1] = encDictionary, encDirectDictionary
		}
	}
	t := &tableSchema{id: newUUID(), columns: list, history: []evolution{{stamp: stamp}}, properties: map[string]string{
		"sort_columns": strings.Join(s.SortColumns, ","), "comment": "", "bad_record_path": "", "local_dictionary_enable": "true", "indexexists": "false", "indextableexists": "false"}}
	if len(s.SortColumns) > 0 && s.Buckets == 0 { // with buckets the real one refuses tables that say it: each bucket is sorted by itself
		t.properties["sort_scope"] = "local_sort"
	}
	if len(s.LongStrings) > 0 {
		t.properties["long_string_columns"] = strings.Join(s.LongStrings, ",")
	}
	maps.Copy(t.properties, s.Properties)
	if err := s.buckets(t); err != nil {
		return nil, err
	}
	return t, s.partition(t)
}

// partitionsLast are the fields with the partition columns at the end, as CarbonData has them: its loads fail otherwise.
func (s *TableSpec) partitionsLast() *arrow.Schema {
	sc := lowered(s.Schema)
	var fields, last []arrow.Field
	for i, n := range s.Partition {
		if slices.Contains(s.Partition[:i], n) {
			continue // refused later
		}
		if at := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, n) }); at >= 0 {
			last = append(last, sc.Field(at))
		}
	}
	for _, f := range sc.Fields() {
		if !slices.ContainsFunc(last, func(x arrow.Field) bool { return x.Name == f.Name }) {
			fields = append(fields, f)
		}
	}
	return arrow.NewSchema(append(fields, last...), nil)
}

// lowered has the names in lower case, as the systems that have tables want them.
func lowered(sc *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		fields[i].Name = strings.ToLower(fields[i].Name)
	}
	return arrow.NewSchema(fields, nil)
}

func (s *TableSpec) buckets(t *tableSchema) error {
	if s.Buckets == 0 {
		return nil
	}
	if t.properties["sort_scope"] != "" {
		return fault.Invalidf("carbon: a table with buckets has no sort_scope: each bucket is sorted by itself")
	}
	if s.Buckets < 0 || len(s.BucketBy) == 0 {
		return fault.Invalidf("carbon: buckets want a number above 0 and at least one column")
	}
	for _, n := range s.BucketBy {
		c := t.top(n)
		if c == nil || c.typ.complex() || c.typ == typeBinary || c.keyed() {
			return fault.Invalidf("carbon: %q cannot be a bucket column", n)
		}
		t.bucketBy = append(t.bucketBy, *c)
	}
	t.buckets = int32(s.Buckets)
	t.properties["bucket_columns"] = strings.Join(s.BucketBy, ",")
	t.properties["bucket_number"] = strconv.Itoa(s.Buckets)
	return nil
}

func (s *TableSpec) partition(t *tableSchema) error {
	if len(s.Partition) == 0 {
		return nil
	}
	if len(s.Partition) >= s.Schema.NumFields() {
		return fault.Invalidf("carbon: not all columns can be partition columns: the data files would have none")
	}
	t.partition = &partitionInfo{kind: nativeHive}
	for i, n := range s.Partition {
		if slices.Contains(s.Partition[:i], n) {
			return fault.Invalidf("carbon: %q is a partition column twice", n)
		}
		c := t.top(n)
		if c == nil || c.typ.complex() || c.typ == typeBinary || c.sortColumnSchema() || c.keyed() {
			return fault.Invalidf("carbon: %q cannot be a partition column", n)
		}
		t.partition.columns = append(t.partition.columns, *c)
	}
	return nil
}

// top is the visible column of the table with a name; nil if there is none.
func (t *tableSchema) top(name string) *columnSchema {
	for i := range t.columns {
		if c := &t.columns[i]; strings.EqualFold(c.name, name) && !c.invisible && c.ordinal >= 0 {
			return c
		}
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// put writes TableInfo, the whole schema file.
func (t *tableSchema) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Struct(1)
	w.String(1, t.id)
	putSchemas(w, 2, t.columns, false)
	w.Struct(3)
	w.List(1, thrift.Struct, len(t.history))
	for i := range t.history {
		t.history[i].put(w)
	}
	w.End()
	putPairs(w, 4, t.properties)
	if t.buckets > 0 {
		w.Struct(5)
		putSchemas(w, 1, t.bucketBy, false)
		w.I32(2, t.buckets)
		w.End()
	}
	if t.partition != nil {
		w.Struct(6)
		putSchemas(w, 1, t.partition.columns, false)
		w.I32(2, t.partition.kind)
		w.End()
	}
	if t.long != nil {
		w.List(7, thrift.Bytes, len(t.long))
		for _, n := range t.long {
			w.String(thrift.Item, n)
		}
	}
	w.End()
	w.List(2, thrift.Struct, 0)
	w.End()
}

func (e *evolution) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, e.stamp)
	putSchemas(w, 2, e.added, false)
	putSchemas(w, 3, e.removed, false)
	w.End()
}

// stored are the columns that data files have: those that are visible, simple dimensions first, then nested ones, then measures.
func (t *tableSchema) stored() (out []columnSchema) {
	var simple, nested, measures []columnSchema
	for i := 0; i < len(t.columns); {
		end := i + 1
		for left := t.columns[i].children; left > 0; left-- {
			left += t.columns[end].children
			end++
		}
		c := t.columns[i]
		switch {
		case c.invisible:
		case c.typ.complex():
			nested = append(nested, t.columns[i:end]...)
		case c.dimension:
			simple = append(simple, c)
		default:
			measures = append(measures, c)
		}
		i = end
	}
	return slices.Concat(simple, nested, measures)
}

// options are those of the table's properties, for writing.
func (t *tableSchema) options(opts map[string]string) (writeOptions, error) {
	o, err := parseWriteOptions(opts)
	if err != nil {
		return o, err
	}
	number := func(name string, set func(n int64)) {
		if n, e := strconv.ParseInt(t.properties[name], 10, 64); e == nil && n > 0 {
			set(n)
		}
	}
	number("table_blocksize", func(n int64) { o.block = n << 20 })
	number("table_blocklet_size", func(n int64) { o.blocklet = n << 20 })
	number("table_page_size_inmb", func(n int64) { o.pageSize = int(n) << 20 })
	number("local_dictionary_threshold", func(n int64) { o.threshold = int(n) })
	if strings.EqualFold(t.properties["local_dictionary_enable"], "false") {
		o.dictionary = false
	}
	o.coded, o.uncoded = propertyNames(t.properties["local_dictionary_include"]), propertyNames(t.properties["local_dictionary_exclude"])
	if c := t.properties["carbon.column.compressor"]; c != "" && opts["compression"] == "" {
		if err := o.set("compression", c); err != nil {
			return o, err
		}
	}
	if o.sortColumns = nil; o.version < 3 {
		o.whole()
		o.sortColumns = t.oldSortColumns()
		return o, nil
	}
	if s := strings.ToLower(t.properties["sort_scope"]); s != "no_sort" {
		for i := range t.columns {
			if c := &t.columns[i]; c.sortColumnSchema() && !c.invisible {
				o.sortColumns = append(o.sortColumns, c.name)
			}
		}
	}
	return o, nil
}

// propertyNames are the names in a property, which may end with a comma.
func propertyNames(v string) []string {
	names := strings.Split(v, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
