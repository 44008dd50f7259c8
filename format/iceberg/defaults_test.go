package iceberg

import (
	"fmt"
	"testing"

	"stoa/format/iceberg/internal/meta"
)

// TestDefaultValue parses the examples of the specification's appendix on JSON single-value serialization.
func TestDefaultValue(t *testing.T) {
	for _, c := range []struct{ kind, json, want string }{
		{"boolean", "true", "true"},
		{"int", "34", "34"},
		{"long", "34", "34"},
		{"float", "1.0", "1"},
		{"double", "1.0", "1"},
		{"decimal(9, 2)", `"14.20"`, "14.2"},
		{"date", `"2017-11-16"`, "2017-11-16"},
		{"time", `"22:31:08.123456"`, "22:31:08.123456"},
		{"timestamp", `"2017-11-16T22:31:08.123456"`, "2017-11-16T22:31:08.123456"},
		{"timestamptz", `"2017-11-16T22:31:08.123456+00:00"`, "2017-11-16T22:31:08.123456Z"},
		{"timestamp_ns", `"2017-11-16T22:31:08.123456789"`, "2017-11-16T22:31:08.123456789"},
		{"timestamptz_ns", `"2017-11-16T22:31:08.123456789+00:00"`, "2017-11-16T22:31:08.123456789Z"},
		{"string", `"iceberg"`, "iceberg"},
		{"uuid", `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
		{"fixed[4]", `"000102ff"`, "AAEC/w=="},
		{"binary", `"000102ff"`, "AAEC/w=="},
		{"int", `"34"`, ""}, {"int", "3000000000", ""}, {"fixed[3]", `"000102ff"`, ""}, {"binary", `"0"`, ""},
		{"date", `"2017-11-31"`, ""}, {"string", "7", ""}, {"decimal(3, 2)", `"14.20"`, ""}, {"long", "1.5", ""},
	} {
		f, err := meta.Arrow([]meta.Field{{ID: 1, Name: "c", Type: meta.Type{Name: c.kind}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := defaultValue(f[0].Type, []byte(c.json))
		got := ""
		if err == nil {
			got = fmt.Sprint(a.ValueStr(0))
		}
		if got != c.want {
			t.Errorf("%s %s: expected %q, found %q, %v", c.kind, c.json, c.want, got, err)
		}
	}
}
