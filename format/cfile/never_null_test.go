package cfile_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/cfile"
)

// TestNeverNull: a directory keeps which lists and structs are never null, also inside structs.
func TestNeverNull(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	for _, l := range []bool{false, true} {
		for _, s := range []bool{false, true} {
			within := arrow.StructOf(arrow.Field{Name: "l", Type: list, Nullable: l})
			schema := arrow.NewSchema([]arrow.Field{{Name: "l", Type: list, Nullable: l},
				{Name: "s", Type: within, Nullable: s},
				{Name: "t", Type: arrow.StructOf(arrow.Field{Name: "u", Type: within, Nullable: s})}}, nil)
			b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(
				`[{"l": [1, 2], "s": {"l": []}, "t": {"u": {"l": [3]}}},
				{"l": [], "s": {"l": [4]}, "t": {"u": {"l": []}}}]`))
			if err != nil {
				t.Fatal(err)
			}
			tree, _ := tableOf(t, b, nil)
			r, err := cfile.Format.Open(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range schema.Fields() {
				got := r.Schema().Field(i)
				got.Metadata = arrow.Metadata{}
				if got.Nullable != f.Nullable || plain(got.Type) != plain(f.Type) {
					t.Errorf("lists nullable %t, structs nullable %t: %s came back as %v, nullable %t", l, s, f.Name,
						plain(got.Type), got.Nullable)
				}
			}
			r.Close()
		}
	}
}

// plain names a type with what may be null in it, without metadata.
func plain(t arrow.DataType) string {
	s, ok := t.(*arrow.StructType)
	if !ok {
		return t.Name()
	}
	out := "struct<"
	for _, f := range s.Fields() {
		out += f.Name + " " + plain(f.Type)
		if f.Nullable {
			out += " null"
		}
		out += ","
	}
	return out + ">"
}
