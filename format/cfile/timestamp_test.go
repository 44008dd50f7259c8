package cfile_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// written writes columns with stoa.Create, to a file or a directory.
func written(sc *arrow.Schema, arrs []arrow.Array, opts map[string]string) (*store.Memory, error) {
	ctx, tree := context.Background(), store.NewMemory(nil)
	w, err := stoa.Create(ctx, "t", sc, stoa.CreateOptions{To: "cfile", Opts: opts, Sink: tree.Sink("t")})
	if err != nil {
		return tree, err
	}
	b := array.NewRecordBatch(sc, arrs, int64(arrs[0].Len()))
	defer b.Release()
	if err := w.Write(ctx, b); err != nil {
		return tree, errors.Join(err, w.Abort(ctx))
	}
	_, err = w.Close(ctx)
	return tree, err
}

// readBack returns the schema as read back, and the first column of the rows that a filter selects.
func readBack(t *testing.T, tree *store.Memory, where string) (*arrow.Schema, []string) {
	t.Helper()
	formattest.Sound(t, &cfile.Format, tree, "t")
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec := stoa.ScanSpec{}
	if where != "" {
		if spec.Filter, err = pred.Parse(where); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).ValueStr(i))
		}
	}
	return tab.Schema(), out
}

func bad(t *testing.T, tree *store.Memory) (out []string) {
	for x := range cfile.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
		format.OpenOptions{Depth: format.Deep}) {
		if x.Severity >= region.Warning {
			out = append(out, x.Code+" "+x.Message)
		}
	}
	return out
}

// TestTimestamps: timestamps of every unit and zone are read as they were written, in a file and in a directory, with
// nulls, in lists, and through a value index.
func TestTimestamps(t *testing.T) {
	values := []int64{math.MinInt64 / 2_000_000_000, -86_400, -1, 0, 1, 1_600_000_000, 1_600_000_001,
		math.MaxInt64 / 2_000_000_000}
	for _, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		per := map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1_000, arrow.Microsecond: 1_000_000,
			arrow.Nanosecond: 1_000_000_000}[unit]
		for _, zone := range []string{"", "UTC", "Europe/Berlin"} {
			typ := &arrow.TimestampType{Unit: unit, TimeZone: zone}
			one, list := array.NewTimestampBuilder(memory.DefaultAllocator, typ),
				array.NewListBuilder(memory.DefaultAllocator, typ)
			nulls := array.NewTimestampBuilder(memory.DefaultAllocator, typ)
			for i, x := range values {
				one.Append(arrow.Timestamp(x * per))
				if nulls.Append(arrow.Timestamp(x * per)); i%2 == 0 {
					nulls.AppendNull()
				}
				list.Append(true)
				list.ValueBuilder().(*array.TimestampBuilder).Append(arrow.Timestamp(x * per))
				list.ValueBuilder().AppendNull()
			}
			for what, arr := range map[string]arrow.Array{"values": one.NewArray(), "nulls": nulls.NewArray(),
				"list": list.NewArray()} {
				for _, opts := range []map[string]string{{}, {"layout": "dir"}, {"value-index": "true"},
					{"value-index": "true", "layout": "dir"},
					{"version": "1"}, {"layout": "dir", "plain-metadata": "true"}} {
					if opts["value-index"] != "" && what != "values" || opts["version"] == "1" && what == "list" {
						continue
					}
					name := fmt.Sprint(typ, " ", what, " ", opts)
					sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType(), Nullable: true}}, nil)
					tree, err := written(sc, []arrow.Array{arr}, opts)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						continue
					}
					got, cells := readBack(t, tree, "")
					if f := got.Field(0); !arrow.TypeEqual(f.Type, arr.DataType()) || !f.Nullable {
						t.Errorf("%s: read as %s, nullable %t", name, f.Type, f.Nullable)
					}
					var want []string
					for i := range arr.Len() {
						want = append(want, arr.ValueStr(i))
					}
					if !slices.Equal(cells, want) {
						t.Errorf("%s: got %v\nwant %v", name, cells, want)
					}
					if found := bad(t, tree); len(found) > 0 {
						t.Errorf("%s: %v", name, found)
					}
					if what != "values" {
						continue
					}
					_, some := readBack(t, tree,
						"c >= timestamp '1970-01-01T00:00:01Z' and c < timestamp '2020-09-13T12:26:41Z'")
					if !slices.Equal(some, want[4:6]) {
						t.Errorf("%s: the filter gives %v, want %v", name, some, want[4:6])
					}
				}
			}
		}
	}
}

// TestCoerce: nanoseconds that are not whole microseconds are refused with column and row, or rounded as the option
// states.
func TestCoerce(t *testing.T) {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_ns.(*arrow.TimestampType))
	in := []int64{-1_501, -1_500, -1_499, -1_000, -1, 0, 499, 500, 1_999, 2_000}
	for _, x := range in {
		b.Append(arrow.Timestamp(x))
	}
	arr := b.NewArray()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType(), Nullable: true}}, nil)
	_, err := written(sc, []arrow.Array{arr}, nil)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `column "c", row 0`) ||
		!strings.Contains(err.Error(), "coerce=") {
		t.Errorf("without the option: %v", err)
	}
	for _, opts := range []map[string]string{{"coerce": "us"}, {"coerce.c": "us"}, {"coerce": "floor"},
		{"coerce.c": "floor", "layout": "dir"}} {
		nearest := opts["coerce"] == "us" || opts["coerce.c"] == "us"
		tree, err := written(sc, []arrow.Array{arr}, opts)
		if err != nil {
			t.Errorf("%v: %v", opts, err)
			continue
		}
		var want []string
		for _, x := range in {
			y := math.Floor(float64(x) / 1000)
			if nearest {
				y = math.Floor(float64(x)/1000 + 0.5)
			}
			w := array.NewTimestampBuilder(memory.DefaultAllocator,
				arrow.FixedWidthTypes.Timestamp_ns.(*arrow.TimestampType))
			w.Append(arrow.Timestamp(int64(y) * 1000))
			want = append(want, w.NewArray().ValueStr(0))
		}
		if _, got := readBack(t, tree, ""); !slices.Equal(got, want) {
			t.Errorf("%v: got %v\nwant %v", opts, got, want)
		}
	}
	far := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_ns.(*arrow.TimestampType))
	far.Append(math.MinInt64)
	if _, err := written(sc, []arrow.Array{far.NewArray()}, map[string]string{"coerce": "floor"}); !errors.Is(err,
		fault.Invalid) {
		t.Errorf("a microsecond outside the range of nanoseconds: %v, want class Invalid", err)
	}
}

// TestDamagedUnit: a stored timestamp that the column's unit cannot represent is damage for reading and for verify.
func TestDamagedUnit(t *testing.T) {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_ms.(*arrow.TimestampType))
	for i := range 10 {
		b.Append(arrow.Timestamp(i))
	}
	arr := b.NewArray()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType()}}, nil)
	tree, err := written(sc, []arrow.Array{arr}, map[string]string{"encoding": "plain", "checksums": "false"})
	if err != nil {
		t.Fatal(err)
	}
	data := slices.Clone(tree.Bytes("t"))
	at := strings.Index(string(data), "\xb8\x0b\x00\x00\x00\x00\x00\x00") // 3,000 microseconds
	if at < 0 {
		t.Fatal("the value is not in the file")
	}
	data[at]++
	tree = store.NewMemory(map[string][]byte{"t": data})
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for _, err = range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			break
		}
	}
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "whole number") {
		t.Errorf("reading: %v", err)
	}
	if found := bad(t, tree); len(found) == 0 {
		t.Error("verify finds nothing")
	}
}

// TestValueIndexOfNullable: a nullable column without nulls can have a value index; a null is refused with its row. The
// schema is read as it was written.
func TestValueIndexOfNullable(t *testing.T) {
	for _, opts := range []map[string]string{{"value-index": "true"}, {"value-index": "true", "layout": "dir"},
		{"value-index.c": "true", "layout": "dir", "plain-metadata": "true"}} {
		b := array.NewInt32Builder(memory.DefaultAllocator)
		b.AppendValues([]int32{1, 5, 7, 9}, nil)
		sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
		tree, err := written(sc, []arrow.Array{b.NewArray()}, opts)
		if err != nil {
			t.Fatalf("%v: %v", opts, err)
		}
		if got, cells := readBack(t, tree, "c > 5"); !got.Field(0).Nullable ||
			!slices.Equal(cells, []string{"7", "9"}) {
			t.Errorf("%v: %v, %v", opts, got, cells)
		}
		if found := bad(t, tree); len(found) > 0 {
			t.Errorf("%v: %v", opts, found)
		}
		b.AppendValues([]int32{1, 0}, []bool{true, false})
		_, err = written(sc, []arrow.Array{b.NewArray()}, opts)
		if !errors.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), "row 1: null in a column with a value index") {
			t.Errorf("%v: %v", opts, err)
		}
	}
}
