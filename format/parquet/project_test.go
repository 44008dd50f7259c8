package parquet

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/internal/nest"
	"stoa/vec"
)

// TestNestedProjection reads parts of the nested columns of a file of pyarrow's, with the bytes of the other leaves
// overwritten: what is not wanted is not looked at.
func TestNestedProjection(t *testing.T) {
	whole := golden(t, "testdata/enc-plain.v2.parquet")
	sc, all, err := readAll(whole, nil, vec.Range{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) int { return sc.FieldIndices(name)[0] }
	for name, want := range map[string][][]int{
		"st.x":             {{at("st"), 0}},
		"st.y.w":           {{at("st"), 1, 1}},
		"st.x and st.y.z":  {{at("st"), 0}, {at("st"), 1, 0}},
		"ls.item.a":        {{at("ls"), 0, 0}},
		"ls.item.t":        {{at("ls"), 0, 1}},
		"st":               {{at("st")}, {at("st"), 0}},
		"a value of a map": {{at("m"), 0, 1}},
	} {
		col := want[0][0]
		r, err := openReader(context.Background(), format.Target{Tree: whole, Name: "t"}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		q := format.Query{Cols: []int{col}, Want: want}
		parts, err := r.parts(q)
		if err != nil {
			t.Fatal(err)
		}
		b := append([]byte{}, whole.Bytes("t")...)
		for g := range r.meta.RowGroups {
			for leaf := range r.meta.Schema.NumColumns() {
				keep := false
				for _, l := range parts[0].leaves {
					keep = keep || l == leaf
				}
				if s := r.chunkSpan(g, leaf); !keep {
					clear(b[s.Off:s.End()])
				}
			}
		}
		spoilt := golden(t, "testdata/enc-plain.v2.parquet")
		spoilt.Put("t", b)
		if r, err = openReader(context.Background(), format.Target{Tree: spoilt, Name: "t"}, format.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		pruned, err := nest.Pruned(sc.Field(col), want)
		if err != nil {
			t.Fatal(err)
		}
		row := 0
		for g := range r.meta.RowGroups {
			for got, err := range r.Batches(context.Background(), format.RowGroup{Index: g}, q, vec.Range{}, memory.NewGoAllocator()) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				a := got.Column(0)
				if !arrow.TypeEqual(a.DataType(), pruned.Type) {
					t.Fatalf("%s: type %s, want %s", name, a.DataType(), pruned.Type)
				}
				for i := range a.Len() {
					want := only(join(t, all, col), pruned.Type)
					if g, w := a.ValueStr(i), want.ValueStr(row); g != w {
						t.Fatalf("%s: row %d: %s, want %s", name, row, g, w)
					}
					row++
				}
			}
		}
		if row != 150 {
			t.Errorf("%s: %d rows", name, row)
		}
	}
}

// only leaves those children in a's structs that to has.
func only(a arrow.Array, to arrow.DataType) arrow.Array {
	fields, ok := to.(arrow.NestedType)
	if !ok || to.ID() == arrow.MAP {
		return a
	}
	had := a.DataType().(arrow.NestedType).Fields()
	var kids []arrow.ArrayData
	for _, f := range fields.Fields() {
		for i, h := range had {
			if h.Name == f.Name {
				kids = append(kids, only(array.MakeFromData(a.Data().Children()[i]), f.Type).Data())
			}
		}
	}
	return array.MakeFromData(array.NewData(to, a.Len(), a.Data().Buffers(), kids, a.NullN(), a.Data().Offset()))
}
