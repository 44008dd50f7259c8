package carbon

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// writeKeys are the options of Create.
var writeKeys = []format.OptionKey{
	{Name: "compression", Values: "snappy, zstd, gzip", Help: "of all pages (default snappy)"},
	{Name: "sort-columns", Values: "NAME,NAME,…", Help: "sort the rows by these columns, which then are dimensions"},
	{Name: "inverted-index", Values: "NAME,NAME,…", Help: "sort columns whose pages are sorted by themselves, with row ids"},
	{Name: "long-strings", Values: "NAME,NAME,…", Help: "strings that may have more than 32,765 bytes: type varchar"},
	{Name: "local-dictionary", Values: "true, false", Help: "keep strings as codes of a dictionary as long as there are few (default true)"},
	{Name: "local-dictionary-threshold", Values: "1…100000", Help: "how many strings a local dictionary may have (default 10000)"},
	{Name: "page-rows", Values: "1…32000", Help: "rows of a page (default 32000)"},
	{Name: "page-size", Values: "1…1755", Help: "MiB of raw values after which a page ends (default 64)"},
	{Name: "blocklet-size", Values: "1…", Help: "MiB of encoded pages after which a blocklet ends (default 64)"},
	{Name: "block-size", Values: "1…2048", Help: "MiB after which, in a directory, a new data file begins (default 1024)"},
	{Name: "memory", Values: "BYTES", Help: "rows that are sorted in memory; more are sorted in pieces and merged (default 256MiB)"},
	{Name: "timestamps", Values: "exact, truncate", Help: "what to do with parts of a millisecond: refuse them or drop them (default exact)"},
	{Name: "nulls", Values: "exact, merge", Help: "what to do with what CarbonData reads as null, as a list of one null: refuse or write it (default exact)"},
	{Name: "version", Values: "3, 2, 1", Help: "format of the data files; 2 and 1 are those of CarbonData up to 1.0 (default 3; in a table that of its last segment)"},
	{Name: "blocklet-rows", Values: "2000…12000000", Help: "formats 1 and 2: rows of a blocklet, carbon.blocklet.size (default 120000)"},
	{Name: "measures", Values: "any, 1.0", Help: "formats 1 and 2: make numbers small where every release reads them, or wherever 1.0 does, of which 1.2 to 1.6 misread some (default any)"},
	{Name: "written-by", Values: "TEXT", Help: "who wrote it, kept in the footer (default stoa)"},
}

// writeOptions are the options of Create, understood.
type writeOptions struct {
	version     int
	as10        bool
	codec       string
	sortColumns []string
	inverted    []string
	longStrings []string
	dictionary  bool
	threshold   int
	pageRows    int
	pageSize    int
	blocklet    int64
	block       int64
	memory      int64
	truncate    bool
	merge       bool
	by          string

	keyed          []string // columns with a global dictionary, of a table
	coded, uncoded []string // columns whose strings may become codes (nil: all), and those whose may not
}

func defaultWriteOptions() writeOptions {
	return writeOptions{version: 3, codec: "snappy", dictionary: true, threshold: 10_000, pageRows: 32_000, pageSize: 64 << 20, blocklet: 64 << 20, block: 1 << 30, memory: 256 << 20, by: "stoa"}
}

func parseWriteOptions(opts map[string]string) (o writeOptions, err error) {
	o = defaultWriteOptions()
	for _, k := range sorted(opts) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, o.old(opts)
}

// onlyNew are options that mean nothing in formats 1 and 2.
var onlyNew = []string{"compression", "local-dictionary", "local-dictionary-threshold", "page-rows", "page-size", "blocklet-size", "inverted-index", "long-strings", "written-by"}

// old sets what is always so in formats 1 and 2: a blocklet has one page, and ends when it has as many rows as it may have.
func (o *writeOptions) old(opts map[string]string) error {
	rows := opts["blocklet-rows"] != ""
	if o.version == 3 {
		for _, k := range []string{"blocklet-rows", "measures"} {
			if opts[k] != "" {
				return fault.Invalidf("carbon: option %s is for formats 1 and 2", k)
			}
		}
		return nil
	}
	for _, k := range onlyNew {
		if opts[k] != "" {
			return fault.Invalidf("carbon: format %d has no option %s", o.version, k)
		}
	}
	if o.whole(); !rows {
		o.pageRows = oldBlockletRows
	}
	return nil
}

// whole sets what formats 1 and 2 know in one way only.
func (o *writeOptions) whole() { o.codec, o.dictionary, o.pageSize = "snappy", false, 1<<30 }

func (o *writeOptions) set(key, v string) (err error) {
	number := func(to int64) (n int64, err error) {
		if n, err = strconv.ParseInt(v, 10, 64); err != nil || n < 1 || n > to {
			return 0, fault.Invalidf("carbon: option %s=%s: a number from 1 to %d is wanted", key, v, to)
		}
		return n, nil
	}
	one := func(a, b string) (second bool, err error) {
		if v != a && v != b {
			return false, fault.Invalidf("carbon: option %s=%s: %s or %s is wanted", key, v, a, b)
		}
		return v == b, nil
	}
	var n int64
	switch key {
	case "compression":
		if o.codec = v; !slices.Contains([]string{"snappy", "zstd", "gzip"}, v) {
			return fault.Invalidf("carbon: option compression=%s: one of snappy, zstd, gzip is wanted", v)
		}
	case "sort-columns":
		o.sortColumns = splitNames(v)
	case "inverted-index":
		o.inverted = splitNames(v)
	case "long-strings":
		o.longStrings = splitNames(v)
	case "local-dictionary":
		o.dictionary, err = one("false", "true")
	case "local-dictionary-threshold":
		n, err = number(100_000)
		o.threshold = int(n)
	case "page-rows":
		n, err = number(32_000)
		o.pageRows = int(n)
	case "page-size":
		n, err = number(1755)
		o.pageSize = int(n) << 20
	case "blocklet-size":
		n, err = number(1 << 20)
		o.blocklet = n << 20
	case "block-size":
		n, err = number(2048)
		o.block = n << 20
	case "memory":
		var ok bool
		if o.memory, ok = format.ParseSize(v); !ok || o.memory < 1 {
			return fault.Invalidf("carbon: option memory=%s: a number of bytes is wanted, as 268435456 or 256MiB", v)
		}
	case "timestamps":
		o.truncate, err = one("exact", "truncate")
	case "nulls":
		o.merge, err = one("exact", "merge")
	case "version":
		if o.version = map[string]int{"1": 1, "2": 2, "3": 3}[v]; o.version == 0 {
			return fault.Invalidf("carbon: option version=%s: 3, 2 or 1 is wanted", v)
		}
	case "measures":
		o.as10, err = one("any", "1.0")
	case "blocklet-rows":
		if n, err = number(maxBlockletRows); err == nil && n < minBlockletRows {
			err = fault.Invalidf("carbon: option blocklet-rows=%s: a number from %d to %d is wanted", v, minBlockletRows, maxBlockletRows)
		}
		o.pageRows = int(n)
	case "written-by":
		o.by = v
	default:
		return fault.Invalidf("carbon: there is no option %q for writing", key)
	}
	return err
}

// splitNames splits names at commas; nothing is no name.
func splitNames(v string) []string {
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// codes reports whether the strings of a column may become codes: what the table's properties say of its top-level column.
func (o *writeOptions) codes(c *column) bool {
	for c.parent != nil {
		c = c.parent
	}
	same := func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), c.name) }
	return !c.globalCodes() && (len(o.coded) == 0 || slices.ContainsFunc(o.coded, same)) && !slices.ContainsFunc(o.uncoded, same)
}

// alters is format.Format.Alters: timestamps=truncate drops parts of a millisecond, and nulls=merge makes nulls of lists and structs that hold nothing.
func alters(sc *arrow.Schema, o format.WriteOptions) (names []string) {
	truncate, merge := o.Opts["timestamps"] == "truncate", o.Opts["nulls"] == "merge"
	var altered func(t arrow.DataType) bool
	altered = func(t arrow.DataType) bool {
		switch x := t.(type) {
		case *arrow.TimestampType:
			return truncate && x.Unit > arrow.Millisecond
		case *arrow.DictionaryType:
			return altered(x.ValueType)
		case arrow.NestedType:
			return merge || slices.ContainsFunc(x.Fields(), func(f arrow.Field) bool { return altered(f.Type) })
		}
		return false
	}
	for _, f := range sc.Fields() {
		if altered(f.Type) {
			names = append(names, f.Name)
		}
	}
	return names
}
