package page

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestOriginalZones: types of instants as read by pyarrow 26, in files that it wrote with versions that lack the unit
// (coerced), and in files whose Arrow schema has a time zone that Parquet cannot express.
func TestOriginalZones(t *testing.T) {
	ts := func(u arrow.TimeUnit, zone string) arrow.DataType {
		return &arrow.TimestampType{Unit: u, TimeZone: zone}
	}
	for _, c := range []struct{ stored, orig, want arrow.DataType }{
		{ts(arrow.Microsecond, "UTC"), ts(arrow.Nanosecond, "Europe/Zurich"), ts(arrow.Microsecond, "Europe/Zurich")},
		{ts(arrow.Millisecond, "UTC"), ts(arrow.Nanosecond, "+02:30"), ts(arrow.Millisecond, "+02:30")},
		{ts(arrow.Microsecond, "UTC"), ts(arrow.Microsecond, "Europe/Zurich"), ts(arrow.Microsecond, "Europe/Zurich")},
		{ts(arrow.Microsecond, ""), ts(arrow.Nanosecond, ""), ts(arrow.Microsecond, "")},
		{ts(arrow.Nanosecond, ""), ts(arrow.Nanosecond, "Europe/Zurich"), ts(arrow.Nanosecond, "")}, // INT96
		{ts(arrow.Microsecond, "UTC"), arrow.PrimitiveTypes.Int64, ts(arrow.Microsecond, "UTC")},
	} {
		for _, in := range []func(arrow.DataType) arrow.DataType{
			func(t arrow.DataType) arrow.DataType { return t },
			func(t arrow.DataType) arrow.DataType { return arrow.ListOf(t) },
		} {
			f := Original(arrow.Field{Name: "c", Type: in(c.stored)}, arrow.Field{Name: "c", Type: in(c.orig)})
			if !arrow.TypeEqual(f.Type, in(c.want)) {
				t.Errorf("stored as %s, Arrow's %s: got %s, want %s", c.stored, c.orig, f.Type, in(c.want))
			}
		}
	}
}
