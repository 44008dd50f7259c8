package vec_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

func TestNulls(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.Null, arrow.PrimitiveTypes.Int32, arrow.ListOf(arrow.Null),
		arrow.StructOf(arrow.Field{Name: "n", Type: arrow.Null, Nullable: true},
			arrow.Field{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.Null),
		arrow.DenseUnionOf([]arrow.Field{{Name: "n", Type: arrow.Null, Nullable: true},
			{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []arrow.UnionTypeCode{0, 1}),
	} {
		a := vec.Nulls(memory.DefaultAllocator, typ, 12)
		if a.Len() != 12 || !arrow.TypeEqual(a.DataType(), typ) {
			t.Errorf("%s: got %d nulls of type %s, want 12", typ, a.Len(), a.DataType())
		}
		for i := range a.Len() {
			if s := a.ValueStr(i); s != "(null)" && typ.ID() != arrow.DENSE_UNION {
				t.Errorf("%s: entry %d is %s, want (null)", typ, i, s)
			}
		}
		a.Release()
	}
}
