package cfile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/store"
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

// TestNoNullWhereNoneIs: whichever bit of a list column's file without checksums is flipped, no null comes in a column
// that still says that it has none.
func TestNoNullWhereNoneIs(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(
		`[{"l": [1, 2]}, {"l": []}, {"l": [3]}, {"l": []}, {"l": [4, 5, 6]}, {"l": []}, {"l": [7]}, {"l": []}]`))
	if err != nil {
		t.Fatal(err)
	}
	tree, _ := tableOf(t, b, map[string]string{"checksums": "false"})
	refused := 0
	for _, name := range tree.Names() {
		whole := tree.Bytes(name)
		if !strings.HasSuffix(name, ".cfile") {
			continue
		}
		for bit := range 8 * len(whole) {
			bad := slices.Clone(whole)
			bad[bit/8] ^= 1 << (bit % 8)
			tab, err := stoa.Open(t.Context(), "f.cfile", stoa.OpenOptions{Tree: store.NewMemory(
				map[string][]byte{"f.cfile": bad})})
			if err != nil {
				continue
			}
			for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					refused++
					break
				}
				if f := b.Schema().Field(0); !f.Nullable && b.Column(0).NullN() > 0 {
					t.Errorf("bit %d of byte %d of %s: %v", bit%8, bit/8, name, b.Column(0))
				}
			}
			tab.Close()
		}
	}
	if refused < 10 {
		t.Errorf("only %d files were refused", refused)
	}
}
