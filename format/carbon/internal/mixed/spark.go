package mixed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/internal/civil"
)

// What Spark 3.1 reads, the last with CarbonData; it fails on the whole table for one file of another form
// (VectorizedColumnReader; the other codecs need libraries that its machines may lack).
var (
	sparkCodecs    = []string{"UNCOMPRESSED", "SNAPPY", "GZIP"}
	sparkEncodings = []string{"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
)

// wayOut ends the error about a file that CarbonData under Spark would fail on.
const wayOut = ": CarbonData under Spark cannot read the table then; `stoa load` copies the rows into it"

// AsSpark are the options of reading Parquet as Spark does: by its own types, with times in microseconds. (CarbonData
// has milliseconds.)
var AsSpark = map[string]string{"arrow-schema": "ignore", "int96": "us"}

// sparkReads returns Unsupported if Spark cannot read some top-level columns of a Parquet file because of how their
// values are stored.
func sparkReads(ctx context.Context, name string, r format.Reader, columns []int) error {
	groups, err := r.RowGroups(ctx, format.Part{Ref: name}, format.Query{})
	facts, ok := r.(format.Physical)
	if err != nil || !ok {
		return err
	}
	stored, empty := parquet.Physical(r), false
	for _, g := range groups {
		if empty && g.Rows > 0 {
			return fault.Unsupportedf(fault.Span{Object: name}, "", "a row group without rows before others%s", wayOut)
		}
		empty = empty || g.Rows == 0
		for i, c := range r.Columns() {
			if !slices.Contains(columns, c.Path[0]) {
				continue // Spark does not read it
			}
			form := formOf(c.Type, stored[i])
			f, err := facts.ChunkFacts(ctx, g, i)
			if err != nil {
				return err
			}
			if !slices.Contains(sparkCodecs, f.Codec) {
				form = "compression " + f.Codec
			}
			for _, e := range f.Encodings {
				if !slices.Contains(sparkEncodings, e.Encoding) {
					form = "encoding " + e.Encoding
				}
			}
			if form != "" {
				return fault.Unsupportedf(fault.Span{Object: name}, c.Name, "%s%s", form, wayOut)
			}
		}
	}
	return nil
}

// formOf returns what Spark cannot read of a column's physical type; "": it can.
func formOf(t arrow.DataType, stored string) string {
	switch t := t.(type) {
	case *arrow.TimestampType:
		if t.Unit == arrow.Nanosecond {
			return "nanoseconds"
		}
	case *arrow.Decimal128Type:
		if t.Precision <= 18 && stored == "BYTE_ARRAY" || t.Precision <= 9 && stored == "INT64" {
			return fmt.Sprintf("%s as %s", t, stored)
		}
	}
	return ""
}

// gregorian reports for each of some top-level columns whether the file says that their dates and times are in the
// proleptic Gregorian calendar, as Spark 3's do. Of others Spark refuses old ones, or moves them by the difference of
// the calendars. (DataSourceUtils: versions are compared as texts.)
func gregorian(r format.Reader, columns []int) []bool {
	keys := map[string]string{}
	legacy := func(key string) bool { _, ok := keys[sparkKey+key]; return ok }
	for _, kv := range r.Meta() {
		keys[kv.Key] = kv.Value
	}
	version, stored := keys[sparkKey+"version"], parquet.Physical(r)
	out := make([]bool, len(columns))
	for i, field := range columns {
		out[i] = true
		for k, c := range r.Columns() {
			since, mark := "3.0.0", "legacyDateTime"
			if stored[k] == "INT96" {
				since, mark = "3.1.0", "legacyINT96"
			}
			if c.Path[0] == field && (version < since || legacy(mark)) {
				out[i] = false
			}
		}
	}
	return out
}

const sparkKey = "metadata: org.apache.spark."

// old reports whether a column has a date before 15 October 1582, or a time before 1900: Spark 3.1 refuses the file
// because of it, since some time zone's calendars differ there.
func old(a arrow.Array) bool {
	switch a := a.(type) {
	case *array.Date32:
		for i, d := range a.Date32Values() {
			if d < civil.Switch && a.IsValid(i) {
				return true
			}
		}
	case *array.Timestamp:
		first, _ := arrow.TimestampFromTime(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC),
			a.DataType().(*arrow.TimestampType).Unit)
		for i, at := range a.TimestampValues() {
			if at < first && a.IsValid(i) {
				return true
			}
		}
	case *array.Struct:
		for i := range a.NumField() {
			if old(a.Field(i)) {
				return true
			}
		}
	case array.ListLike:
		return old(a.ListValues())
	}
	return false
}
