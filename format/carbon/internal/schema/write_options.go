package schema

import (
	"slices"
	"strings"

	"stoa/fault"
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

// Whole sets what formats 1 and 2 know in one way only.
func (o *WriteOptions) Whole() { o.Codec, o.Dictionary, o.PageSize = "snappy", false, 1<<30 }

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

// CheckOldTypes reports columns of types that were not there yet when format 1 or 2 was written.
func CheckOldTypes(list []layout.ColumnSchema, version int, at fault.Span, path string) error {
	for i := range list {
		if c := &list[i]; !v12Types[c.Typ] {
			return fault.Corruptf(at, path, "column %s is of type %s, which format %d does not have", c.Name, c.Typ,
				version)
		}
	}
	return nil
}

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

// v12Types are the types that formats 1 and 2 have.
var v12Types = map[layout.DataType]bool{layout.TypeString: true, layout.TypeShort: true, layout.TypeInt: true,
	layout.TypeLong: true, layout.TypeDouble: true, layout.TypeDecimal: true,
	layout.TypeTimestamp: true, layout.TypeDate: true, layout.TypeArray: true, layout.TypeStruct: true}
