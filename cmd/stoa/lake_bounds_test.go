package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestBoundsOfExtremes: infinite numbers, and texts after which none of the same length comes, are found by filters in
// both formats; Delta's log, which is JSON, has no bounds of such columns. What cannot divide a table is named.
func TestBoundsOfExtremes(t *testing.T) {
	t.Chdir(t.TempDir())
	last := strings.Repeat("\U0010ffff", 40)
	types := []arrow.Field{{Name: "up", Type: arrow.PrimitiveTypes.Float64},
		{Name: "f", Type: arrow.PrimitiveTypes.Float32}, {Name: "s", Type: arrow.BinaryTypes.String},
		{Name: "a", Type: arrow.BinaryTypes.String},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(types, nil))
	for i, up := range []float64{1, math.Inf(1), 2} {
		b.Field(0).(*array.Float64Builder).Append(up)
		b.Field(1).(*array.Float32Builder).Append(float32(-up))
		b.Field(2).(*array.StringBuilder).Append(last + string(rune('a'+i)))
		b.Field(3).(*array.StringBuilder).Append("a" + last)
		b.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i)))
	}
	put(t, "in.arrow", b.NewRecordBatch())
	for _, to := range []string{"iceberg", "delta"} {
		must(t, "convert", "in.arrow", "--to", to, "-o", to, "-q")
		must(t, "verify", to, "--deep", "-q")
		for where, want := range map[string]string{"up > 1e300": "1", "f < -1e30": "1", "up < 3": "2", "f > -3": "2",
			"s = '" + last + "b'": "1", "s > '" + last + "a'": "2", "a = 'a" + last + "'": "3", "a >= 'b'": "0"} {
			if got := strings.TrimSpace(must(t, "count", to, "--where", where)); got != want {
				t.Errorf("%s, %s: %s rows, want %s", to, where, got, want)
			}
		}
		for _, by := range []string{"up", "f", "truncate(1, d)", "bucket(4, up)"} {
			got := said("\x00", "convert", "in.arrow", "--to", to, "-o", "bad", "--partition-by", by)
			if !strings.Contains(got, "partition-by: ") || strings.HasSuffix(got, "status: 0") {
				t.Errorf("%s by %s: %s", to, by, got)
			}
		}
		if found, _ := filepath.Glob("bad*"); len(found) > 0 {
			t.Errorf("%s: %v", to, found)
		}
	}
	text, err := os.ReadFile("delta/_delta_log/00000000000000000000.json")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var action struct{ Add struct{ Stats string } }
		var stats struct{ MinValues, MaxValues map[string]any }
		if json.Unmarshal([]byte(line), &action) != nil || json.Unmarshal([]byte(action.Add.Stats), &stats) != nil {
			continue
		}
		for _, name := range []string{"up", "f", "s"} {
			if stats.MinValues[name] != nil || stats.MaxValues[name] != nil {
				t.Errorf("%s has bounds: %s", name, action.Add.Stats)
			}
		}
		// The greatest text of at most 64 bytes and a character that is not less than all of them is b.
		if lo, hi := stats.MinValues["a"], stats.MaxValues["a"]; hi != "b" || lo == nil || lo.(string) > "a"+last {
			t.Errorf("a: bounds %q and %q", lo, hi)
		}
	}
}
