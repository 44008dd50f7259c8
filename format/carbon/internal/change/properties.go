package change

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// ownProperties are the properties that other fields of a TableSpec set.
var ownProperties = map[string]string{"sort_columns": "SortColumns", "inverted_index": "Inverted",
	"long_string_columns": "LongStrings", "bucket_number": "Buckets", "bucket_columns": "BucketBy",
	"bucketnumber": "Buckets", "bucketcolumns": "BucketBy"}

// propertyValues has the supported values of the properties that loads use: words, or min and max of a number.
var propertyValues = map[string]struct {
	words    []string
	from, to int64
}{
	"sort_scope":               {words: []string{"local_sort", "no_sort", globalSort}},
	"carbon.column.compressor": {words: []string{"snappy", "zstd", "gzip"}},
	"local_dictionary_enable":  {words: []string{"true", "false"}}, "streaming": {words: []string{"true", "false"}},
	"flat_folder":     {words: []string{"false"}},
	"table_blocksize": {from: 1, to: 2048}, "table_blocklet_size": {from: 1, to: 2048},
	"table_page_size_inmb": {from: 1, to: 1755}, "local_dictionary_threshold": {from: 1, to: 100_000},
}

// globalSort is the sort_scope of tables in which all rows of a load are sorted together.
const globalSort = "global_sort"

// checkProperties returns Invalid if a property belongs to another field, is misspelled, or has a value that loads do
// not support. Unknown properties are accepted.
func checkProperties(props map[string]string) error {
	for _, k := range layout.SortedKeys(props) {
		low, v := strings.ToLower(k), props[k]
		if field := ownProperties[low]; field != "" {
			return fault.Invalidf("carbon: property %s: set TableSpec.%s instead", k, field)
		}
		for i := range policyProperties {
			if x := &policyProperties[i]; x.own == low {
				if _, err := x.numbers(k, v); err != nil {
					return err
				}
			}
		}
		want, known := propertyValues[low]
		switch {
		case !known:
		case low != k:
			return fault.Invalidf("carbon: property %s: expected the spelling %s", k, low)
		case want.words != nil:
			if !slices.Contains(want.words, strings.ToLower(v)) {
				return fault.Invalidf("carbon: property %s: expected one of %s, found %q", k,
					strings.Join(want.words, ", "), v)
			}
		default:
			if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < want.from || n > want.to {
				return fault.Invalidf("carbon: property %s: expected a number from %d to %d, found %q", k, want.from,
					want.to, v)
			}
		}
	}
	return nil
}

// checkGlobalSort returns Invalid if a table is to be sorted as a whole, by no columns.
func checkGlobalSort(t *layout.TableSchema) error {
	sorts := func(c layout.ColumnSchema) bool { return c.SortColumn() && !c.Invisible }
	if strings.EqualFold(t.Properties["sort_scope"], globalSort) && !slices.ContainsFunc(t.Columns, sorts) {
		return fault.Invalidf("carbon: property sort_scope: a table without sort columns cannot have %s", globalSort)
	}
	return nil
}

// namingProperties are the properties whose values are names of columns.
var namingProperties = []string{"sort_columns", "long_string_columns", "local_dictionary_include",
	"local_dictionary_exclude", "dictionary_include", "dictionary_exclude", "no_inverted_index", "inverted_index",
	"column_meta_cache", "range_column"}

// checkColumnNames returns Invalid if a property names a column that the table does not have.
func checkColumnNames(t *layout.TableSchema, given map[string]string) error {
	for _, k := range layout.SortedKeys(given) {
		if !slices.Contains(namingProperties, strings.ToLower(k)) {
			continue
		}
		for name := range strings.SplitSeq(given[k], ",") {
			if name = strings.TrimSpace(name); name != "" && t.FindColumn(name) == nil {
				return fault.Invalidf("carbon: property %s: there is no column %q", k, name)
			}
		}
	}
	return nil
}

// rangeColumn is the property with the column by which the rows of a load are divided among its data files.
const rangeColumn = "range_column"

// checkRange returns Invalid if the range column is not one of the columns, or of a type by which loads do not divide.
func (s *TableSpec) checkRange(list []layout.ColumnSchema) error {
	want := s.Properties[rangeColumn]
	if want == "" {
		return nil
	}
	for _, c := range list {
		if !strings.EqualFold(c.Name, want) {
			continue
		}
		if k := c.Type; k.Complex() || k == layout.TypeDecimal || k == layout.TypeBinary || k == layout.TypeBoolean {
			return fault.Invalidf("carbon: property %s: expected a column of whole numbers, floating-point numbers, "+
				"texts, dates or times, found %s", rangeColumn, strconv.Quote(want))
		}
		return nil
	}
	return fault.Invalidf("carbon: property %s: there is no column %q", rangeColumn, want)
}

// policy says which segments are compacted. The zero value of each field but levels permits all.
type policy struct {
	levels   []int // so many loads, and so many results of that
	preserve int   // the newest segments, which are left as they are
	days     int   // only loads of so many days go together
	size     int64 // bytes of data that a major compaction makes at most
}

// policyProperty is a property of which a policy consists: its name in a file of settings, and as that of a table.
type policyProperty struct {
	file, own string
	from, to  int
	set       func(p *policy, n []int)
}

var policyProperties = []policyProperty{
	{"carbon.compaction.level.threshold", "compaction_level_threshold", 0, 100,
		func(p *policy, n []int) { p.levels = n }},
	{"carbon.numberof.preserve.segments", "compaction_preserve_segments", 0, 100,
		func(p *policy, n []int) { p.preserve = n[0] }},
	{"carbon.allowed.compaction.days", "allowed_compaction_days", 0, 100,
		func(p *policy, n []int) { p.days = n[0] }},
	{"carbon.major.compaction.size", "major_compaction_size", 0, math.MaxInt32,
		func(p *policy, n []int) { p.size = int64(n[0]) << 20 }},
}

// numbers parses a value of the property, which is called key.
func (x *policyProperty) numbers(key, v string) (list []int, err error) {
	for s := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < x.from || n > x.to {
			return nil, fault.Invalidf("carbon: property %s: expected a number from %d to %d, found %q", key, x.from,
				x.to, v)
		}
		list = append(list, n)
	}
	return list, nil
}
