package parquet_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/parquet"
	"stoa/region"
	"stoa/store"
)

const utcTime = `{"type":"TIME","is_adjusted_to_utc":true}`

// annotatedFields returns fields with logical types without an Arrow type, at every level of nesting.
func annotatedFields() []arrow.Field {
	mark := func(text string) arrow.Metadata {
		return arrow.NewMetadata([]string{"PARQUET:logical_type"}, []string{text})
	}
	bytes, str := arrow.BinaryTypes.Binary, arrow.BinaryTypes.String
	return []arrow.Field{
		{Name: "enum", Type: bytes, Metadata: mark(`{"type":"ENUM"}`)},
		{Name: "json", Type: str, Nullable: true, Metadata: mark(`{"type":"JSON"}`)},
		{Name: "bson", Type: bytes, Metadata: mark(`{"type":"BSON"}`)},
		{Name: "interval", Type: &arrow.FixedSizeBinaryType{ByteWidth: 12}, Metadata: mark(`{"type":"INTERVAL"}`)},
		{Name: "geometry", Type: bytes, Nullable: true, Metadata: mark(`{"type":"GEOMETRY"}`)},
		{Name: "geometry.crs", Type: bytes, Metadata: mark(`{"type":"GEOMETRY","crs":"srid:5070"}`)},
		{Name: "geography", Type: bytes,
			Metadata: mark(`{"type":"GEOGRAPHY","crs":"OGC:CRS84","algorithm":"KARNEY"}`)},
		{Name: "time", Type: arrow.FixedWidthTypes.Time32ms, Metadata: mark(utcTime)},
		{Name: "times", Type: arrow.ListOfField(arrow.Field{Name: "element",
			Type: arrow.StructOf(arrow.Field{Name: "nanos", Type: arrow.FixedWidthTypes.Time64ns,
				Metadata: mark(utcTime)})})},
		{Name: "variant", Type: arrow.StructOf(arrow.Field{Name: "metadata", Type: bytes},
			arrow.Field{Name: "value", Type: bytes}), Nullable: true,
			Metadata: mark(`{"type":"VARIANT","specification_version":1}`)},
		{Name: "list", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: bytes,
			Metadata: mark(`{"type":"GEOGRAPHY"}`)})},
	}
}

// writtenAs returns a file of two rows of fields, with the bytes "ab" and "c" in every leaf.
func writtenAs(t *testing.T, fields []arrow.Field) []byte {
	t.Helper()
	sc := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for _, text := range []string{"ab", "c"} {
		for _, f := range b.Fields() {
			fillBytes(f, text)
		}
	}
	tree := store.NewMemory(nil)
	w, err := parquet.Format.Create(t.Context(), tree.Sink("t"), sc, format.WriteOptions{Rows: -1})
	if err == nil {
		if err = w.Write(t.Context(), b.NewRecordBatch()); err == nil {
			_, err = w.Close(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree.Bytes("t")
}

func fillBytes(b array.Builder, text string) {
	switch b := b.(type) {
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.StringBuilder:
		b.Append(`"` + text + `"`)
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(strings.Repeat(text[:1], 12)))
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			fillBytes(b.FieldBuilder(i), text)
		}
	case *array.ListBuilder:
		b.Append(true)
		fillBytes(b.ValueBuilder(), text)
	case *array.Time32Builder:
		b.Append(arrow.Time32(len(text)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(len(text)))
	case *array.Int32Builder:
		b.Append(int32(len(text)))
	}
}

// TestAnnotationsAreKept: logical types without an Arrow type are read from Parquet's schema, without the Arrow schema
// next to it, and again after the result is written; geometries have no bounds.
func TestAnnotationsAreKept(t *testing.T) {
	want := arrow.NewSchema(annotatedFields(), nil)
	fields := want.Fields()
	for round := range 2 {
		b := writtenAs(t, fields)
		target := format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}), Name: "t"}
		r, err := parquet.Format.Open(t.Context(), target,
			format.OpenOptions{Opts: map[string]string{"arrow-schema": "ignore"}})
		if err != nil {
			t.Fatal(err)
		}
		got := arrow.NewSchema(r.Schema().Fields(), nil)
		r.Close()
		if !got.Equal(want) || got.String() != want.String() {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
		for f := range parquet.Format.Verify(t.Context(), target, format.OpenOptions{}) {
			t.Error(f)
		}
		shown, bounds := "", ""
		for n, err := range parquet.Format.Describe(t.Context(), target, format.DescribeOptions{}) {
			if err != nil || n.Kind == region.Gap {
				t.Error(n, err)
			}
			shown += n.Name + "=" + n.Value + "\n"
			if strings.Contains(n.Name, "min_value") && !strings.Contains(n.Name, "exact") {
				bounds += n.Name + "\n"
			}
		}
		for _, word := range []string{"crs=srid:5070", "algorithm=KARNEY", "specification_version=1",
			"is_adjusted_to_utc=true", "converted_type=TIME_MILLIS"} {
			if !strings.Contains(strings.ReplaceAll(shown, `"`, ""), word) {
				t.Errorf("describe: got no %s, want it", word)
			}
		}
		if n := strings.Count(bounds, "\n"); n != 7 { // enum, json, bson, both times, and the two of the variant
			t.Errorf("got %d columns with bounds: %s", n, bounds)
		}
		fields = got.Fields()
	}
}

// TestAnnotationsOfOtherTypes: a logical type in the metadata of a field that does not fit its type is not written.
func TestAnnotationsOfOtherTypes(t *testing.T) {
	for i, f := range annotatedFields() {
		f.Type = arrow.PrimitiveTypes.Int32
		b := writtenAs(t, []arrow.Field{f})
		r, err := parquet.Format.Open(t.Context(),
			format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}), Name: "t"},
			format.OpenOptions{Opts: map[string]string{"arrow-schema": "ignore"}})
		if err != nil {
			t.Fatal(i, err)
		}
		if got := r.Schema().Field(0); got.Type.ID() != arrow.INT32 || got.Metadata.Len() > 0 {
			t.Errorf("%s: %v", f.Name, got)
		}
		r.Close()
	}
}
