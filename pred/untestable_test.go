package pred_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/pred"
)

// TestNoAdviceThatFails: if the error for a column suggests another test, Bind accepts that test.
func TestNoAdviceThatFails(t *testing.T) {
	item := arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32}
	for _, typ := range []arrow.DataType{arrow.DenseUnionOf([]arrow.Field{item}, []arrow.UnionTypeCode{0}),
		arrow.SparseUnionOf([]arrow.Field{item}, []arrow.UnionTypeCode{0}), arrow.ListOf(item.Type),
		arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, item.Type), arrow.StructOf(item)} {
		sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: typ, Nullable: true}}, nil)
		bind := func(text string) error {
			e, err := pred.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = pred.Bind(e, sc)
			return err
		}
		err := bind("c = 1")
		if err == nil || strings.Contains(err.Error(), "with is null") != (bind("c is null") == nil) {
			t.Errorf("%s: = 1: %v; is null: %v", typ, err, bind("c is null"))
		}
	}
}
