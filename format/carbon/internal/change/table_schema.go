package change

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// TableSpec describes a new table.
type TableSpec struct {
	Schema      *arrow.Schema
	SortColumns []string
	Inverted    []string // sort columns with an inverted index
	LongStrings []string // strings of type varchar
	Partition   []string // Hive-style partition columns; they become the last ones
	BucketBy    []string
	Buckets     int
	Properties  map[string]string
}

// tableSchema returns the schema of a new table; stamp is the time of its creation in milliseconds since 1970. Errors
// are Invalid or Unsupported.
func (s *TableSpec) tableSchema(stamp int64) (*layout.TableSchema, error) {
	if err := checkProperties(s.Properties); err != nil {
		return nil, err
	}
	o := schema.DefaultWriteOptions()
	o.SortColumns, o.Inverted, o.LongStrings, o.GlobalDictionaries = s.SortColumns, s.Inverted, s.LongStrings,
		propertyNames(s.Properties["dictionary_include"])
	list, err := schema.PlanColumns(s.partitionsLast(), &o)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].ID = newUUID()
		if list[i].Encoders.Has(layout.EncDirectDictionary) { // in the order that Spark uses in tables it creates
			list[i].Encoders[0], list[i].Encoders[1] = layout.EncDictionary, layout.EncDirectDictionary
		}
	}
	t := &layout.TableSchema{ID: newUUID(), Columns: list, History: []layout.Evolution{{Stamp: stamp}},
		Properties: map[string]string{
			"sort_columns": strings.Join(s.SortColumns, ","), "comment": "", "bad_record_path": "",
			"local_dictionary_enable": "true", "indexexists": "false", "indextableexists": "false"}}
	// each bucket is sorted by itself, and CarbonData refuses the property
	if len(s.SortColumns) > 0 && s.Buckets == 0 {
		t.Properties["sort_scope"] = "local_sort"
	}
	if len(s.Inverted) > 0 {
		t.Properties["inverted_index"] = strings.Join(s.Inverted, ",")
	}
	if len(s.LongStrings) > 0 {
		t.Properties["long_string_columns"] = strings.Join(s.LongStrings, ",")
	}
	maps.Copy(t.Properties, s.Properties)
	if err := checkGlobalSort(t); err != nil {
		return nil, err
	}
	if err := errors.Join(s.checkRange(list), checkColumnNames(t, s.Properties), s.buckets(t)); err != nil {
		return nil, err
	}
	return t, s.partition(t)
}

// partitionsLast returns the schema with the partition columns at the end; CarbonData's loads fail with any other
// order.
func (s *TableSpec) partitionsLast() *arrow.Schema {
	sc := lowered(s.Schema)
	var fields, last []arrow.Field
	for i, n := range s.Partition {
		if slices.Contains(s.Partition[:i], n) {
			continue // reported by partition
		}
		if at := slices.IndexFunc(sc.Fields(),
			func(f arrow.Field) bool { return strings.EqualFold(f.Name, n) }); at >= 0 {
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

// lowered returns a schema with its names in lower case, as in Spark and Hive.
func lowered(sc *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		fields[i].Name = strings.ToLower(fields[i].Name)
	}
	return arrow.NewSchema(fields, nil)
}

func (s *TableSpec) buckets(t *layout.TableSchema) error {
	if s.Buckets == 0 {
		return nil
	}
	if t.Properties["sort_scope"] != "" {
		return fault.Invalidf("carbon: a table with buckets cannot have the property sort_scope")
	}
	if s.Buckets < 0 || len(s.BucketBy) == 0 {
		return fault.Invalidf("carbon: buckets: expected a number above 0 and at least one column")
	}
	for _, n := range s.BucketBy {
		c := t.FindColumn(n)
		if c == nil || c.Type.Complex() || c.Type == layout.TypeBinary || c.HasGlobalDictionary() {
			return fault.Invalidf("carbon: %q cannot be a bucket column", n)
		}
		t.BucketBy = append(t.BucketBy, *c)
	}
	t.Buckets = int32(s.Buckets)
	t.Properties["bucket_columns"] = strings.Join(s.BucketBy, ",")
	t.Properties["bucket_number"] = strconv.Itoa(s.Buckets)
	return nil
}

func (s *TableSpec) partition(t *layout.TableSchema) error {
	if len(s.Partition) == 0 {
		return nil
	}
	if len(s.Partition) >= s.Schema.NumFields() {
		return fault.Invalidf("carbon: not all columns can be partition columns: the data files would have none")
	}
	t.Partition = &layout.PartitionInfo{Kind: layout.NativeHive}
	for i, n := range s.Partition {
		if slices.Contains(s.Partition[:i], n) {
			return fault.Invalidf("carbon: partition column %q is named twice", n)
		}
		c := t.FindColumn(n)
		if c == nil || c.Type.Complex() || c.Type == layout.TypeBinary || c.SortColumn() || c.HasGlobalDictionary() {
			return fault.Invalidf("carbon: %q cannot be a partition column", n)
		}
		t.Partition.Columns = append(t.Partition.Columns, *c)
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// OptionsOf parses opts for loads into a table, with defaults from the table's properties. Errors are Invalid.
func OptionsOf(t *layout.TableSchema, opts map[string]string) (schema.WriteOptions, error) {
	o, err := parseWriteOptions(opts)
	if err != nil {
		return o, err
	}
	number := func(name string, set func(n int64)) {
		if n, e := strconv.ParseInt(t.Properties[name], 10, 64); e == nil && n > 0 {
			set(n)
		}
	}
	number("table_blocksize", func(n int64) { o.Block = n << 20 })
	number("table_blocklet_size", func(n int64) { o.Blocklet = n << 20 })
	number("table_page_size_inmb", func(n int64) { o.PageSize = int(n) << 20 })
	number("local_dictionary_threshold", func(n int64) { o.Threshold = int(n) })
	if strings.EqualFold(t.Properties["local_dictionary_enable"], "false") {
		o.Dictionary = false
	}
	o.LocalDictionaries, o.NoLocalDictionaries = propertyNames(t.Properties["local_dictionary_include"]),
		propertyNames(t.Properties["local_dictionary_exclude"])
	if c := t.Properties["carbon.column.compressor"]; c != "" && opts["compression"] == "" {
		p, err := WriteTable.Parse(map[string]string{"compression": c})
		if err != nil {
			return o, err
		}
		o.Codec = string(p.Compression)
	}
	if o.SortColumns = nil; o.Version < 3 {
		o.RestrictToV12()
		o.SortColumns = t.V12SortColumns()
		return o, nil
	}
	if s := strings.ToLower(t.Properties["sort_scope"]); s != "no_sort" {
		for i := range t.Columns {
			if c := &t.Columns[i]; c.SortColumn() && !c.Invisible {
				o.SortColumns = append(o.SortColumns, c.Name)
			}
		}
	}
	return o, nil
}

// propertyNames splits a property at commas into names; empty names are skipped.
func propertyNames(v string) []string {
	names := strings.Split(v, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
