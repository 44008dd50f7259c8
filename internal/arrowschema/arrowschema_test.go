package arrowschema

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestThereAndBack(t *testing.T) {
	meta := arrow.MetadataFrom(map[string]string{"k": "v"})
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64, Metadata: meta},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_us,
			Nullable: true}), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Float32))},
	}, &meta)
	b, err := Encode(sc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil || !got.Equal(sc) {
		t.Fatalf("%v, %v", got, err)
	}
	withEnd, err := Decode(append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
	if err != nil || !withEnd.Equal(sc) {
		t.Fatalf("with the end mark of a stream: %v, %v", withEnd, err)
	}
	for n := range b {
		if _, err := Decode(b[:n]); err == nil {
			t.Fatalf("the first %d bytes are read as a schema", n)
		}
	}
	for i := range b {
		for bit := range 8 {
			c := append([]byte(nil), b...)
			c[i] ^= 1 << bit
			Decode(c) // no panic, and no allocation by declared sizes
		}
	}
}
