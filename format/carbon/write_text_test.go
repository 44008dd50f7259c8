package carbon

import (
	"fmt"
	"testing"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
)

// FuzzTexts compares the fast parsers of texts with the slow one: if a fast parser succeeds, the results are equal.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-03-01", "0001-01-01",
		"9999-12-31", "1970-01-01", "1969-12-31", "2024-13-01", "2024-00-10", "2024-4-1",
		"2024-02-29 23:59:59.999", "2024-02-29 23:59:59.9", "2024-02-29T23:59:59Z", "2024-02-29T23:59:59.12Z",
		"2024-02-29T23:59:59+01:00", "2024-02-29 24:00:00", "2024-02-29 23:60:00",
		"2024-02-29 23:59:60", "2024-02-29 23:59:59.", "2024-02-29 23:59:59.1234", "2024-02-29 23:59:59.1230",
		"2024-02-29T23:59:59", "1800-01-01 00:00:00.001",
		"1.5", "-1.5", "+1.5", ".5", "5.", "1e3", "-0", "0.001", "123456789012345678", "1234567890123456.78",
		"99999999999999999", "-99999999999999.999", "1/2", "0x10", "1_000", "", "-", ".", "é"} {
		f.Add(s, uint8(2))
	}
	f.Fuzz(func(t *testing.T, s string, scale uint8) {
		for _, typ := range []layout.DataType{layout.TypeInt, layout.TypeShort, layout.TypeDate,
			layout.TypeTimestamp, layout.TypeDecimal} {
			c := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: typ, Precision: 38, Scale: int32(scale % 39)}}
			got, err := page.ParseConstant(c, s)
			want, slow := page.ParseExact(c, s)
			if err != nil && slow != nil || typ == layout.TypeDate && slow == nil &&
				(want.I < page.MinDate || want.I > page.MaxDate) && err != nil {
				continue
			}
			if (err == nil) != (slow == nil) || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s %q: got %v, %v; want %v, %v", typ, s, got, err, want, slow)
			}
		}
	})
}
