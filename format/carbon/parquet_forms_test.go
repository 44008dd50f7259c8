package carbon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
)

// dated returns rows of the schema id, name, day, at, days, where at has the given unit.
func dated(day time.Time, at time.Time, unit arrow.TimeUnit) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}, Nullable: true},
		{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "days", Type: arrow.ListOf(arrow.FixedWidthTypes.Date32), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	defer b.Release()
	for i := range 9 {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		b.Field(1).(*array.StringBuilder).Append("a name")
		b.Field(2).(*array.Date32Builder).Append(arrow.Date32FromTime(time.Unix(0, 0)))
		b.Field(3).(*array.TimestampBuilder).AppendTime(at)
		b.Field(4).(*array.BooleanBuilder).Append(i%2 == 0)
		b.Field(5).(*array.ListBuilder).Append(true)
		b.Field(5).(*array.ListBuilder).ValueBuilder().(*array.Date32Builder).Append(arrow.Date32FromTime(day))
	}
	return b.NewRecordBatch()
}

// TestParquetSegmentForms: a Parquet file is a segment only in a form that Spark 3.1.1 reads with CarbonData 2.3.0. It
// was asked about files like these: it read the first six, and failed on a table with any of the others.
func TestParquetSegmentForms(t *testing.T) {
	today, ms := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), arrow.Millisecond
	now := dated(today, today, ms)
	oldDay := dated(time.Date(1500, 1, 2, 0, 0, 0, 0, time.UTC), today, ms)
	oldTime := dated(today, time.Date(1850, 1, 2, 0, 0, 0, 0, time.UTC), ms)
	plain := lib.WithDictionaryDefault(false)
	more := record(arrow.NewSchema(append(now.Schema().Fields(), arrow.Field{Name: "more",
		Type: arrow.PrimitiveTypes.Int64}), nil), append(now.Columns(), points("more", "1", "2", "3", "4", "5", "6",
		"7", "8", "9").Column(0)))
	long := longStrings(now)
	spark := func(version string, more ...string) arrow.Metadata {
		pairs := append([]string{"org.apache.spark.version", version}, more...)
		keys, values := []string{}, []string{}
		for i := 0; i < len(pairs); i += 2 {
			keys, values = append(keys, pairs[i]), append(values, pairs[i+1])
		}
		return arrow.NewMetadata(keys, values)
	}
	var none arrow.Metadata
	for _, c := range []struct {
		name  string
		rows  arrow.RecordBatch
		meta  arrow.Metadata
		reads bool
		how   []lib.WriterProperty
	}{
		{"dictionaries", now, none, true, nil},
		{"plain", now, none, true, []lib.WriterProperty{plain}},
		{"gzip", now, none, true, []lib.WriterProperty{lib.WithCompression(compress.Codecs.Gzip)}},
		{"old dates by Spark", oldDay, spark("3.1.1"), true, nil},
		{"another column, which Spark does not read", more, none, true, []lib.WriterProperty{plain,
			lib.WithEncodingFor("more", lib.Encodings.DeltaBinaryPacked),
			lib.WithCompressionFor("more", compress.Codecs.Zstd)}},
		{"long strings of Arrow", long, none, true, nil},
		{"delta", now, none, false, []lib.WriterProperty{plain,
			lib.WithEncodingFor("id", lib.Encodings.DeltaBinaryPacked)}},
		{"texts by delta", now, none, false, []lib.WriterProperty{plain,
			lib.WithEncodingFor("name", lib.Encodings.DeltaByteArray)}},
		{"lengths by delta", now, none, false, []lib.WriterProperty{plain,
			lib.WithEncodingFor("name", lib.Encodings.DeltaLengthByteArray)}},
		{"booleans in runs", now, none, false, []lib.WriterProperty{plain,
			lib.WithEncodingFor("ok", lib.Encodings.RLE)}},
		{"zstd", now, none, false, []lib.WriterProperty{lib.WithCompression(compress.Codecs.Zstd)}},
		{"brotli", now, none, false, []lib.WriterProperty{lib.WithCompression(compress.Codecs.Brotli)}},
		{"lz4", now, none, false, []lib.WriterProperty{lib.WithCompression(compress.Codecs.Lz4Raw)}},
		{"nanoseconds", dated(today, today, arrow.Nanosecond), none, false, nil},
		{"old dates in lists", oldDay, none, false, nil},
		{"old times", oldTime, none, false, nil},
		{"old dates by Spark 2", oldDay, spark("2.4.5"), false, nil},
		{"old dates of the other calendar", oldDay, spark("3.1.1", "org.apache.spark.legacyDateTime", ""), false, nil},
	} {
		dir := t.TempDir()
		table, place := filepath.Join(dir, "visits"), filepath.Join(dir, "more")
		spec := carbon.TableSpec{Schema: now.Schema()}
		if err := errors.Join(carbon.CreateTable(table, dir, spec), os.Mkdir(place, 0o777)); err != nil {
			t.Fatal(err)
		}
		writeForm(t, filepath.Join(place, "a.parquet"), c.rows, c.meta, c.how)
		ch, err := stoa.OpenChanger(t.Context(), table, stoa.OpenOptions{Opts: external})
		if err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, table)
		_, err = ch.AddSegment(t.Context(), stoa.AddSegmentOptions{
			NewSegment: format.NewSegment{Path: place, Format: "parquet"}})
		if c.reads && err != nil || !c.reads && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: got %v, want a segment: %t", c.name, err, c.reads)
		}
		if c.reads && len(faults(t, table)) > 0 {
			t.Errorf("%s: verify found %v", c.name, faults(t, table))
		}
		if !c.reads && snapshot(t, table) != before {
			t.Errorf("%s: the refused segment changed the table", c.name)
		}
	}
}

// TestParquetSegmentNames: files that Spark's listings leave out are none of a segment, and one with a name that Hadoop
// cannot have is refused. So is a column of bytes, whatever its file.
func TestParquetSegmentNames(t *testing.T) {
	today := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	now := dated(today, today, arrow.Millisecond)
	for name, want := range map[string]string{
		"b.parquet": "18 rows", "_a=b.parquet": "18 rows", "_b.parquet": "9 rows", ".b.parquet": "9 rows",
		"b.parquet._COPYING_": "9 rows", "b:c.parquet": "colon", "bytes": "column of bytes",
	} {
		dir := t.TempDir()
		table, place, rows := filepath.Join(dir, "visits"), filepath.Join(dir, "more"), now
		if name == "bytes" {
			sc := arrow.NewSchema([]arrow.Field{{Name: "b", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
			b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
			b.Field(0).(*array.Int8Builder).Append(3)
			rows = b.NewRecordBatch()
		}
		err := errors.Join(carbon.CreateTable(table, dir, carbon.TableSpec{Schema: rows.Schema()}),
			os.Mkdir(place, 0o777))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"a.parquet", name} {
			writeForm(t, filepath.Join(place, n), rows, arrow.Metadata{}, nil)
		}
		ch, err := stoa.OpenChanger(t.Context(), table, stoa.OpenOptions{Opts: external})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ch.AddSegment(t.Context(), stoa.AddSegmentOptions{
			NewSegment: format.NewSegment{Path: place, Format: "parquet"}})
		got := ""
		if err == nil {
			x, err := stoa.Open(t.Context(), table, stoa.OpenOptions{Opts: external})
			if err != nil {
				t.Fatal(err)
			}
			n, err := x.Count(t.Context(), stoa.ScanSpec{})
			if err := errors.Join(err, x.Close()); err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprint(n, " rows")
		} else if errors.Is(err, fault.Unsupported) {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// writeForm writes a Parquet file by Arrow's library.
func writeForm(t *testing.T, name string, b arrow.RecordBatch, meta arrow.Metadata, how []lib.WriterProperty) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	sc := arrow.NewSchema(b.Schema().Fields(), &meta)
	w, err := pqarrow.NewFileWriter(sc, f, lib.NewWriterProperties(how...), pqarrow.NewArrowWriterProperties(
		pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(array.NewRecordBatch(sc, b.Columns(), b.NumRows())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// longStrings returns a batch whose strings have offsets of 64 bits.
func longStrings(b arrow.RecordBatch) arrow.RecordBatch {
	fields, cols := slices.Clone(b.Schema().Fields()), slices.Clone(b.Columns())
	for i, f := range fields {
		if f.Type.ID() != arrow.STRING {
			continue
		}
		out := array.NewLargeStringBuilder(arrowMemory.DefaultAllocator)
		for k := range cols[i].Len() {
			out.Append(cols[i].ValueStr(k))
		}
		fields[i].Type, cols[i] = arrow.BinaryTypes.LargeString, out.NewArray()
	}
	return record(arrow.NewSchema(fields, nil), cols)
}
