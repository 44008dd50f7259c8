package arrowschema

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// FuzzDecode reads arbitrary bytes as a schema. A valid schema is encoded and read back unchanged.
func FuzzDecode(f *testing.F) {
	for _, t := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String,
		arrow.ListOf(arrow.BinaryTypes.Binary), &arrow.Decimal128Type{Precision: 9, Scale: 2},
		arrow.StructOf(arrow.Field{Name: "x",
			Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64)}),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}} {
		b, err := Encode(arrow.NewSchema(
			[]arrow.Field{{Name: "a", Type: t, Metadata: arrow.MetadataFrom(map[string]string{"k": "v"})}}, nil))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sc, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Encode(sc)
		if err != nil {
			return // Arrow's writer supports fewer types than its reader
		}
		if back, err := Decode(again); err != nil || !back.Equal(sc) {
			t.Errorf("%v\nis not read again: %v, %v", sc, back, err)
		}
	})
}
