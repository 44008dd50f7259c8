package carbon_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
)

func changerOf(t *testing.T, dir string) *stoa.Changer {
	t.Helper()
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDefaultsFit: a default is a value that a load into the column would take: compactions write it as one.
func TestDefaultsFit(t *testing.T) {
	decimal := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	for _, c := range []struct {
		of   arrow.DataType
		text string
		want string // what is read; "": the default is refused
	}{
		{decimal, "12345", ""}, {decimal, "-1000.00", ""}, {decimal, "1.234", ""}, {decimal, "-999.99", "-999.99"},
		{arrow.PrimitiveTypes.Int8, "128", ""}, {arrow.PrimitiveTypes.Int8, "-128", "-128"},
		{arrow.PrimitiveTypes.Int16, "32768", ""}, {arrow.PrimitiveTypes.Int32, "2147483648", ""},
		{arrow.PrimitiveTypes.Int64, "9223372036854775808", ""}, {arrow.PrimitiveTypes.Int32, "1.5", ""},
		{arrow.PrimitiveTypes.Int64, "-9223372036854775808", "-9223372036854775808"},
		{arrow.PrimitiveTypes.Date32, "2023-02-29", ""}, {arrow.PrimitiveTypes.Date32, "2024-02-29", "2024-02-29"},
		{arrow.PrimitiveTypes.Date32, "soon", ""}, {arrow.FixedWidthTypes.Boolean, "maybe", ""},
		{arrow.FixedWidthTypes.Boolean, "1", "true"},
		{arrow.PrimitiveTypes.Float32, "1e39", ""}, {arrow.PrimitiveTypes.Float32, "16777217", ""},
		{arrow.PrimitiveTypes.Float64, "NaN", ""}, {arrow.PrimitiveTypes.Float64, "-Infinity", ""},
		{arrow.PrimitiveTypes.Float64, "1e400", ""}, {arrow.PrimitiveTypes.Float64, "0.5", "0.5"},
		{millis, "2024-02-30 00:00:00", ""}, {arrow.BinaryTypes.String, "@NU#LL$!", ""},
		{arrow.BinaryTypes.String, strings.Repeat("z", 40000), ""}, {arrow.BinaryTypes.String, "a", "a"},
		{arrow.BinaryTypes.String, "\xff", ""},
	} {
		dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 12})
		x := changerOf(t, dir)
		before := snapshot(t, dir)
		o := stoa.AddColumnOptions{Default: &c.text, DryRun: true}
		f := arrow.Field{Name: "x", Type: c.of, Nullable: true}
		dry := x.AddColumn(t.Context(), f, o)
		o.DryRun = false
		err := x.AddColumn(t.Context(), f, o)
		what := c.of.String() + " " + c.text[:min(len(c.text), 30)]
		if (err == nil) != (dry == nil) {
			t.Errorf("%s: a dry run said %v, the change %v", what, dry, err)
		}
		if c.want == "" {
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "column x") {
				t.Errorf("%s: got %v, want Invalid with the column", what, err)
			}
			if snapshot(t, dir) != before {
				t.Errorf("%s: it was refused, and changed the table", what)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		want := slices.Repeat([]string{c.want}, 12)
		if got := cellsOf(t, dir, "x"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
		major := stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}}
		if _, err := x.Compact(t.Context(), major); err != nil {
			t.Errorf("%s: compacting it: %v", what, err)
		}
		if got := cellsOf(t, dir, "x"); !slices.Equal(got, want) {
			t.Errorf("%s, compacted: got %v, want %v", what, got, want)
		}
	}
}

// TestRunningLoadIsKept: a table is neither renamed nor dropped while a load into it is running. The entry of a load
// that was killed is no reason.
func TestRunningLoadIsKept(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	c := changerOf(t, dir)
	b := orders(10, 20)
	l, err := carbon.BeginLoad(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
	if err == nil {
		err = l.Write(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		err := c.Rename(t.Context(), stoa.RenameOptions{To: dir + "2", DryRun: dry})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "segment 1") {
			t.Errorf("rename, dry %v: got %v, want Invalid with the segment", dry, err)
		}
		_, err = c.Drop(t.Context(), stoa.DropOptions{DryRun: dry})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "segment 1") {
			t.Errorf("drop, dry %v: got %v, want Invalid with the segment", dry, err)
		}
	}
	if _, err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := cellsOf(t, dir, "id"); len(got) != 20 {
		t.Errorf("got %d rows, want 20", len(got))
	}
	name := filepath.Join(dir, "Metadata", "tablestatus")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	list = append(list, map[string]any{"loadName": "2", "loadStatus": "Insert In Progress",
		"loadStartTime": "1700000000000", "timestamp": "1700000000000"})
	if text, err = json.Marshal(list); err == nil {
		err = os.WriteFile(name, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Rename(t.Context(), stoa.RenameOptions{To: dir + "2"}); err != nil {
		t.Errorf("after a load was killed: %v", err)
	}
	if got := cellsOf(t, dir+"2", "id"); len(got) != 20 {
		t.Errorf("renamed: got %d rows, want 20", len(got))
	}
	if _, err := changerOf(t, dir+"2").Drop(t.Context(), stoa.DropOptions{}); err != nil {
		t.Errorf("after a load was killed: %v", err)
	}
}

// TestEmptyPartitionIsDropped: what add-partition makes, drop-partition removes; a directory with files is not touched.
func TestEmptyPartitionIsDropped(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{Partition: []string{"name", "day"}}, [2]int{0, 10})
	c := changerOf(t, dir)
	name, day := "w", "2024-01-02"
	of := format.PartitionValues{"name": &name, "day": &day}
	before := cellsOf(t, dir, "id")
	drop := func(dry bool) error {
		r, err := c.DropPartition(t.Context(), stoa.PartitionOptions{Partition: of, DryRun: dry})
		if err == nil && !slices.Equal(r.Partitions, []string{"name=w/day=2024-01-02"}) {
			t.Errorf("dropped %v", r.Partitions)
		}
		return err
	}
	full := filepath.Join(dir, "name=w", "day=2024-01-02")
	for range 2 {
		if _, err := c.AddPartition(t.Context(), stoa.PartitionOptions{Partition: of}); err != nil {
			t.Fatal(err)
		}
		if err := drop(true); err != nil {
			t.Errorf("dry: %v", err)
		}
		if _, err := os.Stat(full); err != nil {
			t.Errorf("a dry run removed it: %v", err)
		}
		if err := drop(false); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "name=w")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is there still: %v", err)
		}
		if err := drop(false); !errors.Is(err, fault.Invalid) {
			t.Errorf("again: got %v, want Invalid", err)
		}
	}
	if err := os.MkdirAll(full, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "mine"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		if err := drop(dry); !errors.Is(err, fault.Invalid) {
			t.Errorf("with a file, dry %v: got %v, want Invalid", dry, err)
		}
	}
	if _, err := os.Stat(filepath.Join(full, "mine")); err != nil {
		t.Error(err)
	}
	if got := cellsOf(t, dir, "id"); !slices.Equal(got, before) {
		t.Errorf("got %v, want %v", got, before)
	}
}

// TestPropertiesThatCompactReads: a value that set-property takes is one that compact can use.
func TestPropertiesThatCompactReads(t *testing.T) {
	good := 0
	for _, k := range []string{"compaction_level_threshold", "compaction_preserve_segments", "allowed_compaction_days",
		"major_compaction_size", "Compaction_Level_Threshold"} {
		for _, v := range []string{"a", "", "-1", "4,a", "1.5", "99999999999", "3", "4,2", " 5 "} {
			c := changerOf(t, newOrders(t, carbon.TableSpec{}, [2]int{0, 10}))
			err := c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: map[string]*string{k: &v}})
			if err != nil {
				if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), k) {
					t.Errorf("%s=%s: got %v, want Invalid with the property", k, v, err)
				}
				continue
			}
			good++
			if _, err := c.Compact(t.Context(), stoa.CompactOptions{}); err != nil {
				t.Errorf("%s=%s was accepted, and compact says %v", k, v, err)
			}
		}
	}
	if good < 10 {
		t.Errorf("only %d values were accepted", good)
	}
}

// TestBlankNames: a column gets no name that is blank, and a property names no column that is not there.
func TestBlankNames(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	c := changerOf(t, dir)
	before := snapshot(t, dir)
	for _, name := range []string{"", " ", "\t"} {
		o := stoa.AlterColumnOptions{}
		o.Column, o.Name = "name", name
		if err := c.AlterColumn(t.Context(), o); !errors.Is(err, fault.Invalid) {
			t.Errorf("rename to %q: got %v, want Invalid", name, err)
		}
		f := arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32, Nullable: true}
		if err := c.AddColumn(t.Context(), f, stoa.AddColumnOptions{}); !errors.Is(err, fault.Invalid) {
			t.Errorf("add %q: got %v, want Invalid", name, err)
		}
	}
	v := "zz"
	for _, k := range []string{"local_dictionary_include", "column_meta_cache", "range_column"} {
		err := c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: map[string]*string{k: &v}})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), k) {
			t.Errorf("%s=zz: got %v, want Invalid with the property", k, err)
		}
	}
	if snapshot(t, dir) != before {
		t.Error("the table changed")
	}
}
