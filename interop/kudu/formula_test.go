package kudu

import (
	"strings"
	"testing"
)

// gridColumns returns every type with every encoding that Kudu has for it; compression and nullability are open.
func gridColumns() []column {
	var out []column
	for _, t := range []struct {
		typ        string
		prec, size int
		encs       []string
	}{
		{"BOOL", 0, 0, []string{"PLAIN_ENCODING", "RLE"}},
		{"INT8", 0, 0, fixed}, {"INT16", 0, 0, fixed}, {"INT32", 0, 0, fixed}, {"INT64", 0, 0, fixed},
		{"UINT8", 0, 0, fixed}, {"UINT16", 0, 0, fixed}, {"UINT32", 0, 0, fixed}, {"UINT64", 0, 0, fixed},
		{"INT128", 0, 0, fixed[:2]},
		{"FLOAT", 0, 0, fixed[:2]}, {"DOUBLE", 0, 0, fixed[:2]},
		{"UNIXTIME_MICROS", 0, 0, fixed}, {"DATE", 0, 0, fixed},
		{"DECIMAL32", 9, 0, fixed}, {"DECIMAL64", 18, 0, fixed}, {"DECIMAL128", 38, 0, fixed[:2]},
		{"STRING", 0, 0, varied}, {"BINARY", 0, 0, varied}, {"VARCHAR", 0, 50, varied},
	} {
		for _, e := range t.encs {
			c := column{Name: "v", Type: t.typ, Enc: e, Prec: t.prec, Len: t.size}
			if t.prec > 0 {
				c.Scale = 2
			}
			out = append(out, c)
		}
	}
	return out
}

var (
	fixed  = []string{"PLAIN_ENCODING", "BIT_SHUFFLE", "RLE"}
	varied = []string{"PLAIN_ENCODING", "PREFIX_ENCODING", "DICT_ENCODING"}
)

// TestFormula: the values are good test data (many different ones, NULLs only in nullable columns), and
// two different values are printed differently, or the dump could not distinguish them. Kudu prints floats
// with one digit too few.
func TestFormula(t *testing.T) {
	for i, c := range gridColumns() {
		for _, nullable := range []bool{false, true} {
			c.Nullable = nullable
			printed, nulls := map[string]string{}, 0
			cells := values(c, i, 2600)
			for r, v := range cells {
				if v == nil {
					nulls++
					continue
				}
				if c.Type != "BOOL" && c.Type != "FLOAT" && c.Type != "DOUBLE" &&
					!strings.HasPrefix(c.Type, "UINT") && c.Type != "INT128" {
					ch := change{Row: uint64(r), Time: 7353330593719615488, Kind: 1,
						Cols: []colChange{{ID: 3, Raw: stored(c.Type, v)}}}
					if back, ok := decodeChange(ch.encode()); !ok ||
						wiredRow([]cell{back.Cols[0].Raw}) != wiredRow([]cell{ch.Cols[0].Raw}) {
						t.Errorf("%s: %v does not survive in a delta", c.Type, v)
					}
				}
				p, w := dumped(c.Type, v), wired(v)
				if old, ok := printed[p]; ok && old != w && c.Type != "FLOAT" {
					t.Errorf("%s: %s and %s are both printed %s", c.Type, old, w, p)
				}
				printed[p] = w
			}
			if (nulls > 0) != nullable || nullable && nulls < segment {
				t.Errorf("%s nullable=%v: %d NULLs", c.Type, nullable, nulls)
			}
			if least := map[string]int{"BOOL": 2, "INT8": 200, "UINT8": 200}[c.Type]; len(printed) < max(least,
				2) || least == 0 && len(printed) < 700 {
				t.Errorf("%s: only %d different values", c.Type, len(printed))
			}
		}
	}
}
