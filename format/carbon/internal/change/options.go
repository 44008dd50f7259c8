package change

import (
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// WriteKeys are the options of Create.
var WriteKeys = []format.OptionKey{
	{Name: "compression", Values: "snappy, zstd, gzip", Help: "of all pages (default snappy)"},
	{Name: "sort-columns", Values: "NAME,NAME,…", Help: "sort the rows by these columns, which then are dimensions"},
	{Name: "inverted-index", Values: "NAME,NAME,…",
		Help: "sort columns whose pages are sorted by themselves, with row ids"},
	{Name: "long-strings", Values: "NAME,NAME,…", Help: "strings that may have more than 32,765 bytes: type varchar"},
	{Name: "local-dictionary", Values: "true, false",
		Help: "keep strings as codes of a dictionary as long as there are few (default true)"},
	{Name: "local-dictionary-threshold", Values: "1…100000",
		Help: "how many strings a local dictionary may have (default 10000)"},
	{Name: "page-rows", Values: "1…32000", Help: "rows of a page (default 32000)"},
	{Name: "page-size", Values: "1…1755", Help: "MiB of raw values after which a page ends (default 64)"},
	{Name: "blocklet-size", Values: "1…", Help: "MiB of encoded pages after which a blocklet ends (default 64)"},
	{Name: "block-size", Values: "1…2048",
		Help: "MiB after which, in a directory, a new data file begins (default 1024)"},
	{Name: "memory", Values: "BYTES", Help: "rows that are sorted in memory; more are sorted in pieces and " +
		"merged (default 256MiB)"},
	{Name: "timestamps", Values: "exact, truncate",
		Help: "what to do with parts of a millisecond: refuse them or drop them (default exact)"},
	{Name: "nulls", Values: "exact, merge", Help: "what to do with what CarbonData reads as null, as a list of " +
		"one null: refuse or write it (default exact)"},
	{Name: "version", Values: "3, 2, 1", Help: "format of the data files; 2 and 1 are those of CarbonData up to " +
		"1.0 (default 3; in a table that of its last segment)"},
	{Name: "blocklet-rows", Values: "2000…12000000",
		Help: "formats 1 and 2: rows of a blocklet, carbon.blocklet.size (default 120000)"},
	{Name: "measures", Values: "any, 1.0", Help: "formats 1 and 2: make numbers small where every release reads " +
		"them, or wherever 1.0 does, of which 1.2 to 1.6 misread some (default any)"},
	{Name: "written-by", Values: "TEXT", Help: "who wrote it, kept in the footer (default stoa)"},
}

func parseWriteOptions(opts map[string]string) (o schema.WriteOptions, err error) {
	o = schema.DefaultWriteOptions()
	for _, k := range layout.Sorted(opts) {
		if err := o.Set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, o.SetV12(opts)
}
