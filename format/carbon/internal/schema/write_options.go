package schema

import (
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
)

// WriteOptions are the options of Create, understood.
type WriteOptions struct {
	Version     int
	As10        bool
	Codec       string
	SortColumns []string
	Inverted    []string
	LongStrings []string
	Dictionary  bool
	Threshold   int
	PageRows    int
	PageSize    int
	Blocklet    int64
	Block       int64
	Memory      int64
	Truncate    bool
	Merge       bool
	By          string

	Keyed          []string // columns with a global dictionary, of a table
	Coded, Uncoded []string // columns whose strings may become codes (nil: all), and those whose may not
}

func DefaultWriteOptions() WriteOptions {
	return WriteOptions{Version: 3, Codec: "snappy", Dictionary: true, Threshold: 10_000, PageRows: 32_000,
		PageSize: 64 << 20, Blocklet: 64 << 20, Block: 1 << 30, Memory: 256 << 20, By: "stoa"}
}

// SetV12 sets what is always so in formats 1 and 2: a blocklet has one page, and ends when it has as many rows as
// it may have.
func (o *WriteOptions) SetV12(opts map[string]string) error {
	rows := opts["blocklet-rows"] != ""
	if o.Version == 3 {
		for _, k := range []string{"blocklet-rows", "measures"} {
			if opts[k] != "" {
				return fault.Invalidf("carbon: option %s is for formats 1 and 2", k)
			}
		}
		return nil
	}
	for _, k := range onlyNew {
		if opts[k] != "" {
			return fault.Invalidf("carbon: format %d has no option %s", o.Version, k)
		}
	}
	if o.Whole(); !rows {
		o.PageRows = v12BlockletRows
	}
	return nil
}

// Whole sets what formats 1 and 2 know in one way only.
func (o *WriteOptions) Whole() { o.Codec, o.Dictionary, o.PageSize = "snappy", false, 1<<30 }

func (o *WriteOptions) Set(key, v string) (err error) {
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
		if o.Codec = v; !slices.Contains([]string{"snappy", "zstd", "gzip"}, v) {
			return fault.Invalidf("carbon: option compression=%s: one of snappy, zstd, gzip is wanted", v)
		}
	case "sort-columns":
		o.SortColumns = splitNames(v)
	case "inverted-index":
		o.Inverted = splitNames(v)
	case "long-strings":
		o.LongStrings = splitNames(v)
	case "local-dictionary":
		o.Dictionary, err = one("false", "true")
	case "local-dictionary-threshold":
		n, err = number(100_000)
		o.Threshold = int(n)
	case "page-rows":
		n, err = number(32_000)
		o.PageRows = int(n)
	case "page-size":
		n, err = number(1755)
		o.PageSize = int(n) << 20
	case "blocklet-size":
		n, err = number(1 << 20)
		o.Blocklet = n << 20
	case "block-size":
		n, err = number(2048)
		o.Block = n << 20
	case "memory":
		var ok bool
		if o.Memory, ok = format.ParseSize(v); !ok || o.Memory < 1 {
			return fault.Invalidf("carbon: option memory=%s: a number of bytes is wanted, as 268435456 or 256MiB", v)
		}
	case "timestamps":
		o.Truncate, err = one("exact", "truncate")
	case "nulls":
		o.Merge, err = one("exact", "merge")
	case "version":
		if o.Version = map[string]int{"1": 1, "2": 2, "3": 3}[v]; o.Version == 0 {
			return fault.Invalidf("carbon: option version=%s: 3, 2 or 1 is wanted", v)
		}
	case "measures":
		o.As10, err = one("any", "1.0")
	case "blocklet-rows":
		if n, err = number(maxBlockletRows); err == nil && n < minBlockletRows {
			err = fault.Invalidf("carbon: option blocklet-rows=%s: a number from %d to %d is wanted", v,
				minBlockletRows, maxBlockletRows)
		}
		o.PageRows = int(n)
	case "written-by":
		o.By = v
	default:
		return fault.Invalidf("carbon: there is no option %q for writing", key)
	}
	return err
}

// Codes reports whether the strings of a column may become codes: what the table's properties say of its
// top-level column.
func (o *WriteOptions) Codes(c *Column) bool {
	for c.Parent != nil {
		c = c.Parent
	}
	same := func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), c.Name) }
	return !GlobalCodes(c) && (len(o.Coded) == 0 || slices.ContainsFunc(o.Coded, same)) &&
		!slices.ContainsFunc(o.Uncoded, same)
}

// oldLimits are the bounds of carbon.blocklet.size, and its default.
const (
	minBlockletRows = 2000
	maxBlockletRows = 12_000_000
	v12BlockletRows = 120_000
)

// CheckV12 refuses columns that formats 1 and 2 cannot have.
func CheckV12(list []layout.ColumnSchema, version int) error {
	for i := range list {
		c := &list[i]
		switch {
		case !v12Types[c.Typ]:
			return fault.Unsupportedf(fault.Span{}, c.Name, "format %d of CarbonData has no type %s", version, c.Typ)
		case c.Typ.Complex() || c.Encoders.Has(layout.EncDictionary):
		case c.Ordinal < 0:
			return fault.Unsupportedf(fault.Span{}, c.Name, "what is in lists and structs has a global "+
				"dictionary in format %d of CarbonData: load into a table with the property dictionary_include",
				version)
		}
	}
	return nil
}

// onlyNew are options that mean nothing in formats 1 and 2.
var onlyNew = []string{"compression", "local-dictionary", "local-dictionary-threshold", "page-rows", "page-size",
	"blocklet-size", "inverted-index", "long-strings", "written-by"}

// splitNames splits names at commas; nothing is no name.
func splitNames(v string) []string {
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// v12Types are the types that formats 1 and 2 have.
var v12Types = map[layout.DataType]bool{layout.TypeString: true, layout.TypeShort: true, layout.TypeInt: true,
	layout.TypeLong: true, layout.TypeDouble: true, layout.TypeDecimal: true,
	layout.TypeTimestamp: true, layout.TypeDate: true, layout.TypeArray: true, layout.TypeStruct: true}
