package change

import (
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// ownProperties are those that the rest of a TableSpec says.
var ownProperties = map[string]string{"sort_columns": "SortColumns (--sort-columns)",
	"inverted_index": "Inverted (--inverted-index)", "long_string_columns": "LongStrings (--long-strings)",
	"bucket_number": "Buckets (--bucket)", "bucket_columns": "BucketBy (--bucket)",
	"bucketnumber": "Buckets (--bucket)", "bucketcolumns": "BucketBy (--bucket)"}

// propertyValues are the values that loads here understand; of a number the smallest and the largest.
var propertyValues = map[string]struct {
	words    []string
	from, to int64
}{
	"sort_scope":               {words: []string{"local_sort", "no_sort"}},
	"carbon.column.compressor": {words: []string{"snappy", "zstd", "gzip"}},
	"local_dictionary_enable":  {words: []string{"true", "false"}}, "streaming": {words: []string{"false"}},
	"flat_folder":     {words: []string{"false"}},
	"table_blocksize": {from: 1, to: 2048}, "table_blocklet_size": {from: 1, to: 2048},
	"table_page_size_inmb": {from: 1, to: 1755}, "local_dictionary_threshold": {from: 1, to: 100_000},
}

// checkProperties refuses properties that would say what the table is not.
func checkProperties(props map[string]string) error {
	for _, k := range layout.Sorted(props) {
		low, v := strings.ToLower(k), props[k]
		if say := ownProperties[low]; say != "" {
			return fault.Invalidf("carbon: property %s: it is said by %s", k, say)
		}
		want, known := propertyValues[low]
		switch {
		case !known:
		case low != k:
			return fault.Invalidf("carbon: property %s is written %s", k, low)
		case want.words != nil:
			if !slices.Contains(want.words, strings.ToLower(v)) {
				return fault.Invalidf("carbon: property %s=%s: one of %s is wanted", k, v,
					strings.Join(want.words, ", "))
			}
		default:
			if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < want.from || n > want.to {
				return fault.Invalidf("carbon: property %s=%s: a number from %d to %d is wanted", k, v, want.from,
					want.to)
			}
		}
	}
	return nil
}
