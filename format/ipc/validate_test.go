package ipc

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestEmptyUnions: the items of empty lists are a union without buffers when the library reads a file by pyarrow. They
// are valid, alone and with a member of nulls.
func TestEmptyUnions(t *testing.T) {
	text := arrow.Field{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}
	none := arrow.Field{Name: "none", Type: arrow.Null, Nullable: true}
	fields, codes := []arrow.Field{text, none}, []arrow.UnionTypeCode{0, 1}
	for _, u := range []arrow.DataType{arrow.DenseUnionOf(fields, codes), arrow.SparseUnionOf(fields, codes),
		arrow.DenseUnionOf(fields[:1], codes[:1])} {
		var children []arrow.ArrayData
		for _, f := range u.(arrow.UnionType).Fields() {
			d := array.NewData(f.Type, 0, []*memory.Buffer{nil, nil, nil}[:len(f.Type.Layout().Buffers)], nil, 0, 0)
			defer d.Release()
			children = append(children, d)
		}
		buffers := []*memory.Buffer{nil, nil, nil}[:2]
		if u.ID() == arrow.DENSE_UNION {
			buffers = buffers[:3]
		}
		items := array.NewData(u, 0, buffers, children, 0, 0)
		defer items.Release()
		offsets := memory.NewBufferBytes(make([]byte, 8))
		list := array.NewData(arrow.ListOf(u), 1, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{items}, 0, 0)
		defer list.Release()
		a := array.MakeFromData(list)
		defer a.Release()
		if err := validate(a); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}
