package cfile_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
)

// oneOfTwo returns a directory with columns a and b; b begins with first.
func oneOfTwo(t *testing.T, first int64, opts map[string]string) map[string][]byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range int64(100) {
		b.Field(0).(*array.Int64Builder).Append(i)
		b.Field(1).(*array.Int64Builder).Append(first + i)
	}
	tree := store.NewMemory(nil)
	w, err := cfile.Format.Create(t.Context(), tree.Sink("t"), sc, format.WriteOptions{Rows: -1, Dir: true, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	formattest.Sound(t, &cfile.Format, tree, "t")
	out := map[string][]byte{}
	for _, n := range tree.Names() {
		out[n] = tree.Bytes(n)
	}
	return out
}

// TestColumnOfAnotherTable: a column file of another table, with the same name, type, size and number of rows, is not
// read in place of the table's.
func TestColumnOfAnotherTable(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"compression": "lz4"}, {"plain-metadata": "true"},
		{"checksums": "false"}} {
		mine, other := oneOfTwo(t, 1000, opts), oneOfTwo(t, 2000, opts)
		for exchanged, files := range map[bool]map[string][]byte{false: maps.Clone(mine), true: maps.Clone(mine)} {
			if exchanged {
				files["t/b.cfile"] = other["t/b.cfile"]
			}
			why := "of different tables"
			if opts["plain-metadata"] != "" {
				why = "another table's" // by its length
			}
			tg := format.Target{Tree: store.NewMemory(files), Name: "t"}
			if r, err := cfile.Format.Open(t.Context(), tg, format.OpenOptions{}); (err != nil) != exchanged ||
				exchanged && !strings.Contains(err.Error(), why) {
				t.Errorf("%v, exchanged %t: open: %v", opts, exchanged, err)
			} else if err == nil {
				r.Close()
			}
			for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
				reported := 0
				for f := range cfile.Format.Verify(t.Context(), tg, format.OpenOptions{Depth: depth}) {
					if f.Severity == region.Error {
						if reported++; f.Code != "cfile.set" || f.Column != "b" || f.At.Object != "t/b.cfile" {
							t.Errorf("%+v", f)
						}
					}
				}
				if reported != map[bool]int{true: 1}[exchanged] {
					t.Errorf("%v, exchanged %t, %v: %d errors", opts, exchanged, depth, reported)
				}
			}
		}
	}
}

// TestNamesThatAreEmpty: a column or field with an empty name keeps it, even beside one that has the default name of a
// single file's column.
func TestNamesThatAreEmpty(t *testing.T) {
	i := arrow.PrimitiveTypes.Int64
	for text, sc := range map[string]*arrow.Schema{
		`[{"": 1, "value": 2}]`: arrow.NewSchema([]arrow.Field{{Name: "", Type: i}, {Name: "value", Type: i}}, nil),
		`[{"s": {"": 1, "y": 2}}]`: arrow.NewSchema([]arrow.Field{{Name: "s",
			Type: arrow.StructOf(arrow.Field{Name: "", Type: i}, arrow.Field{Name: "y", Type: i})}}, nil),
	} {
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		tree := store.NewMemory(nil)
		w, err := cfile.Format.Create(t.Context(), tree.Sink("t"), sc, format.WriteOptions{Rows: -1, Dir: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{cfile.Format}})
		if err != nil {
			t.Fatal(err)
		}
		for n, f := range got.Schema().Fields() {
			if want := sc.Field(n); f.Name != want.Name || !arrow.TypeEqual(f.Type, want.Type) {
				t.Errorf("column %d is %s, want %s", n, f, want)
			}
		}
		got.Close()
	}
}

// TestDamagedSetID: damage within a column's footer costs no row, wherever it is, also where the id of the set was: the
// marks of table.json prove that the blocks are the table's. Those of another table, whose footer is damaged likewise,
// are not read in their place.
func TestDamagedSetID(t *testing.T) {
	for _, opts := range []map[string]string{{"block-size": "512"}, {"compression": "lz4"}} {
		mine, other := oneOfTwo(t, 1000, opts), oneOfTwo(t, 2000, opts)
		whole := mine["t/b.cfile"]
		id := bytes.Index(whole, []byte("stoa.set"))
		if id < 0 {
			t.Fatal("the file has no id of a set")
		}
		for n := 1; n <= 34; n++ {
			for at := id; at+n <= id+8+2+32; at += 3 {
				for of, from := range map[string][]byte{"mine": whole, "another": other["t/b.cfile"]} {
					bad := bytes.Clone(from)
					clear(bad[at : at+n])
					files := maps.Clone(mine)
					files["t/b.cfile"] = bad
					right, wrong := columnB(t, files)
					if wrong > 0 || of == "mine" && right != 100 {
						t.Fatalf("%v, %s, %d bytes at %d: %d right and %d wrong cells", opts, of, n, at, right, wrong)
					}
				}
			}
		}
	}
}

// columnB recovers a set, and returns how many cells of column b are those of oneOfTwo(1000), and how many are others
// and not null.
func columnB(t *testing.T, files map[string][]byte) (right, wrong int) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	row := int64(0)
	for r, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(region.Loss) {}}) {
		if err != nil {
			t.Fatal(err)
		}
		b := r.Column(1).(*array.Int64)
		for i := range b.Len() {
			switch {
			case b.IsValid(i) && b.Value(i) == 1000+row:
				right++
			case b.IsValid(i):
				wrong++
			}
			row++
		}
	}
	return right, wrong
}

// TestDamagedSchemaAndName: if the schema of table.json is damaged, and the path of a column besides, the column is
// read under the name that its file has, and no cell is lost or another's.
func TestDamagedSchemaAndName(t *testing.T) {
	whole := oneOfTwo(t, 1000, nil)
	text := whole["t/table.json"]
	schema, path := bytes.Index(text, []byte(`"schema": "`)), bytes.LastIndex(text, []byte(`"path": "b"`))
	if schema < 0 || path < 0 {
		t.Fatalf("table.json is %s", text)
	}
	for at := path + 1; at < path+11; at++ {
		for _, bit := range []byte{1, 4, 16} {
			bad := bytes.Clone(text)
			copy(bad[schema+11:], "AAAA") // no schema begins so
			bad[at] ^= bit
			files := maps.Clone(whole)
			files["t/table.json"] = bad
			if right, wrong := columnB(t, files); right != 100 || wrong > 0 {
				t.Errorf("byte %d of %s: %d right and %d wrong cells, want 100 right", at-path,
					bad[path:path+12], right, wrong)
			}
		}
	}
}

// TestExchangedAndDamaged: files of a set whose table.json is no JSON any more are exchanged, and one of them has lost
// its footer. No column is both read and told lost, and one is told lost.
func TestExchangedAndDamaged(t *testing.T) {
	whole := oneOfTwo(t, 1000, nil)
	for damaged, other := range map[string]string{"a": "b", "b": "a"} {
		for _, keeps := range []bool{true, false} { // the schema in table.json
			files := maps.Clone(whole)
			text := bytes.Clone(whole["t/table.json"])
			text[len(text)-2] = 0
			if !keeps {
				copy(text[bytes.Index(text, []byte(`"schema"`)):], `"sch`)
			}
			bad := bytes.Clone(whole["t/"+damaged+".cfile"])
			clear(bad[len(bad)-8:])
			files["t/table.json"], files["t/"+other+".cfile"], files["t/"+damaged+".cfile"] = text, bad,
				whole["t/"+other+".cfile"]
			tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for r, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows,
				Lost: func(l region.Loss) { told = append(told, l.Column) }}) {
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Schema().Fields() {
					if slices.Contains(told, f.Name) {
						t.Errorf("%s, %v: column %s is told lost, and read", damaged, keeps, f.Name)
					}
				}
			}
			for _, f := range tab.Findings() {
				if f.Lost != 0 {
					told = append(told, f.Column)
				}
			}
			names := tab.Schema().Fields()
			if len(names) != 1 || names[0].Name != other || len(told) == 0 || slices.Contains(told, other) ||
				keeps && !slices.Contains(told, damaged) {
				t.Errorf("%s, %v: got columns %v, and %q told lost", damaged, keeps, names, told)
			}
			tab.Close()
		}
	}
}

// TestExchangedBesideFooter: the files of two columns of a set are exchanged, and a byte of one's footer is another. No
// cell is read as the other column's; where the files are in their places and have checksums, each cell is read.
func TestExchangedBesideFooter(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"compression": "lz4"}, {"encoding": "plain"},
		{"checksums": "false"}} {
		whole := oneOfTwo(t, 1000, opts)
		for k := 1; k <= 130; k++ { // footers have 120 to 140 bytes
			for _, mask := range []byte{0x1f, 0xb8} {
				damaged := func(name string) []byte {
					b := bytes.Clone(whole[name])
					b[len(b)-k] ^= mask
					return b
				}
				files := maps.Clone(whole)
				files["t/b.cfile"] = damaged("t/b.cfile")
				if right, wrong := columnB(t, files); right != 100 && opts["checksums"] == "" || wrong > 0 {
					t.Errorf("%v, b from end %d: %d right and %d wrong cells, want 100 right", opts, k, right, wrong)
				}
				files["t/b.cfile"] = damaged("t/a.cfile")
				if right, wrong := columnB(t, files); right+wrong > 0 {
					t.Errorf("%v, a in b's place, from end %d: %d right and %d wrong cells, want none", opts, k,
						right, wrong)
				}
			}
		}
	}
}
