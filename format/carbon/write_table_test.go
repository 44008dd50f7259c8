package carbon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/carbon"
	"stoa/format/formattest"
	"stoa/pred"
	"stoa/store"
)

// Tables that are created, loaded and changed. Their expected contents follow from the rows that were written;
// interop/carbon checks that CarbonData agrees.

var orderFields = []arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "amount", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
}

// orders returns the rows [from, to).
func orders(from, to int) arrow.RecordBatch {
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, arrow.NewSchema(orderFields, nil))
	defer b.Release()
	for i := from; i < to; i++ {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		if i%10 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("n", i%7, "/x y"))
		}
		b.Field(2).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 101))
		b.Field(3).(*array.Date32Builder).Append(arrow.Date32(18000 + i%5))
	}
	return b.NewRecordBatch()
}

// newOrders creates a table and loads rows segment by segment.
func newOrders(t testing.TB, spec carbon.TableSpec, segments ...[2]int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "orders")
	spec.Schema = arrow.NewSchema(orderFields, nil)
	if err := carbon.CreateTable(dir, filepath.Dir(dir), spec); err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		loadOrders(t, dir, s[0], s[1])
	}
	return dir
}

func loadOrders(t testing.TB, dir string, from, to int) {
	t.Helper()
	b := orders(from, to)
	l, err := carbon.BeginLoad(t.Context(), dir, b.Schema(),
		carbon.LoadOptions{Tasks: 2, Opts: map[string]string{"page-rows": "40", "version": "3"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < to-from; i += 30 {
		if err := l.Write(t.Context(), b.NewSlice(int64(i), int64(min(i+30, to-from)))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	formattest.Sound(t, &carbon.Format, store.Local{}, dir)
}

// ids returns the ids in a table, ascending.
func ids(t testing.TB, dir string, opts map[string]string) (out []int32) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"id"}}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Column(0).(*array.Int32).Int32Values()...)
	}
	slices.Sort(out)
	return out
}

func span(from, to int) (out []int32) {
	for i := from; i < to; i++ {
		out = append(out, int32(i))
	}
	return out
}

// healthy verifies a table in full.
func healthy(t testing.TB, dir string) {
	t.Helper()
	for f := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{Formats: formats}) {
		// CarbonData has no checksums, and leaves files that it no longer needs
		if f.Code != "file.unchecked" && f.Code != "carbon.leftover" {
			t.Errorf("%s: %s %s", f.Code, f.Message, f.At)
		}
	}
}

func TestTableLoads(t *testing.T) {
	for name, spec := range map[string]carbon.TableSpec{"plain": {},
		"sorted":     {SortColumns: []string{"name", "day"}, Inverted: []string{"name"}},
		"buckets":    {Buckets: 4, BucketBy: []string{"name", "id"}},
		"partitions": {Partition: []string{"name", "day"}},
		"both":       {Partition: []string{"day"}, SortColumns: []string{"id"}}} {
		t.Run(name, func(t *testing.T) {
			dir := newOrders(t, spec, [2]int{0, 200}, [2]int{200, 350})
			if got := ids(t, dir, nil); !slices.Equal(got, span(0, 350)) {
				t.Errorf("%d rows", len(got))
			}
			if got := ids(t, dir, map[string]string{"segment": "1"}); !slices.Equal(got, span(200, 350)) {
				t.Errorf("segment 1: %d rows", len(got))
			}
			_, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			inInputOrder(got)
			if d := differ(got, lines(orders(0, 350)), false); d != "" {
				t.Error(d)
			}
			healthy(t, dir)
		})
	}
}

// gone returns the rows of a table that match a predicate.
func gone(t testing.TB, dir, where string) (out []carbon.Deleted) {
	t.Helper()
	filter, err := pred.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := stoa.Open(t.Context(), dir,
		stoa.OpenOptions{Formats: formats, Opts: map[string]string{"positions": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(),
		stoa.ScanSpec{Columns: []string{carbon.FileColumn, carbon.RowColumn}, Filter: filter}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			file, row := b.Column(0).(*array.String).Value(i), b.Column(1).(*array.Int64).Value(i)
			if k := len(out); k == 0 || out[k-1].File != file {
				out = append(out, carbon.Deleted{File: file})
			}
			out[len(out)-1].Rows = append(out[len(out)-1].Rows, row)
		}
	}
	return out
}

func TestTableChanges(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{SortColumns: []string{"name"}}, [2]int{0, 100}, [2]int{100, 200},
		[2]int{200, 300})
	del := func(where string, want int64) {
		t.Helper()
		if n, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, where)); err != nil || n != want {
			t.Fatal(n, err)
		}
	}
	want := func(list ...[]int32) {
		t.Helper()
		if got := ids(t, dir, nil); !slices.Equal(got, slices.Concat(list...)) {
			t.Errorf("%d rows: %v", len(got), got)
		}
		healthy(t, dir)
	}
	del("id >= 50 and id < 120", 70)
	del("id = 7", 1)
	del("id >= 200 and id < 300", 100)
	del("id = 5000", 0)
	left := [][]int32{span(0, 7), span(8, 50), span(120, 200)}
	want(left...)

	list := gone(t, dir, "id = 3")
	if n, err := carbon.DeleteRows(t.Context(), dir,
		[]carbon.Deleted{{File: list[0].File, Rows: []int64{list[0].Rows[0], list[0].Rows[0]}}}); err == nil {
		t.Errorf("got %d rows deleted, want 1", n)
	}
	want(left...)
	b := orders(1003, 1004)
	l, err := carbon.BeginUpdate(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
	if err == nil {
		err = l.Write(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	want(left...)
	if n, err := carbon.UpdateRows(t.Context(), dir, list, l); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	left = [][]int32{span(0, 3), span(4, 7), span(8, 50), span(120, 200), {1003}}
	want(left...)

	// Unneeded files are removed and deletes remain, even if the first entry of tablestatus, which names them, is
	// removed. Segment 2 has no rows left.
	if err := carbon.DeleteSegments(t.Context(), dir, []string{"0"}); err != nil {
		t.Fatal(err)
	}
	want(span(120, 200), []int32{1003})
	dry, err := carbon.Clean(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	c, err := carbon.Clean(t.Context(), dir, false)
	if err != nil || !slices.Equal(c.Files, dry.Files) || !slices.Equal(c.Segments, []string{"0", "2"}) {
		t.Errorf("%v, %v, %v", c, dry, err)
	}
	want(span(120, 200), []int32{1003})

	// Compaction on request applies the deletes.
	plan, err := carbon.PlanCompaction(dir, true, nil)
	if err != nil || len(plan) != 1 || plan[0].To != "1.1" {
		t.Fatal(plan, err)
	}
	compactOrders(t, dir, plan[0])
	want(span(120, 200), []int32{1003})
	if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	want(span(120, 200), []int32{1003})
	loadOrders(t, dir, 400, 410)
	want(span(120, 200), span(400, 410), []int32{1003})
}

func compactOrders(t testing.TB, dir string, c carbon.Compaction) {
	t.Helper()
	var from string
	for i, n := range c.From {
		if i > 0 {
			from += ","
		}
		from += n
	}
	tab, err := stoa.Open(t.Context(), dir,
		stoa.OpenOptions{Formats: formats, Opts: map[string]string{"segments": from}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	l, err := carbon.BeginCompaction(t.Context(), dir, tab.Schema(), c.From, c.To, true, carbon.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err == nil {
			err = l.Write(t.Context(), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMinorCompactionPlan(t *testing.T) {
	var segments [][2]int
	for i := range 9 {
		segments = append(segments, [2]int{i, i + 1})
	}
	dir := newOrders(t, carbon.TableSpec{}, segments...)
	plan, err := carbon.PlanCompaction(dir, false, nil)
	if err != nil || fmt.Sprint(plan) != "[{[0 1 2 3] 0.1} {[4 5 6 7] 4.1}]" {
		t.Error(plan, err)
	}
	for _, ids := range [][]string{{"2", "77"}, {"2", "3", "2"}} {
		if plan, err = carbon.PlanCompaction(dir, false, ids); err == nil {
			t.Error("a missing or repeated segment: got no error, want one", plan)
		}
	}
	plan, err = carbon.PlanCompaction(dir, false, []string{"5", "3"})
	if err != nil || fmt.Sprint(plan) != "[{[3 5] 3.1}]" {
		t.Error(plan, err)
	}
}

func TestSchemaEvolution(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 3})
	def := "1.5"
	for _, f := range []struct {
		f   arrow.Field
		def *string
	}{{arrow.Field{Name: "Rate", Type: &arrow.Decimal128Type{Precision: 8, Scale: 3}}, &def},
		{arrow.Field{Name: "since", Type: arrow.FixedWidthTypes.Date32}, nil}} {
		if err := carbon.AddColumn(t.Context(), dir, f.f, f.def); err != nil {
			t.Fatal(err)
		}
	}
	if err := carbon.AddColumn(t.Context(), dir, arrow.Field{Name: "ID", Type: arrow.PrimitiveTypes.Int8},
		nil); err == nil {
		t.Error("a duplicate name: got no error, want one")
	}
	if err := carbon.DropColumn(t.Context(), dir, "amount"); err != nil {
		t.Fatal(err)
	}
	sc, rows, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil || sc.NumFields() != 5 || len(rows) != 3 {
		t.Fatal(sc, rows, err)
	}
	if got := rows[2].String(); got != `day=2019-04-16 id=2 name="n2/x y" rate=1.500 since=null ` {
		t.Error(got)
	}
	healthy(t, dir)
}

// TestLoadRefuses: loads that must fail leave the table unchanged.
func TestLoadRefuses(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	before, err := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
	if err != nil {
		t.Fatal(err)
	}
	one := func(f arrow.Field, v string) error {
		b := array.NewBuilder(arrowMemory.DefaultAllocator, f.Type)
		if err := b.AppendValueFromString(v); err != nil {
			t.Fatal(err)
		}
		a := b.NewArray()
		sc := arrow.NewSchema([]arrow.Field{f}, nil)
		l, err := carbon.BeginLoad(t.Context(), dir, sc, carbon.LoadOptions{})
		if err != nil {
			return err
		}
		err = l.Write(t.Context(), array.NewRecordBatch(sc, []arrow.Array{a}, 1))
		if err == nil {
			t.Error("got no error, want one: ", f, v)
		}
		return errors.Join(err, l.Abort(t.Context()))
	}
	for _, c := range []struct {
		f arrow.Field
		v string
	}{
		{arrow.Field{Name: "nobody", Type: arrow.PrimitiveTypes.Int32}, "1"},
		{arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, "3000000000"},
		{arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}, "seven"},
		{arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Float64}, "1"},
		{arrow.Field{Name: "name", Type: arrow.BinaryTypes.String}, "@NU#LL$!"},
		{arrow.Field{Name: "amount", Type: arrow.PrimitiveTypes.Float64}, "1.005"},
		{arrow.Field{Name: "amount", Type: arrow.PrimitiveTypes.Int64}, "123456789"},
		{arrow.Field{Name: "day", Type: arrow.BinaryTypes.String}, "2024-13-01"},
	} {
		if err := one(c.f, c.v); err == nil {
			t.Errorf("%s %s: got no error, want one", c.f, c.v)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
	if err != nil || string(after) != string(before) {
		t.Errorf("got tablestatus %s, %v", after, err)
	}
	if c, err := carbon.Clean(t.Context(), dir, true); err != nil || len(c.Files) > 0 {
		t.Error("leftovers:", c.Files, err)
	}
}

// TestLoading: tablestatus uses CarbonData's own word for a load in progress (SegmentStatus.java; interop/carbon has
// CarbonData write it). Clean removes such entries once nobody holds their locks, including those with the spelling of
// older writers.
func TestLoading(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	name := filepath.Join(dir, "Metadata", "tablestatus")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := carbon.BeginLoad(t.Context(), dir, orders(0, 1).Schema(), carbon.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	during, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(during), `"loadStatus":"In Progress"`) {
		t.Errorf("%s, %v", during, err)
	}
	if c, err := carbon.Clean(t.Context(), dir, false); err != nil || len(c.Segments) > 0 {
		t.Error("a running load was cleaned: ", c, err)
	}
	if err := l.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("%s, %v", after, err)
	}
	for _, status := range []string{"In Progress", "Insert In Progress", "Overwrite In Progress",
		"Insert Overwrite In Progress"} {
		left := strings.Replace(string(during), `"loadStatus":"In Progress"`, `"loadStatus":"`+status+`"`, 1)
		if err := os.WriteFile(name, []byte(left), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, dir, nil); len(got) != 10 {
			t.Errorf("%s: %d rows", status, len(got))
		}
		if c, err := carbon.Clean(t.Context(), dir, false); err != nil || !slices.Equal(c.Segments, []string{"1"}) {
			t.Error(status, c, err)
		}
	}
}

// TestEmptyPartition: values that cannot be the name of a partition's directory are refused.
func TestEmptyPartition(t *testing.T) {
	for _, v := range []string{"", "__HIVE_DEFAULT_PARTITION__"} {
		dir := filepath.Join(t.TempDir(), "t")
		sc := arrow.NewSchema([]arrow.Field{{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
		if err := carbon.CreateTable(dir, "", carbon.TableSpec{Schema: sc, Partition: []string{"p"}}); err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
		b.Field(0).(*array.StringBuilder).AppendValues([]string{"a", v}, nil)
		b.Field(1).(*array.Int32Builder).AppendValues([]int32{1, 2}, nil)
		rows := b.NewRecordBatch()
		load := func(opts map[string]string) error {
			l, err := carbon.BeginLoad(t.Context(), dir, sc, carbon.LoadOptions{Opts: opts})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Write(t.Context(), rows); err != nil {
				return errors.Join(err, l.Abort(t.Context()))
			}
			_, err = l.Close(t.Context())
			return err
		}
		if err := load(nil); err == nil || !strings.Contains(err.Error(), "column p, row 1") {
			t.Errorf("%q: %v", v, err)
		}
		if err := load(map[string]string{"nulls": "merge"}); err != nil {
			t.Error(err)
		}
		if got := ids(t, dir, nil); !slices.Equal(got, []int32{1, 2}) {
			t.Error(got)
		}
	}
}

// TestEmptyLists: pages of items without items.
func TestEmptyLists(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int16), Nullable: true},
		{Name: "s", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "d", Type: arrow.ListOf(arrow.FixedWidthTypes.Date32), Nullable: true}}, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	for i := range 5 {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		for k := 1; k < 4; k++ {
			b.Field(k).(*array.ListBuilder).Append(true)
		}
	}
	rows := b.NewRecordBatch()
	out := filepath.Join(t.TempDir(), "x.carbondata")
	w, err := stoa.Create(t.Context(), out, sc,
		stoa.CreateOptions{Formats: formats, To: "carbon", Opts: map[string]string{"page-rows": "2"}, Rows: -1})
	if err == nil {
		err = w.Write(t.Context(), rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, got, err := read(t, out, stoa.OpenOptions{}, stoa.ScanSpec{})
	if d := differ(got, lines(rows), false); err != nil || d != "" {
		t.Error(d, err)
	}
	healthy(t, out)
}

// TestProperties: properties that contradict the table are refused.
func TestProperties(t *testing.T) {
	for _, c := range [][2]string{{"sort_columns", "id"}, {"sort_scope", "global_sort"}, {"table_blocksize", "abc"},
		{"table_blocksize", "0"}, {"local_dictionary_enable", "maybe"},
		{"streaming", "maybe"}, {"carbon.column.compressor", "lz4"}, {"LOCAL_DICTIONARY_ENABLE", "false"},
		{"bucket_number", "3"}} {
		dir := filepath.Join(t.TempDir(), "t")
		if err := carbon.CreateTable(dir, "",
			carbon.TableSpec{Schema: arrow.NewSchema(orderFields, nil),
				Properties: map[string]string{c[0]: c[1]}}); err == nil {
			t.Error(c, ": got no error, want one")
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error(c, ": got a directory, want none")
		}
	}
}
