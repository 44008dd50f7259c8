package carbon_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
)

// changer opens a copy of a table of CarbonData 2.3.0 for changes.
func changer(t *testing.T, name string) (c *stoa.Changer, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden2, "managed", name))); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// valuesOf returns the texts of a table's column, sorted.
func valuesOf(t *testing.T, dir, column string) (out []string) {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{Columns: []string{column}}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).ValueStr(i))
		}
	}
	slices.Sort(out)
	return out
}

func text(s string) *string { return &s }

// TestDropPartition drops partitions, including partitions with deleted rows, which the update status still mentions.
func TestDropPartition(t *testing.T) {
	c, dir := changer(t, "managed_part")
	y := valuesOf(t, dir, "y")
	if len(slices.Compact(slices.Clone(y))) < 2 {
		t.Fatalf("the table has partitions %v", y)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "y = " + y[0]}); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "y = 0"}); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	before := snapshot(t, dir)
	o := stoa.PartitionOptions{Partition: format.PartitionValues{"Y": text("0" + y[len(y)-1])}, DryRun: true}
	dry, err := c.DropPartition(t.Context(), o)
	if err != nil || snapshot(t, dir) != before {
		t.Fatalf("a dry run: %v", err)
	}
	o.DryRun = false
	d, err := c.DropPartition(t.Context(), o)
	if err != nil || !slices.Equal(d.Partitions, dry.Partitions) || len(d.Partitions) == 0 {
		t.Fatalf("got %v, %v; want %v", d, err, dry)
	}
	left := slices.DeleteFunc(slices.Clone(y), func(s string) bool { return s == y[0] || s == y[len(y)-1] })
	if got := valuesOf(t, dir, "y"); !slices.Equal(got, left) {
		t.Errorf("got %v, want %v", got, left)
	}
	healthy(t, dir)
	if _, err := c.DropPartition(t.Context(), o); !errors.Is(err, fault.Invalid) {
		t.Errorf("again: got %v, want an error that there is no such partition", err)
	}
	for _, bad := range []format.PartitionValues{{}, {"id": text("1")}, {"y": text("no number")}} {
		_, err := c.DropPartition(t.Context(), stoa.PartitionOptions{Partition: bad})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

// TestOverwrite: a load replaces all rows, or those of a partition, in one commit.
func TestOverwrite(t *testing.T) {
	c, dir := changer(t, "managed_part")
	all := valuesOf(t, dir, "y")
	last := all[len(all)-1]
	if _, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "y = " + all[0]}); err != nil {
		t.Fatal(err)
	}
	rows := wideRows(3)
	defer rows.Release()
	id := rows.Schema().Field(0)
	sc := arrow.NewSchema([]arrow.Field{id}, nil)
	give := func(yield func(arrow.RecordBatch, error) bool) {
		b := rows.NewSlice(0, 3)
		defer b.Release()
		yield(array.NewRecordBatch(sc, b.Columns()[:1], 3), nil)
	}
	o := stoa.AppendOptions{Overwrite: true, Partition: format.PartitionValues{"country": text("new"), "y": text(last)}}
	if _, err := c.Append(t.Context(), sc, give, o); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == all[0] })
	want = append(want, last, last, last) // no other partition has that country
	if got := valuesOf(t, dir, "y"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	healthy(t, dir)
	o.Partition = format.PartitionValues{"y": text(last)}
	if _, err := c.Append(t.Context(), sc, give, o); err != nil { // country is null
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(s string) bool { return s == last })
	want = append(want, last, last, last)
	if got := valuesOf(t, dir, "y"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	healthy(t, dir)
	if _, err := c.Append(t.Context(), sc, give, stoa.AppendOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := valuesOf(t, dir, "id"); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("got %v, want the rows of the last load", got)
	}
	healthy(t, dir)
	none := func(func(arrow.RecordBatch, error) bool) {}
	if _, err := c.Append(t.Context(), sc, none, stoa.AppendOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := valuesOf(t, dir, "id"); len(got) > 0 {
		t.Errorf("got %v, want no rows", got)
	}
	healthy(t, dir)
}

// TestAlterColumns renames columns and widens their types; every row keeps its values.
func TestAlterColumns(t *testing.T) {
	c, dir := changer(t, "managed_del")
	ids, names := valuesOf(t, dir, "id"), valuesOf(t, dir, "name")
	alter := func(column, name, typ string) error {
		o := stoa.AlterColumnOptions{}
		o.Column, o.Name = column, name
		switch typ {
		case "bigint":
			o.Type = &arrow.Field{Type: arrow.PrimitiveTypes.Int64}
		case "string":
			o.Type = &arrow.Field{Type: arrow.BinaryTypes.String}
		}
		return c.AlterColumn(t.Context(), o)
	}
	for _, bad := range [][3]string{{"nothing", "x", ""}, {"id", "name", ""}, {"name", "", "bigint"},
		{"id", "", "string"}} {
		if err := alter(bad[0], bad[1], bad[2]); !errors.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
	if err := errors.Join(alter("id", "", "bigint"), alter("name", "Called", "")); err != nil {
		t.Fatal(err)
	}
	if got := valuesOf(t, dir, "id"); !slices.Equal(got, ids) {
		t.Errorf("got %v, want %v", got, ids)
	}
	if got := valuesOf(t, dir, "called"); !slices.Equal(got, names) {
		t.Errorf("got %v, want %v", got, names)
	}
	healthy(t, dir)
	props := map[string]*string{"comment": text("rows"), "table_blocksize": text("256")}
	if err := c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: props}); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*string{"table_blocksize": text("x"), "sort_columns": text("id"), "nothing": nil} {
		o := stoa.SetPropertiesOptions{Properties: map[string]*string{name: v}}
		if err := c.SetProperties(t.Context(), o); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := c.Rename(t.Context(), stoa.RenameOptions{To: dir + "2"}); err != nil {
		t.Fatal(err)
	}
	if got := valuesOf(t, dir+"2", "id"); !slices.Equal(got, ids) {
		t.Errorf("got %v, want %v", got, ids)
	}
	if n, err := c.Truncate(t.Context(), stoa.TruncateOptions{}); err != nil || len(n) == 0 {
		t.Errorf("truncate: got %v, %v", n, err)
	}
	if got := valuesOf(t, dir+"2", "id"); len(got) > 0 {
		t.Errorf("got %v, want no rows", got)
	}
	healthy(t, dir+"2")
}

// TestAddSegment adds a copy of a segment, which is read and changed only if that is allowed. It refuses files whose
// columns have other ids, because CarbonData would read them as null.
func TestAddSegment(t *testing.T) {
	_, dir := changer(t, "managed1")
	place := filepath.Join(t.TempDir(), "more")
	if err := os.CopyFS(place, os.DirFS(filepath.Join(dir, "Fact", "Part0", "Segment_0"))); err != nil {
		t.Fatal(err)
	}
	external := stoa.OpenOptions{Opts: map[string]string{"external": "true"}}
	c, err := stoa.OpenChanger(t.Context(), dir, external)
	if err != nil {
		t.Fatal(err)
	}
	count := func(o stoa.OpenOptions) (n int64, err error) {
		x, err := stoa.Open(t.Context(), dir, o)
		if err != nil {
			return 0, err
		}
		defer x.Close()
		for b, err := range x.Scan(t.Context(), stoa.ScanSpec{}) {
			if err != nil {
				return n, err
			}
			n += b.NumRows()
		}
		return n, nil
	}
	rows, err := count(stoa.OpenOptions{Opts: map[string]string{"segment": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := count(stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := stoa.AddSegmentOptions{}
	o.Path = place
	name, err := c.AddSegment(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := count(external); err != nil || n != before+rows {
		t.Errorf("segment %s: got %d rows, %v; want %d", name, n, err, before+rows)
	}
	if _, err := count(stoa.OpenOptions{}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("without leave: got %v", err)
	}
	if _, err := c.AddSegment(t.Context(), o); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
		t.Errorf("again: got %v, want an error that names segment %s", err, name)
	}
	major := stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}}
	if _, err := c.Compact(t.Context(), major); err != nil {
		t.Fatal(err)
	}
	if n, err := count(stoa.OpenOptions{}); err != nil || n != before+rows {
		t.Errorf("compacted: got %d rows, %v; want %d", n, err, before+rows)
	}
	healthy(t, dir)
	other, _ := changer(t, "managed_del")
	if _, err := other.AddSegment(t.Context(), o); !errors.Is(err, fault.Invalid) {
		t.Errorf("files of another table: got %v", err)
	}
}

// TestDisableDependents: a table with materialised views can be changed only after they are marked as disabled in
// mv_status, in the form of CarbonData 2.3.0. A table with other dependents is still refused.
func TestDisableDependents(t *testing.T) {
	view := carbon.TableSpec{Properties: map[string]string{"relatedmvtablesmap": `{"default":["mv1"]}`}}
	b := orders(0, 10)
	make := func(spec carbon.TableSpec) (*stoa.Changer, string) {
		dir := filepath.Join(t.TempDir(), "w")
		spec.Schema = b.Schema()
		if err := carbon.CreateTable(dir, "", spec); err != nil {
			t.Fatal(err)
		}
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c, dir
	}
	c, dir := make(view)
	load := func() error {
		_, err := c.Append(t.Context(), b.Schema(), once(b), stoa.AppendOptions{})
		return err
	}
	if err := load(); !errors.Is(err, fault.Unsupported) {
		t.Errorf("got %v, want an error that names the views", err)
	}
	if _, err := c.DisableDependents(t.Context(), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without mv_status: got %v", err)
	}
	file := filepath.Join(filepath.Dir(dir), "_system", "mv_status")
	enabled := `[{"identifier":{"databaseName":"default","tableName":"mv1","tableId":"61f5","provider":"carbondata"},` +
		`"status":"ENABLED"},{"identifier":{"databaseName":"default","tableName":"mv2"},"status":"ENABLED"}]`
	if err := os.WriteFile(file, []byte(enabled), 0o666); err != nil {
		t.Fatal(err)
	}
	names, err := c.DisableDependents(t.Context(), true)
	if err != nil || !slices.Equal(names, []string{"default.mv1"}) {
		t.Fatalf("dry: got %v, %v", names, err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != enabled {
		t.Errorf("a dry run: got %s, %v", got, err)
	}
	if err := load(); !errors.Is(err, fault.Invalid) {
		t.Errorf("after a dry run, nothing is disabled: got %v", err)
	}
	if _, err := c.Truncate(t.Context(), stoa.TruncateOptions{}); !errors.Is(err, fault.Invalid) {
		t.Errorf("after a dry run, nothing is disabled: got %v", err)
	}
	if r, err := c.Append(t.Context(), b.Schema(), once(b), stoa.AppendOptions{DryRun: true}); err != nil ||
		r.Rows != 10 {
		t.Errorf("a dry run after a dry run: got %v, %v", r, err)
	}
	if _, err := c.DisableDependents(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || strings.Count(string(got), `"DISABLED"`) != 1 ||
		!strings.Contains(string(got), `"tableId":"61f5"`) {
		t.Errorf("got %s, %v", got, err)
	}
	if err := load(); err != nil {
		t.Error(err)
	}
	c, _ = make(carbon.TableSpec{Properties: map[string]string{"indexexists": "true"}})
	if _, err := c.DisableDependents(t.Context(), false); !errors.Is(err, fault.Unsupported) {
		t.Errorf("bloom indexes: got %v", err)
	}
}
