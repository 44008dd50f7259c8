package laws_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// TestOverlongDecimals: no writer can have written a decimal with more digits than its type allows. Formats that could
// store one report damage: reading does not return the row, and verify reports it.
func TestOverlongDecimals(t *testing.T) {
	const was = 83_886 // takes three bytes, as does 8,388,606
	cases := []struct {
		name     string
		opts     map[string]string
		old, new []byte
	}{
		{"t.red", map[string]string{"crc": "false", "compression": "none", "index": "false"},
			[]byte{0xae, 0x47, 0x01, 0}, []byte{0xfe, 0xff, 0x7f, 0}},
		{"t.arrow", map[string]string{"compression": "none"}, []byte{0xae, 0x47, 0x01, 0}, []byte{0xfe, 0xff, 0x7f, 0}},
		{"t.arrows", map[string]string{"compression": "none", "stream": "true"}, []byte{0xae, 0x47, 0x01, 0},
			[]byte{0xfe, 0xff, 0x7f, 0}},
		{"t.parquet", map[string]string{"crc": "false", "compression": "none",
			"dictionary": "false"}, []byte{0x01, 0x47, 0xae}, []byte{0x7f, 0xff, 0xfe}},
		{"t.carbondata", nil, []byte{0x01, 0x47, 0xae}, []byte{0x7f, 0xff, 0xfe}},
		{"t.trv", map[string]string{"codec": "null", "checksum": "null"}, []byte{0x01, 0x47, 0xae},
			[]byte{0x7f, 0xff, 0xfe}},
	}
	for _, nested := range []bool{false, true} {
		for _, c := range cases {
			typ := &arrow.Decimal128Type{Precision: 5, Scale: 2}
			sc := arrow.NewSchema([]arrow.Field{{Name: "cost", Type: typ}}, nil)
			b := array.NewDecimal128Builder(memory.DefaultAllocator, typ)
			b.AppendValues([]decimal128.Num{decimal128.FromI64(1), decimal128.FromI64(was),
				decimal128.FromI64(-99_999)}, nil)
			var col arrow.Array = b.NewArray()
			if nested {
				s, err := array.NewStructArray([]arrow.Array{col}, []string{"cost"})
				if err != nil {
					t.Fatal(err)
				}
				col = s
				sc = arrow.NewSchema([]arrow.Field{{Name: "s", Type: s.DataType()}}, nil)
			}
			name := filepath.Join(t.TempDir(), c.name)
			w, err := stoa.Create(t.Context(), name, sc, stoa.CreateOptions{Opts: c.opts})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), array.NewRecordBatch(sc, []arrow.Array{col}, 3)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(name)
			if err != nil || bytes.Count(whole, c.old) < 1 {
				t.Fatalf("%s: the value is not found in the file: %v", c.name, err)
			}
			if err := os.WriteFile(name, bytes.ReplaceAll(whole, c.old, c.new), 0o666); err != nil {
				t.Fatal(err)
			}
			if rows, err := countUntil(t, name); !errors.Is(err, fault.Corrupt) || rows > 0 {
				t.Errorf("%s, nested %v: got %d rows and %v, want none and damage", c.name, nested, rows, err)
			}
			for _, depth := range []format.Depth{format.Deep, format.Sums} {
				worst := region.Note
				for f, err := range stoa.Verify(t.Context(), name, stoa.OpenOptions{Depth: depth}) {
					if err != nil {
						t.Fatal(err)
					}
					worst = max(worst, f.Severity)
				}
				if worst < region.Error {
					t.Errorf("%s, nested %v: verify at depth %v finds nothing", c.name, nested, depth)
				}
			}
		}
	}
}

func countUntil(t *testing.T, name string) (n int64, err error) {
	tab, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return n, err
		}
		n += b.NumRows()
	}
	return n, nil
}
