package stoa

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/store"
)

// TestExtensionsLoadBack: text formats write values of extension types, at the top level and in structs, lists and
// maps, so that they are read back with the table's schema.
func TestExtensionsLoadBack(t *testing.T) {
	timed, err := extensions.NewTimestampWithOffsetTypeCustomOffset(arrow.Microsecond, arrow.PrimitiveTypes.Int16)
	if err != nil {
		t.Fatal(err)
	}
	jsonType, err := extensions.NewJSONType(arrow.BinaryTypes.String)
	if err != nil {
		t.Fatal(err)
	}
	opaque := extensions.NewOpaqueType(arrow.BinaryTypes.String, "t", "v")
	for storage, x := range map[string]arrow.ExtensionType{
		`["AAECAwQFBgcICQoLDA0ODw==", null, "/////////////////////w=="]`: extensions.NewUUIDType(),
		`[0, null, 1, -7]`:                                         extensions.NewBool8Type(),
		`["{\"a\": [1]}", null, "\"x\"", "7"]`:                     jsonType,
		`["a", null, "1", ""]`:                                     opaque,
		`[{"timestamp": 1709168523000001, "offset_minutes": -90}]`: timed,
	} {
		a, _, err := array.FromJSON(memory.DefaultAllocator, x.StorageType(), strings.NewReader(storage))
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
		plain := array.NewExtensionArrayWithStorage(x, a)
		shapes := around(plain)
		shapes["top"] = plain
		for shape, a := range shapes {
			for _, f := range []string{"jsonl", "csv", "tsv"} {
				sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
					{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
				ids := array.NewInt32Builder(memory.DefaultAllocator)
				for i := range a.Len() {
					ids.Append(int32(i))
				}
				mem := store.NewMemory(nil)
				w, err := Create(context.Background(), "t."+f, sc, CreateOptions{Sink: mem.Sink("t." + f)})
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", x, shape, f, err)
				}
				batch := array.NewRecordBatch(sc, []arrow.Array{ids.NewArray(), a}, int64(a.Len()))
				if err := w.Write(t.Context(), batch); err != nil {
					t.Errorf("%s, %s, %s: %v", x, shape, f, err)
				}
				if s, err := w.Close(t.Context()); err != nil || !s.Checked {
					t.Errorf("%s, %s, %s: checked %t, %v", x, shape, f, s.Checked, err)
				}
			}
		}
	}
}
