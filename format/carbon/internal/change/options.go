package change

import (
	"cmp"
	"math"

	"stoa/fault"
	"stoa/format/carbon/internal/schema"
	"stoa/format/option"
)

// Values of options.
type (
	Compress   string
	Timestamps string
	Nulls      string
	Measures   string
	Layout     string
)

// Options are the options of Create; package carbon documents them.
type Options struct {
	Compression              Compress
	SortColumns              []string
	InvertedIndex            []string
	LongStrings              []string
	LocalDictionary          *bool
	LocalDictionaryThreshold int
	PageRows                 int
	PageSize                 int
	BlockletSize             int64
	BlockSize                int64
	Memory                   int64
	Timestamps               Timestamps
	Nulls                    Nulls
	Version                  int
	BlockletRows             int
	Measures                 Measures
	Layout                   Layout
	WrittenBy                string
}

// The bounds of carbon.blocklet.size, and its default.
const (
	minBlockletRows = 2000
	maxBlockletRows = 12_000_000
	v12BlockletRows = 120_000
)

// WriteTable are the options of Create.
var WriteTable = option.Table[Options]{Format: "carbon", For: "writing", Options: []option.Option[Options]{
	option.Pick("compression", "of all pages (default snappy)", func(o *Options) *Compress { return &o.Compression },
		"snappy", "zstd", "gzip"),
	option.List("sort-columns", "NAME,NAME,…", "sort the rows by these columns, which then are dimensions",
		func(o *Options) *[]string { return &o.SortColumns }),
	option.List("inverted-index", "NAME,NAME,…", "sort columns whose pages each are sorted, with row ids",
		func(o *Options) *[]string { return &o.InvertedIndex }),
	option.List("long-strings", "NAME,NAME,…", "strings that may have more than 32,765 bytes: type varchar",
		func(o *Options) *[]string { return &o.LongStrings }),
	option.Tri("local-dictionary", "write strings as codes of a dictionary while there are few (default true)",
		func(o *Options) **bool { return &o.LocalDictionary }),
	option.Int("local-dictionary-threshold", "1…100000", "the most strings in a local dictionary (default 10000)",
		func(o *Options) *int { return &o.LocalDictionaryThreshold }, 1, 100_000),
	option.Int("page-rows", "1…32000", "rows of a page (default 32000)",
		func(o *Options) *int { return &o.PageRows }, 1, 32_000),
	option.Int("page-size", "1…1755", "MiB of raw values after which a page ends (default 64)",
		func(o *Options) *int { return &o.PageSize }, 1, 1755),
	option.Int("blocklet-size", "1…", "MiB of encoded pages after which a blocklet ends (default 64)",
		func(o *Options) *int64 { return &o.BlockletSize }, 1, 1<<20),
	option.Int("block-size", "1…2048", "MiB after which, in a directory, a new data file begins (default 1024)",
		func(o *Options) *int64 { return &o.BlockSize }, 1, 2048),
	option.Size("memory",
		"size of the rows that are sorted in memory; more are sorted in runs and merged (default 256MiB)",
		func(o *Options) *int64 { return &o.Memory }, 1, math.MaxInt64>>1),
	option.Pick("timestamps", "fractions of a millisecond: refuse or drop them (default exact)",
		func(o *Options) *Timestamps { return &o.Timestamps }, "exact", "truncate"),
	option.Pick("nulls", "values that CarbonData reads as null, such as a list of one null: refuse or write them "+
		"(default exact)", func(o *Options) *Nulls { return &o.Nulls }, "exact", "merge"),
	option.Int("version", "3, 2, 1", "format of the data files; 2 and 1 are those of CarbonData up to 1.0 (default 3; "+
		"in a table that of its last segment)", func(o *Options) *int { return &o.Version }, 1, 3),
	option.Int("blocklet-rows", "2000…12000000", "formats 1 and 2: rows of a blocklet, carbon.blocklet.size (default "+
		"120000)", func(o *Options) *int { return &o.BlockletRows }, minBlockletRows, maxBlockletRows),
	option.Pick("measures", "formats 1 and 2: encode numbers so that any release reads them, or as 1.0 does, which "+
		"1.2 to 1.6 misread in part (default any)", func(o *Options) *Measures { return &o.Measures },
		"any", "1.0"),
	option.Pick("layout", "of a load: pages of columns, or rows in a finished streaming segment, in a table with the "+
		"property streaming (default columns)", func(o *Options) *Layout { return &o.Layout }, "columns", "rows"),
	option.Text("written-by", "TEXT", "the writer's name in the footer (default stoa)",
		func(o *Options) *string { return &o.WrittenBy }),
}}

// v3Options are the names of options that formats 1 and 2 do not have.
var v3Options = []string{"compression", "local-dictionary", "local-dictionary-threshold", "page-rows", "page-size",
	"blocklet-size", "inverted-index", "long-strings", "layout", "written-by"}

// check returns Invalid if an option is set that the format version does not support.
func check(o *Options) error {
	if cmp.Or(o.Version, 3) == 3 {
		switch {
		case o.BlockletRows != 0:
			return fault.Invalidf("carbon: option blocklet-rows is for formats 1 and 2")
		case o.Measures != "":
			return fault.Invalidf("carbon: option measures is for formats 1 and 2")
		}
		return nil
	}
	given := WriteTable.Strings(o)
	for _, name := range v3Options {
		if _, ok := given[name]; ok {
			return fault.Invalidf("carbon: format %d has no option %s", o.Version, name)
		}
	}
	return nil
}

func parseWriteOptions(opts map[string]string) (schema.WriteOptions, error) {
	s, err := WriteTable.Parse(opts)
	if err == nil {
		err = check(&s)
	}
	o := schema.DefaultWriteOptions()
	if err != nil {
		return o, err
	}
	o.Version, o.Codec = cmp.Or(s.Version, o.Version), cmp.Or(string(s.Compression), o.Codec)
	o.CreatedBy = cmp.Or(s.WrittenBy, o.CreatedBy)
	o.SortColumns, o.Inverted, o.LongStrings = s.SortColumns, s.InvertedIndex, s.LongStrings
	o.Dictionary = s.LocalDictionary == nil || *s.LocalDictionary
	o.Threshold, o.PageRows = cmp.Or(s.LocalDictionaryThreshold, o.Threshold), cmp.Or(s.PageRows, o.PageRows)
	o.PageSize = cmp.Or(s.PageSize<<20, o.PageSize)
	o.Blocklet, o.Block = cmp.Or(s.BlockletSize<<20, o.Blocklet), cmp.Or(s.BlockSize<<20, o.Block)
	o.Memory = cmp.Or(s.Memory, o.Memory)
	o.Rows = s.Layout == "rows"
	o.Truncate, o.Merge, o.As10 = s.Timestamps == "truncate", s.Nulls == "merge", s.Measures == "1.0"
	if o.Version < 3 { // a blocklet is one page per column, limited by a number of rows
		o.RestrictToV12()
		o.PageRows = cmp.Or(s.BlockletRows, v12BlockletRows)
	}
	return o, nil
}
