package carbon_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
)

// added makes a table of one column and adds the Parquet file that write writes.
func added(t *testing.T, f arrow.Field, write func(place string)) (table string, err error) {
	t.Helper()
	dir := t.TempDir()
	table, place := filepath.Join(dir, "t"), filepath.Join(dir, "more")
	spec := carbon.TableSpec{Schema: arrow.NewSchema([]arrow.Field{f}, nil)}
	if err := errors.Join(carbon.CreateTable(table, dir, spec), os.Mkdir(place, 0o777)); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(place, "a.parquet"))
	c, err := stoa.OpenChanger(t.Context(), table, stoa.OpenOptions{Opts: external})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.AddSegment(t.Context(), stoa.AddSegmentOptions{
		NewSegment: format.NewSegment{Path: place, Format: "parquet"}})
	return table, err
}

// TestParquetSegmentPhysical: physical types of decimals, row groups without rows and names in two cases are accepted
// as Spark 3.1.1 reads them with CarbonData 2.3.0, which was asked about each.
func TestParquetSegmentPhysical(t *testing.T) {
	for _, c := range []struct {
		precision int32
		physical  lib.Type
		groups    []int // rows of each
		more      string
		reads     bool
	}{
		{5, lib.Types.Int32, []int{3}, "", true},
		{5, lib.Types.FixedLenByteArray, []int{3}, "", true},
		{5, lib.Types.Int64, []int{3}, "", false},
		{5, lib.Types.ByteArray, []int{3}, "", false},
		{12, lib.Types.Int64, []int{3}, "", true},
		{12, lib.Types.FixedLenByteArray, []int{3}, "", true},
		{12, lib.Types.ByteArray, []int{3}, "", false},
		{25, lib.Types.ByteArray, []int{3}, "", true},
		{5, lib.Types.Int32, []int{3, 0}, "", true},
		{5, lib.Types.Int32, []int{0}, "", true},
		{5, lib.Types.Int32, nil, "", true},
		{5, lib.Types.Int32, []int{0, 3}, "", false},
		{5, lib.Types.Int32, []int{3}, "D", false},
	} {
		f := arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: c.precision, Scale: 2}, Nullable: true}
		what := fmt.Sprintf("decimal(%d, 2) as %s, groups of %v rows, also %q", c.precision, c.physical, c.groups,
			c.more)
		table, err := added(t, f, func(place string) {
			writeDecimals(t, place, c.precision, c.physical, c.groups, c.more)
		})
		if (err == nil) != c.reads {
			t.Errorf("%s: got %v, want a segment: %t", what, err, c.reads)
		}
		if err != nil || !c.reads {
			continue
		}
		if found := faults(t, table); len(found) > 0 {
			t.Errorf("%s: verify found %v", what, found)
		}
	}
}

// writeDecimals writes the decimal 1.23 by the Parquet library's own schema.
func writeDecimals(t *testing.T, place string, precision int32, physical lib.Type, groups []int, more string) {
	t.Helper()
	size := -1
	if physical == lib.Types.FixedLenByteArray {
		size = 16
	}
	var nodes schema.FieldList
	for _, name := range []string{"d", more}[:1+min(1, len(more))] {
		n, err := schema.NewPrimitiveNodeLogical(name, lib.Repetitions.Required,
			schema.NewDecimalLogicalType(precision, 2), physical, size, -1)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	root, err := schema.NewGroupNode("schema", lib.Repetitions.Required, nodes, -1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(place)
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewParquetWriter(out, root, file.WithWriterProps(lib.NewWriterProperties()))
	for _, n := range groups {
		g, err := w.AppendRowGroupChecked()
		if err != nil {
			t.Fatal(err)
		}
		for range nodes {
			column, err := g.NextColumn()
			if err != nil {
				t.Fatal(err)
			}
			writeDecimal(t, column, n)
			if err := column.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeDecimal(t *testing.T, column file.ColumnChunkWriter, n int) {
	t.Helper()
	var err error
	bytes := make([]byte, 16)
	bytes[15] = 123
	switch w := column.(type) {
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch([]int32{123, 123, 123}[:n], nil, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch([]int64{123, 123, 123}[:n], nil, nil)
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch([]lib.ByteArray{bytes[15:], bytes[15:], bytes[15:]}[:n], nil, nil)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = w.WriteBatch([]lib.FixedLenByteArray{bytes, bytes, bytes}[:n], nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestParquetSegmentINT96: the times that Spark 3.1 writes, by default as INT96, are rows of the table whatever the
// year. Those of Spark 3.0 and earlier, which are in another calendar, are refused if they are old.
func TestParquetSegmentINT96(t *testing.T) {
	f := arrow.Field{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, Nullable: true}
	for _, c := range []struct {
		version string
		year    int
		reads   bool
	}{{"3.1.1", 9999, true}, {"3.1.1", 2020, true}, {"3.1.1", 1500, true}, {"", 9999, true}, {"", 1500, false},
		{"3.0.1", 2020, true}, {"3.0.1", 1700, false}, {"2.4.5", 1850, false}, {"3", 1850, false}} {
		at := time.Date(c.year, 12, 31, 1, 2, 3, 0, time.UTC)
		table, err := added(t, f, func(place string) {
			writeINT96(t, place, at, c.version)
		})
		if (err == nil) != c.reads {
			t.Errorf("year %d by Spark %q: got %v, want a segment: %t", c.year, c.version, err, c.reads)
		}
		if err != nil || !c.reads {
			continue
		}
		x, err := stoa.Open(t.Context(), table, stoa.OpenOptions{Opts: external})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range x.Scan(t.Context(), stoa.ScanSpec{}) {
			if err != nil || b.Column(0).(*array.Timestamp).Value(0) != arrow.Timestamp(at.UnixMilli()) {
				t.Errorf("year %d by Spark %q: got %v, %v", c.year, c.version, b, err)
			}
		}
		x.Close()
		if found := faults(t, table); len(found) > 0 {
			t.Errorf("year %d by Spark %q: verify found %v", c.year, c.version, found)
		}
	}
}

// writeINT96 writes one time as INT96: nanoseconds of the day, and the Julian day.
func writeINT96(t *testing.T, place string, at time.Time, version string) {
	t.Helper()
	n, err := schema.NewPrimitiveNode("at", lib.Repetitions.Required, lib.Types.Int96, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewGroupNode("schema", lib.Repetitions.Required, schema.FieldList{n}, -1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(place)
	if err != nil {
		t.Fatal(err)
	}
	meta := metadata.NewKeyValueMetadata()
	if version != "" {
		err = meta.Append("org.apache.spark.version", version)
	}
	w := file.NewParquetWriter(out, root, file.WithWriterProps(lib.NewWriterProperties()), file.WithWriteMetadata(meta))
	g, err2 := w.AppendRowGroupChecked()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	column, err := g.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	var v lib.Int96
	midnight := at.Truncate(24 * time.Hour)
	binary.LittleEndian.PutUint64(v[:], uint64(at.Sub(midnight)))
	binary.LittleEndian.PutUint32(v[8:], uint32(2_440_588+midnight.Unix()/86400))
	_, err = column.(*file.Int96ColumnChunkWriter).WriteBatch([]lib.Int96{v}, nil, nil)
	if err := errors.Join(err, column.Close(), g.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
}
