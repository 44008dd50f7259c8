package carbon_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/region"
)

// withParquet creates a table of the orders 0 to 20, of which 3 are deleted, with a Parquet segment of the orders 100
// to 110. name is the segment's file.
func withParquet(t *testing.T) (c *stoa.Changer, dir, name string) {
	t.Helper()
	dir = newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 20})
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{"external": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "id in (3, 4, 15)"}); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	name = filepath.Join(t.TempDir(), "more", "a.parquet")
	writeParquet(t, name, orders(100, 110))
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "_SUCCESS"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	o := stoa.AddSegmentOptions{DryRun: true}
	o.Path, o.Format = filepath.Dir(name), "parquet"
	before := snapshot(t, dir)
	if _, err := c.AddSegment(t.Context(), o); err != nil || snapshot(t, dir) != before {
		t.Fatalf("a dry run: %v", err)
	}
	o.DryRun = false
	if s, err := c.AddSegment(t.Context(), o); err != nil || s != "2" {
		t.Fatal(s, err)
	}
	return c, dir, name
}

func writeParquet(t *testing.T, name string, b arrow.RecordBatch) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := stoa.Create(t.Context(), name, b.Schema(),
		stoa.CreateOptions{Opts: map[string]string{"encoding": "plain"}}) // all that Spark 3.1 reads
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

var external = map[string]string{"external": "true"}

// idsWhere returns the sorted ids of the rows of a table for which a predicate is true, and the error that ended
// reading.
func idsWhere(t *testing.T, dir, where string) (out []int, err error) {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"id"}, Filter: parsed(t, where)}) {
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			n, _ := strconv.Atoi(b.Column(0).ValueStr(i))
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// TestParquetSegment: the rows of a Parquet segment are rows of the table in every way of reading. The table can still
// be changed, except in ways that CarbonData refuses as well.
func TestParquetSegment(t *testing.T) {
	c, dir, _ := withParquet(t)
	for where, want := range map[string][]int{
		"id >= 0": {0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 100, 101, 102, 103, 104, 105, 106, 107,
			108, 109},
		"id in (2, 3, 104)":    {2, 104},
		"id > 14 and id < 102": {16, 17, 18, 19, 100, 101},
	} {
		if got, err := idsWhere(t, dir, where); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", where, got, err, want)
		}
	}
	list, err := stoa.Segments(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil || len(list) != 3 || list[2].Rows != 10 || list[2].Format != "parquet" || list[2].Files != 1 {
		t.Errorf("segments: got %+v, %v", list, err)
	}
	if found := faults(t, dir); len(found) > 0 {
		t.Errorf("verify found %v", found)
	}
	if _, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "id = 1"}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("delete: got %v, want Unsupported, as CarbonData", err)
	}
	o := stoa.AlterColumnOptions{}
	o.Column, o.Name = "name", "title"
	if err := c.AlterColumn(t.Context(), o); !errors.Is(err, fault.Unsupported) {
		t.Errorf("rename --column: got %v, want Unsupported", err)
	}
	wide := stoa.AlterColumnOptions{}
	wide.Column = "amount"
	wide.Type = &arrow.Field{Name: "amount", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}, Nullable: true}
	if err := c.AlterColumn(t.Context(), wide); !errors.Is(err, fault.Unsupported) {
		t.Errorf("set-type: got %v, want Unsupported", err)
	}
	more := orders(200, 203)
	if _, err := c.Append(t.Context(), more.Schema(), once(more), stoa.AppendOptions{}); err != nil {
		t.Error(err)
	}
	major := stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}}
	if _, err := c.Compact(t.Context(), major); err != nil {
		t.Error(err)
	}
	want := []int{9, 10, 109, 200, 201, 202}
	if got, err := idsWhere(t, dir, "id in (3, 9, 10, 15, 109) or id >= 200"); err != nil || !slices.Equal(got, want) {
		t.Errorf("compacted: got %v, %v, want %v", got, err, want)
	}
	if err := c.DeleteSegments(t.Context(), stoa.DeleteSegmentsOptions{Segments: []string{"2"}}); err != nil {
		t.Error(err)
	}
	if got, err := idsWhere(t, dir, "id >= 100"); err != nil || !slices.Equal(got, []int{200, 201, 202}) {
		t.Errorf("without the segment: got %v, %v", got, err)
	}
}

// TestParquetSegmentCleaned: the entry of the last segment stays when the segment is cleaned, because its number must
// not be reused. It then no longer mentions Parquet, since CarbonData refuses deletes while an entry has a foreign
// format.
func TestParquetSegmentCleaned(t *testing.T) {
	c, dir, name := withParquet(t)
	if err := c.DeleteSegments(t.Context(), stoa.DeleteSegmentsOptions{Segments: []string{"2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	list := entries(t, dir)
	if last := list[len(list)-1]; last["loadName"] != "2" || last["visibility"] != "false" || last["fileFormat"] != "" {
		t.Errorf("got %v, want the entry of segment 2, invisible, without a format", last)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "id = 1"}); err != nil || n != 1 {
		t.Errorf("delete: %d, %v", n, err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("the user's file: %v", err)
	}
}

// faults returns the errors that verify finds.
func faults(t *testing.T, dir string) (out []region.Finding) {
	for f := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{From: "carbon", Opts: external}) {
		if f.Severity == region.Error {
			out = append(out, f)
		}
	}
	return out
}

// TestParquetSegmentDamaged: a damaged or missing Parquet file is damage of the table, and loses only its own rows.
func TestParquetSegmentDamaged(t *testing.T) {
	_, dir, name := withParquet(t)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rest := []int{16, 17, 18, 19}
	damage := map[string]func() error{
		"cut":     func() error { return os.WriteFile(name, b[:len(b)-20], 0o666) },
		"flipped": func() error { b := slices.Clone(b); b[40] ^= 0x10; return os.WriteFile(name, b, 0o666) },
		"missing": func() error { return os.Remove(name) },
	}
	for what, do := range damage {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if got, err := idsWhere(t, dir, "id > 15"); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: read %v, %v, want Corrupt", what, got, err)
		}
		found := faults(t, dir)
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return strings.Contains(f.At.Object+f.Message, "a.parquet")
		}) {
			t.Errorf("%s: verify found %v", what, found)
		}
		x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Opts: external})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var got []int
		lost := 0
		spec := stoa.ScanSpec{Columns: []string{"id"}, Filter: parsed(t, "id > 15"), Damaged: stoa.SkipRows,
			Lost: func(region.Loss) { lost++ }}
		for b, err := range x.Scan(t.Context(), spec) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
				break
			}
			for i := range int(b.NumRows()) {
				n, _ := strconv.Atoi(b.Column(0).ValueStr(i))
				got = append(got, n)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, rest) || lost == 0 {
			t.Errorf("%s: with the damage skipped got %v and %d losses, want %v", what, got, lost, rest)
		}
		x.Close()
	}
}

// TestParquetSegmentRefused: files that lack a column of the table, or have one of another type, are refused as a
// segment, even if each value would fit: CarbonData 2.3.0 under Spark 3.1.1 cannot read them.
func TestParquetSegmentRefused(t *testing.T) {
	c, dir, _ := withParquet(t)
	before := snapshot(t, dir)
	b := orders(0, 3)
	lacking := filepath.Join(t.TempDir(), "lacking", "a.parquet")
	sc := arrow.NewSchema(b.Schema().Fields()[:2], nil)
	writeParquet(t, lacking, record(sc, b.Columns()[:2]))
	fields := slices.Clone(b.Schema().Fields())
	fields[0] = arrow.Field{Name: "id", Type: b.Column(1).DataType(), Nullable: true}
	other := filepath.Join(t.TempDir(), "other", "a.parquet")
	writeParquet(t, other, record(arrow.NewSchema(fields, nil), append([]arrow.Array{b.Column(1)}, b.Columns()[1:]...)))
	fields[0].Type = arrow.PrimitiveTypes.Int64
	wide := filepath.Join(t.TempDir(), "wide", "a.parquet")
	writeParquet(t, wide, record(arrow.NewSchema(fields, nil), append(points("id", "7", "8", "9").Columns(),
		b.Columns()[1:]...)))
	for _, dir := range []string{filepath.Dir(lacking), filepath.Dir(other), filepath.Dir(wide), t.TempDir()} {
		o := stoa.AddSegmentOptions{NewSegment: format.NewSegment{Path: dir, Format: "parquet"}}
		if s, err := c.AddSegment(t.Context(), o); err == nil {
			t.Errorf("%s is segment %s, want an error", dir, s)
		}
	}
	if snapshot(t, dir) != before {
		t.Error("the table changed")
	}
}

func parsed(t *testing.T, where string) *pred.Expr {
	t.Helper()
	e, err := pred.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func record(sc *arrow.Schema, cols []arrow.Array) arrow.RecordBatch {
	return array.NewRecordBatch(sc, cols, int64(cols[0].Len()))
}
