package meta

import "testing"

// TestIntervalOfParquetMr: parquet-mr writes the converted type INTERVAL, which has no logical type, together with the
// logical type UNKNOWN, which by itself means that all values are null. Here they are not.
func TestIntervalOfParquetMr(t *testing.T) {
	const interval = `{"type":"INTERVAL"}`
	for _, logical := range []int{0, LogicalUnknown} {
		e := &SchemaElem{Typ: TypeFixed, Length: 12, converted: convertedInterval, logical: Logical{Kind: logical}}
		if got := e.LogicalType().Kind; got != 0 {
			t.Errorf("kind %d beside INTERVAL: %d", logical, got)
		}
		if got := e.Annotation(); got != interval {
			t.Errorf("kind %d beside INTERVAL: %s", logical, got)
		}
	}
	e := &SchemaElem{Typ: TypeInt32, converted: -1, logical: Logical{Kind: LogicalUnknown}}
	if got := e.LogicalType().Kind; got != LogicalUnknown {
		t.Errorf("UNKNOWN alone is %d", got)
	}
}
