package laws_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/region"
)

// alteringLoad is a load that alters the rows passed to it.
type alteringLoad struct {
	format.Load
	change func(b arrow.RecordBatch) arrow.RecordBatch
}

func (l alteringLoad) Write(ctx context.Context, b arrow.RecordBatch) error {
	return l.Load.Write(ctx, l.change(b))
}

// alteringFormats returns the formats whose tables can be changed, with loads that apply change to their rows.
func alteringFormats(change func(b arrow.RecordBatch) arrow.RecordBatch) (formats []format.Format) {
	for _, f := range stoa.Formats {
		if f.Change == nil || f.Change.Append == nil {
			continue
		}
		own, right := *f.Change, *f.Change
		own.Append = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema,
			o format.LoadOptions) (format.Load, error) {
			l, err := right.Append(ctx, p, sc, o)
			return alteringLoad{l, change}, err
		}
		own.Delete = func(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile,
			l format.Load) (int64, error) {
			if l, ok := l.(alteringLoad); ok {
				return right.Delete(ctx, p, rows, l.Load)
			}
			return right.Delete(ctx, p, rows, l)
		}
		f.Change = &own
		formats = append(formats, f)
	}
	return formats
}

// replaced returns b with the named column replaced by the result of with.
func replaced(b arrow.RecordBatch, name string, with func(a arrow.Array) arrow.Array) arrow.RecordBatch {
	cols := append([]arrow.Array{}, b.Columns()...)
	for i := range cols {
		if b.ColumnName(i) == name {
			cols[i] = with(cols[i])
		}
	}
	return array.NewRecordBatch(b.Schema(), cols, b.NumRows())
}

// TestChangesAreChecked: if a load or an update of a table of any layout writes wrong rows, the table stays unchanged,
// file by file, and the error names the column, unless checking is turned off. A change that writes the right rows
// takes effect.
func TestChangesAreChecked(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "part", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[
		{"id":1,"name":"a","day":"2020-01-01","part":"x"}, {"id":2,"name":null,"day":"2020-01-02","part":"y"},
		{"id":3,"name":"c","day":null,"part":"x"}, {"id":4,"name":"d","day":"2020-01-04","part":null}]`))
	if err != nil {
		t.Fatal(err)
	}
	other := func(a arrow.Array) arrow.Array { // the first value is replaced
		b := array.NewBuilder(memory.DefaultAllocator, a.DataType())
		for i := range a.Len() {
			text := a.ValueStr(i)
			if i == 0 {
				text = map[bool]string{true: "2021-02-03", false: "77"}[strings.Contains(text, "-")]
			}
			if err := b.AppendValueFromString(text); err != nil {
				t.Fatal(err)
			}
		}
		return b.NewArray()
	}
	faults := map[string]struct {
		change func(b arrow.RecordBatch) arrow.RecordBatch
		says   string
	}{
		"a row less": {func(b arrow.RecordBatch) arrow.RecordBatch { return b.NewSlice(1, b.NumRows()) }, "came back"},
		"another number": {func(b arrow.RecordBatch) arrow.RecordBatch { return replaced(b, "id", other) },
			"other values in the column id"},
		"another day": {func(b arrow.RecordBatch) arrow.RecordBatch { return replaced(b, "day", other) },
			"other values in the column day"},
		"another partition": {func(b arrow.RecordBatch) arrow.RecordBatch { return replaced(b, "part", other) },
			"other values in the column part"},
	}
	day := "2022-03-04"
	changes := map[string]func(c *stoa.Changer, noCheck bool) error{
		"load": func(c *stoa.Changer, noCheck bool) error {
			r, err := c.Append(t.Context(), sc, onceRows(rows), stoa.AppendOptions{NoCheck: noCheck})
			if err == nil && (r.Checked == noCheck || len(r.UncheckedColumns) > 0) {
				t.Errorf("checked %v (%s), except columns %v", r.Checked, r.Unchecked, r.UncheckedColumns)
			}
			return err
		},
		"update": func(c *stoa.Changer, noCheck bool) error {
			_, err := c.Update(t.Context(), stoa.UpdateOptions{Where: "id < 4", NoCheck: noCheck,
				Set: map[string]*string{"day": &day}})
			return err
		},
	}
	for layout, spec := range map[string]format.TableSpec{"plain": {}, "partitioned": {Partition: []string{"part"}},
		"by two": {Partition: []string{"part", "day"}}, "sorted": {SortColumns: []string{"name"}},
		"bucketed": {BucketBy: []string{"name"}, Buckets: 3}} {
		dir := filepath.Join(t.TempDir(), "t")
		if err := stoa.CreateTable(t.Context(), dir, sc, stoa.CreateTableOptions{TableSpec: spec},
			stoa.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		right := changerOf(t, dir, nil)
		for _, what := range []string{"load", "update", "load"} {
			if err := changes[what](right, false); err != nil {
				t.Fatalf("%s, %s: %v", layout, what, err)
			}
			for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
				if err != nil || f.Severity >= region.Warning {
					t.Errorf("%s, %s: %v, %s: %s", layout, what, err, f.Code, f.Message)
				}
			}
		}
		before, n := state(t, dir), countRows(t, right)
		for what, do := range changes {
			for name, l := range faults {
				c := changerOf(t, dir, alteringFormats(l.change))
				if err := do(c, false); !stoa.IsUnproven(err) || !strings.Contains(err.Error(), l.says) {
					t.Errorf("%s, %s, %s: %v", layout, what, name, err)
				}
				if after := state(t, dir); !maps.Equal(before, after) || countRows(t, right) != n {
					t.Errorf("%s, %s, %s: the table has changed, from %d files to %d", layout, what, name,
						len(before), len(after))
				}
			}
		}
		for what, do := range changes {
			if err := do(changerOf(t, dir, alteringFormats(faults["another number"].change)), true); err != nil {
				t.Errorf("%s, %s, not checked: %v", layout, what, err)
			}
		}
	}
}

func changerOf(t *testing.T, dir string, formats []format.Format) *stoa.Changer {
	t.Helper()
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUpdatesOfEveryType: a value set by an update is read back as that value, for every type.
func TestUpdatesOfEveryType(t *testing.T) {
	types := map[string]struct {
		t      arrow.DataType
		values []string
	}{
		"b":  {arrow.FixedWidthTypes.Boolean, []string{"true", "false"}},
		"i1": {arrow.PrimitiveTypes.Int8, []string{"-128", "127"}},
		"i2": {arrow.PrimitiveTypes.Int16, []string{"-32768"}},
		"i4": {arrow.PrimitiveTypes.Int32, []string{"2147483647"}},
		"i8": {arrow.PrimitiveTypes.Int64, []string{"-9223372036854775808", "9223372036854775807", "007"}},
		"f4": {arrow.PrimitiveTypes.Float32, []string{"0.1", "-0", "1e30"}},
		"f8": {arrow.PrimitiveTypes.Float64, []string{"0.1", "5e-324", "-1e308"}},
		"d":  {arrow.FixedWidthTypes.Date32, []string{"1969-12-31", "2024-02-29"}},
		"ts": {arrow.FixedWidthTypes.Timestamp_ms, []string{"2024-02-29 12:34:56.789", "1969-12-31 23:59:59",
			"2024-02-29T12:34:56Z"}},
		"s": {arrow.BinaryTypes.String, []string{"", "null", "(null)", "it's"}},
		"n": {&arrow.Decimal128Type{Precision: 38, Scale: 10}, []string{"1.5", "-0.0000000001",
			"1234567890123456789012345678.0123456789", "9999999999999999999999999999.9999999999", "0"}},
	}
	fields := []arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
	for _, name := range []string{"b", "i1", "i2", "i4", "i8", "f4", "f8", "d", "ts", "s", "n"} {
		fields = append(fields, arrow.Field{Name: name, Type: types[name].t, Nullable: true})
	}
	sc := arrow.NewSchema(fields, nil)
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[{"k":1},{"k":2},{"k":3}]`))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := stoa.CreateTable(t.Context(), dir, sc, stoa.CreateTableOptions{}, stoa.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	c := changerOf(t, dir, nil)
	if _, err := c.Append(t.Context(), sc, onceRows(rows), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, x := range types {
		for _, v := range x.values {
			if n, err := c.Update(t.Context(), stoa.UpdateOptions{Where: "k <> 2",
				Set: map[string]*string{name: &v}}); err != nil || n != 2 {
				t.Errorf("%s=%s: %d, %v", name, v, n, err)
			}
		}
	}
}

// TestAlteredValuesAreCounted: a load reports the columns whose values one of its options changes, and how many values
// it changes; the rest of the values is still compared.
func TestAlteredValuesAreCounted(t *testing.T) {
	list := arrow.ListOf(arrow.BinaryTypes.String)
	sc := arrow.NewSchema([]arrow.Field{{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "l", Type: list, Nullable: true}, {Name: "part", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[
		{"ts":"2020-01-01T00:00:00.123456Z","l":["a"],"part":"x"},
		{"ts":"2020-01-01T00:00:00.123Z","l":[null],"part":""},
		{"ts":"1969-01-01T00:00:00.000001Z","l":[null,null],"part":"y"}, {"ts":null,"l":[],"part":null}]`))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := stoa.CreateTable(t.Context(), dir, sc, stoa.CreateTableOptions{TableSpec: format.TableSpec{
		Partition: []string{"part"}}}, stoa.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	o := stoa.AppendOptions{Opts: map[string]string{"timestamps": "truncate", "nulls": "merge"}}
	for _, o.NoCheck = range []bool{false, true} {
		r, err := changerOf(t, dir, nil).Append(t.Context(), sc, onceRows(rows), o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r.Altered)
		if want := `[{"column":"ts","option":"timestamps=truncate","values":2},` +
			`{"column":"l","option":"nulls=merge","values":1},` +
			`{"column":"part","option":"nulls=merge","values":1}]`; err != nil || string(b) != want {
			t.Errorf("%s, %v", b, err)
		}
		if got := strings.Join(r.UncheckedColumns, " "); !o.NoCheck && got != "l part" {
			t.Errorf("not checked: %s", got)
		}
	}
	wrong := alteringFormats(func(b arrow.RecordBatch) arrow.RecordBatch {
		return replaced(b, "ts", func(a arrow.Array) arrow.Array {
			return array.MakeArrayOfNull(memory.DefaultAllocator, a.DataType(), a.Len())
		})
	})
	o.NoCheck = false
	if _, err := changerOf(t, dir, wrong).Append(t.Context(), sc, onceRows(rows), o); !stoa.IsUnproven(err) {
		t.Errorf("another timestamp than the truncated one is not noticed: %v", err)
	}
}
