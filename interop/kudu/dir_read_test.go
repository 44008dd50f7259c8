package kudu

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/region"
)

// cellWord appends value i of an Arrow array in the notation of Drive.java. It shares no code with stoa's own texts.
func cellWord(b []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(b, 'N')
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(b, a.Value(i))
	case *array.Int8:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(b, a.Value(i), 10)
	case *array.Timestamp:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Date32:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Decimal32:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Decimal64:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Decimal128:
		return append(b, a.Value(i).BigInt().String()...)
	case *array.Float32:
		return fmt.Appendf(b, "%08x", math.Float32bits(a.Value(i)))
	case *array.Float64:
		return fmt.Appendf(b, "%016x", math.Float64bits(a.Value(i)))
	case *array.String:
		return hex.AppendEncode(append(b, 'x'), []byte(a.Value(i)))
	case *array.Binary:
		return hex.AppendEncode(append(b, 'x'), a.Value(i))
	}
	return fmt.Appendf(b, "?%s", a.DataType())
}

// A reading is what stoa read from a table.
type reading struct {
	columns  []string // as `columns` of Drive.java prints them
	rows     []string
	lost     []region.Loss
	findings []region.Finding
}

// read opens place and scans it with spec.
func read(place string, opts map[string]string, spec stoa.ScanSpec) (r reading, err error) {
	defer func() { // one table's panic does not hide what the others do
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx := context.Background()
	t, err := stoa.Open(ctx, place, stoa.OpenOptions{Opts: opts})
	if err != nil {
		return r, err
	}
	defer t.Close()
	keys := map[string]bool{}
	for _, k := range t.Keys() {
		keys[k] = true
	}
	for _, f := range t.Schema().Fields() {
		r.columns = append(r.columns, columnWords(f, keys[f.Name]))
	}
	var line []byte
	spec.Lost = func(l region.Loss) { r.lost = append(r.lost, l) }
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return r, err
		}
		cols := b.Columns()
		for i := range int(b.NumRows()) {
			line = line[:0]
			for c, a := range cols {
				if c > 0 {
					line = append(line, '\t')
				}
				line = cellWord(line, a, i)
			}
			r.rows = append(r.rows, string(line))
		}
	}
	r.findings = t.Findings()
	return r, nil
}

// columnWords describes an Arrow field as Drive.java prints a column of Kudu's client, without the length of a VARCHAR,
// which no Arrow type has.
func columnWords(f arrow.Field, key bool) string {
	typ, prec, scale := "?"+f.Type.String(), int32(0), int32(0)
	switch t := f.Type.(type) {
	case *arrow.BooleanType:
		typ = "BOOL"
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		typ = strings.ToUpper(t.Name())
	case *arrow.Float32Type:
		typ = "FLOAT"
	case *arrow.Float64Type:
		typ = "DOUBLE"
	case *arrow.StringType:
		typ = "STRING"
	case *arrow.BinaryType:
		typ = "BINARY"
	case *arrow.Date32Type:
		typ = "DATE"
	case *arrow.TimestampType:
		if t.Unit == arrow.Microsecond && t.TimeZone == "UTC" {
			typ = "UNIXTIME_MICROS"
		}
	case arrow.DecimalType:
		typ, prec, scale = "DECIMAL", t.GetPrecision(), t.GetScale()
	}
	return fmt.Sprintf("%s\t%s\t%v\t%v\t%d\t%d", f.Name, typ, key, f.Nullable, prec, scale)
}

// clientColumn returns a line of Drive.java's `columns`, as far as an Arrow schema can express it.
func clientColumn(line string) string {
	f := strings.Split(line, "\t")
	if f[1] == "VARCHAR" {
		f[1] = "STRING"
	}
	return strings.Join(f[:6], "\t")
}

// difference describes the first difference between two lists of rows; "" if they are equal.
func difference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] == want[i] {
			continue
		}
		g, w := strings.Split(got[i], "\t"), strings.Split(want[i], "\t")
		var cols []string
		for j := range max(len(g), len(w)) {
			if j >= len(g) || j >= len(w) {
				cols = append(cols, fmt.Sprintf("%d columns, Kudu %d", len(g), len(w)))
				break
			}
			if g[j] != w[j] && len(cols) < 4 {
				cols = append(cols, fmt.Sprintf("column %d: %.80s, Kudu %.80s", j, g[j], w[j]))
			}
		}
		return fmt.Sprintf("%d rows, Kudu %d; row %d (key %.60s, Kudu's %.60s) %s", len(got), len(want), i, g[0],
			w[0], strings.Join(cols, "; "))
	}
	if len(got) != len(want) {
		more, what := got, "too many"
		if len(want) > len(got) {
			more, what = want, "missing"
		}
		return fmt.Sprintf("%d rows, Kudu %d; from row %d on they are %s: %.120s", len(got), len(want),
			min(len(got), len(want)), what, more[min(len(got), len(want))])
	}
	return ""
}

// TestCellWords: Arrow values have the same notation as the cells that they were made from.
func TestCellWords(t *testing.T) {
	for _, c := range []struct {
		typ arrow.DataType
		raw any
		v   cell
	}{
		{arrow.FixedWidthTypes.Boolean, true, true},
		{arrow.PrimitiveTypes.Int8, int8(-128), int64(-128)},
		{arrow.PrimitiveTypes.Int16, int16(-32768), int64(-32768)},
		{arrow.PrimitiveTypes.Int32, int32(math.MinInt32), int64(math.MinInt32)},
		{arrow.PrimitiveTypes.Int64, int64(math.MinInt64), int64(math.MinInt64)},
		{arrow.PrimitiveTypes.Float32, float32(math.Copysign(0, -1)), float32(math.Copysign(0, -1))},
		{arrow.PrimitiveTypes.Float64, math.Inf(-1), math.Inf(-1)},
		{arrow.BinaryTypes.String, "é\x00", []byte("é\x00")},
		{arrow.BinaryTypes.Binary, []byte{0xff, 0}, []byte{0xff, 0}},
	} {
		b := array.NewBuilder(memory.DefaultAllocator, c.typ)
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(c.raw.(bool))
		case *array.Int8Builder:
			b.Append(c.raw.(int8))
		case *array.Int16Builder:
			b.Append(c.raw.(int16))
		case *array.Int32Builder:
			b.Append(c.raw.(int32))
		case *array.Int64Builder:
			b.Append(c.raw.(int64))
		case *array.Float32Builder:
			b.Append(c.raw.(float32))
		case *array.Float64Builder:
			b.Append(c.raw.(float64))
		case *array.StringBuilder:
			b.Append(c.raw.(string))
		case *array.BinaryBuilder:
			b.Append(c.raw.([]byte))
		}
		b.AppendNull()
		a := b.NewArray()
		if g := string(cellWord(nil, a, 0)); g != wired(c.v) {
			t.Errorf("%s: %s, want %s", c.typ, g, wired(c.v))
		}
		if g := cellWord(nil, a, 1); !bytes.Equal(g, []byte("N")) {
			t.Errorf("%s: null is %s", c.typ, g)
		}
	}
	d := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: 2})
	if err := d.AppendValueFromString("-1000000000000000000000000000000000.05"); err != nil {
		t.Fatal(err)
	}
	want, _ := new(big.Int).SetString("-100000000000000000000000000000000005", 10)
	if g := string(cellWord(nil, d.NewArray(), 0)); g != wired(want) {
		t.Errorf("decimal: %s, want %s", g, wired(want))
	}
}

// TestDifference: every kind of difference between rows is noticed.
func TestDifference(t *testing.T) {
	want := []string{"1\ta", "2\tb", "3\tc"}
	for _, bad := range [][]string{nil, want[:2], {"1\ta", "2\tb", "3\tc", "4\td"}, {"1\ta", "2\tB", "3\tc"},
		{"2\tb", "1\ta", "3\tc"}, {"1\ta", "2", "3\tc"}} {
		if difference(bad, want) == "" {
			t.Errorf("%q was not noticed", bad)
		}
	}
	if d := difference(want, want); d != "" {
		t.Error(d)
	}
}
