package mixed

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
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

// sparkReads returns Unsupported if Spark cannot read a Parquet file because of how its values are stored.
func sparkReads(ctx context.Context, name string, r format.Reader) error {
	groups, err := r.RowGroups(ctx, format.Part{Ref: name}, format.Query{})
	physical, ok := r.(format.Physical)
	if err != nil || !ok {
		return err
	}
	for _, g := range groups {
		for i, c := range r.Columns() {
			f, err := physical.ChunkFacts(ctx, g, i)
			if err != nil {
				return err
			}
			form := ""
			if !slices.Contains(sparkCodecs, f.Codec) {
				form = "compression " + f.Codec
			}
			for _, e := range f.Encodings {
				if !slices.Contains(sparkEncodings, e.Encoding) {
					form = "encoding " + e.Encoding
				}
			}
			if t, ok := c.Type.(*arrow.TimestampType); ok && t.Unit == arrow.Nanosecond {
				form = "nanoseconds"
			}
			if form != "" {
				return fault.Unsupportedf(fault.Span{Object: name}, c.Name, "%s%s", form, wayOut)
			}
		}
	}
	return nil
}

// oneCalendar reports whether a file says that all its dates and times are in the proleptic Gregorian calendar, as the
// files of Spark 3 do. Of others Spark refuses old ones, or moves them by the difference of the calendars.
func oneCalendar(r format.Reader) bool {
	version := ""
	for _, kv := range r.Meta() {
		switch kv.Key {
		case "metadata: org.apache.spark.version":
			version = kv.Value
		case "metadata: org.apache.spark.legacyDateTime", "metadata: org.apache.spark.legacyINT96":
			return false
		}
	}
	major, _, _ := strings.Cut(version, ".")
	return len(major) > 1 || major >= "3"
}

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
