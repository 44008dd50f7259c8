package schema

import (
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// WriteOptions are the parsed options of a writer. Sizes are in bytes.
type WriteOptions struct {
	Version     int      // 1, 2 or 3
	As10        bool     // encode measures of formats 1 and 2 as release 1.0 does, even if later releases misread them
	Codec       string   // snappy, zstd or gzip
	SortColumns []string // in order
	Inverted    []string // sort columns with an inverted index
	LongStrings []string // strings written as varchar
	Dictionary  bool     // local dictionaries
	Threshold   int      // largest number of values of a local dictionary
	PageRows    int      // largest number of rows of a page
	PageSize    int      // a page ends when its cells take this much memory
	Blocklet    int64    // target size
	Block       int64    // target size of a data file
	Memory      int64    // for sorting
	Truncate    bool     // drop fractions of a timestamp finer than the column's unit
	Rows        bool     // a segment of rows, of a table with streaming
	Merge       bool     // write values that would be read as null
	CreatedBy   string   // the writer's name in the footer

	GlobalDictionaries []string // columns with a global dictionary, of a table
	// Columns that may have a local dictionary (nil: all), and columns that may not.
	LocalDictionaries, NoLocalDictionaries []string
}

// DefaultWriteOptions are the options of a writer that sets none.
func DefaultWriteOptions() WriteOptions {
	return WriteOptions{Version: 3, Codec: "snappy", Dictionary: true, Threshold: 10_000, PageRows: 32_000,
		PageSize: 64 << 20, Blocklet: 64 << 20, Block: 1 << 30, Memory: 256 << 20, CreatedBy: "stoa"}
}

// RestrictToV12 sets the options that have only one possible value in formats 1 and 2: one page per blocklet, Snappy,
// no local dictionaries.
func (o *WriteOptions) RestrictToV12() { o.Codec, o.Dictionary, o.PageSize = "snappy", false, 1<<30 }

// AllowsLocalDictionary reports whether the strings of a column may have a local dictionary, by the table's properties
// for its top-level column.
func (o *WriteOptions) AllowsLocalDictionary(c *Column) bool {
	for c.Parent != nil {
		c = c.Parent
	}
	same := func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), c.Name) }
	return !HasGlobalCodes(c) && (len(o.LocalDictionaries) == 0 || slices.ContainsFunc(o.LocalDictionaries, same)) &&
		!slices.ContainsFunc(o.NoLocalDictionaries, same)
}

// CheckV12Types returns Corrupt, at the place of the schema, if a column has a type that formats 1 and 2 lack.
func CheckV12Types(list []layout.ColumnSchema, version int, at fault.Span, path string) error {
	for i := range list {
		if c := &list[i]; !v12Types[c.Type] {
			return fault.Corruptf(at, path, "column %s has the type %s, which format %d does not have", c.Name, c.Type,
				version)
		}
	}
	return nil
}

// CheckV12 returns Unsupported if formats 1 and 2 cannot hold one of the columns.
func CheckV12(list []layout.ColumnSchema, version int) error {
	for i := range list {
		c := &list[i]
		switch {
		case !v12Types[c.Type]:
			return fault.Unsupportedf(fault.Span{}, c.Name, "format %d of CarbonData has no type %s", version, c.Type)
		case c.Type.Complex() || c.Encoders.Has(layout.EncDictionary):
		case c.Ordinal < 0:
			return fault.Unsupportedf(fault.Span{}, c.Name, "format %d of CarbonData has values in lists and structs "+
				"only with a global dictionary: load into a table with the property dictionary_include", version)
		}
	}
	return nil
}

// v12Types are the types that formats 1 and 2 have.
var v12Types = map[layout.DataType]bool{layout.TypeString: true, layout.TypeShort: true, layout.TypeInt: true,
	layout.TypeLong: true, layout.TypeDouble: true, layout.TypeDecimal: true,
	layout.TypeTimestamp: true, layout.TypeDate: true, layout.TypeArray: true, layout.TypeStruct: true}
