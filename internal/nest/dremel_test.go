package nest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// The schema, the two documents and the columns of the Dremel paper, figures 2 and 3. A repeated field is a
// non-nullable list of non-nullable items.
var dremelSchema = arrow.NewSchema([]arrow.Field{
	{Name: "DocId", Type: arrow.PrimitiveTypes.Int64},
	{Name: "Links", Type: arrow.StructOf(
		arrow.Field{Name: "Backward", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
		arrow.Field{Name: "Forward", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)}), Nullable: true},
	{Name: "Name", Type: arrow.ListOfNonNullable(arrow.StructOf(
		arrow.Field{Name: "Language", Type: arrow.ListOfNonNullable(arrow.StructOf(
			arrow.Field{Name: "Code", Type: arrow.BinaryTypes.String},
			arrow.Field{Name: "Country", Type: arrow.BinaryTypes.String, Nullable: true}))},
		arrow.Field{Name: "Url", Type: arrow.BinaryTypes.String, Nullable: true}))},
}, nil)

const dremelDocuments = `[
 {"DocId": 10, "Links": {"Backward": [], "Forward": [20, 40, 60]}, "Name": [
   {"Language": [{"Code": "en-us", "Country": "us"}, {"Code": "en", "Country": null}], "Url": "http://A"},
   {"Language": [], "Url": "http://B"},
   {"Language": [{"Code": "en-gb", "Country": "gb"}], "Url": null}]},
 {"DocId": 20, "Links": {"Backward": [10, 30], "Forward": [80]}, "Name": [{"Language": [], "Url": "http://C"}]}
]`

// value, repetition level, definition level
var dremelColumns = map[string]string{
	"DocId":                           "10 0 0 | 20 0 0",
	"Name.item.Url":                   "http://A 0 2 | http://B 1 2 | NULL 1 1 | http://C 0 2",
	"Links.Forward.item":              "20 0 2 | 40 1 2 | 60 1 2 | 80 0 2",
	"Links.Backward.item":             "NULL 0 1 | 10 0 2 | 30 1 2",
	"Name.item.Language.item.Code":    "en-us 0 2 | en 2 2 | NULL 1 1 | en-gb 1 2 | NULL 0 1",
	"Name.item.Language.item.Country": "us 0 3 | NULL 2 2 | NULL 1 1 | gb 1 3 | NULL 0 1",
}

func dremelRecord(t *testing.T) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.NewGoAllocator(), dremelSchema, strings.NewReader(dremelDocuments))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func (s *Shredded) table() string {
	var out []string
	k := 0
	for i := range s.Entries {
		var def, rep byte
		if s.Def != nil {
			def = s.Def[i]
		}
		if s.Rep != nil {
			rep = s.Rep[i]
		}
		v := "NULL"
		if def == s.MaxDef {
			p := k
			if s.Present != nil {
				p = int(s.Present[k])
			}
			v = s.Values.ValueStr(p)
			k++
		}
		out = append(out, fmt.Sprintf("%s %d %d", v, rep, def))
	}
	return strings.Join(out, " | ")
}

func TestShredIsThePapersFigure3(t *testing.T) {
	rec := dremelRecord(t)
	seen := 0
	for i, f := range dremelSchema.Fields() {
		got, err := Shred(f, rec.Column(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got {
			seen++
			if want := dremelColumns[s.Name]; s.table() != want {
				t.Errorf("%s:\n got %s\nwant %s", s.Name, s.table(), want)
			}
		}
	}
	if seen != len(dremelColumns) {
		t.Errorf("%d leaves, the paper has %d", seen, len(dremelColumns))
	}
}

// levelColumns returns the physical columns of a schema that is stored by levels, and their entries for a record.
func levelColumns(t testing.TB, sc *arrow.Schema, rec arrow.RecordBatch,
	mem memory.Allocator) (cols []format.Column, in []Input) {
	t.Helper()
	for i, f := range sc.Fields() {
		ss, err := Shred(f, rec.Column(i))
		if err != nil {
			t.Fatal(err)
		}
		for k := range ss {
			s := &ss[k]
			cols = append(cols, format.Column{Name: s.Name, Path: append([]int{i}, s.Path...), Parent: -1,
				Has: format.Values | format.Levels, MaxDef: s.MaxDef, MaxRep: s.MaxRep, Type: s.Type})
			in = append(in, Input{Array: spaced(t, s, mem), Def: s.Def, Rep: s.Rep})
		}
	}
	return cols, in
}

// spaced returns the values of a leaf, with a null for every entry that has none.
func spaced(t testing.TB, s *Shredded, mem memory.Allocator) arrow.Array {
	dense, err := s.Dense(mem)
	if err != nil {
		t.Fatal(err)
	}
	defer dense.Release()
	if dense.Len() != s.Count() || dense.NullN() > 0 && s.Type.ID() != arrow.NULL {
		t.Fatalf("%s: %d values, %d of them null; %d are there", s.Name, dense.Len(), dense.NullN(), s.Count())
	}
	idx, k := make([]int32, s.Entries), int32(0)
	for i := range idx {
		if idx[i] = -1; s.Def == nil || s.Def[i] == s.MaxDef {
			idx[i] = k
			k++
		}
	}
	out, err := Take(dense, idx, mem)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestThePapersProjection(t *testing.T) {
	rec := dremelRecord(t)
	cols, in := levelColumns(t, dremelSchema, rec, memory.NewGoAllocator())
	want := [][]int{{2, 0, 0, 0, 1}} // Name.Language.Country
	use, err := Needed(dremelSchema.Field(2), want, cols, Tops(cols, 3)[2])
	if err != nil {
		t.Fatal(err)
	}
	if len(use) != 1 || cols[use[0]].Name != "Name.item.Language.item.Country" {
		t.Fatalf("needs the columns %v", use)
	}
	a, err := NewAssembler(dremelSchema.Field(2), cols, use, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Assemble([]Input{in[use[0]]}, 2, memory.NewGoAllocator())
	if err != nil {
		t.Fatal(err)
	}
	const figure = `[[{"Language":[{"Country":"us"},{"Country":null}]},{"Language":[]},` +
		`{"Language":[{"Country":"gb"}]}],[{"Language":[]}]]`
	if s := jsonOf(got); s != figure {
		t.Errorf("got %s\nwant %s", s, figure)
	}
	if f, err := Pruned(dremelSchema.Field(2), want); err != nil || !arrow.TypeEqual(f.Type, got.DataType()) ||
		f.Name != "Name" {
		t.Errorf("planned %v (%v), got %v", f, err, got.DataType())
	}
}

func TestAssembleThePapersDocuments(t *testing.T) {
	rec := dremelRecord(t)
	cols, in := levelColumns(t, dremelSchema, rec, memory.NewGoAllocator())
	for i, f := range dremelSchema.Fields() {
		use, err := Needed(f, nil, cols, Tops(cols, dremelSchema.NumFields())[i])
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAssembler(f, cols, use, nil)
		if err != nil {
			t.Fatal(err)
		}
		var mine []Input
		for _, u := range use {
			mine = append(mine, in[u])
		}
		got, err := a.Assemble(mine, 2, memory.NewGoAllocator())
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, rec.Column(i)) {
			t.Errorf("%s: %v, want %v", f.Name, got, rec.Column(i))
		}
	}
}

func TestLevelsThatNoTreeHas(t *testing.T) {
	list := arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true} // levels 3, 1
	col := []format.Column{{Name: "l", Path: []int{0, 0}, Parent: -1, Has: format.Values | format.Levels, MaxDef: 3,
		MaxRep: 1, Type: arrow.PrimitiveTypes.Int32}}
	a, err := NewAssembler(list, col, []int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		def, rep []byte
		rows     int
		want     string
	}{
		"a list that goes on after null":        {[]byte{0, 3}, []byte{0, 1}, 1, "entry 1"},
		"a list that goes on after empty":       {[]byte{1, 3}, []byte{0, 1}, 1, "entry 1"},
		"an empty list within a list":           {[]byte{3, 1}, []byte{0, 1}, 1, "entry 1"},
		"begins in the middle of a list":        {[]byte{3, 3}, []byte{1, 0}, 1, "entry 0"},
		"too deep a definition":                 {[]byte{4}, []byte{0}, 1, "entry 0"},
		"too deep a repetition":                 {[]byte{3, 3}, []byte{0, 2}, 1, "entry 1"},
		"a row too few":                         {[]byte{3, 3}, []byte{0, 1}, 2, "1 rows"},
		"a row too many":                        {[]byte{3, 3}, []byte{0, 0}, 1, "2 rows"},
		"nothing wrong, to see that one can be": {[]byte{3, 2, 1, 0}, []byte{0, 1, 0, 0}, 3, ""},
	} {
		b := array.NewInt32Builder(memory.NewGoAllocator())
		for _, d := range c.def {
			if d == 3 {
				b.Append(7)
			} else {
				b.AppendNull()
			}
		}
		got, err := a.Assemble([]Input{{Array: b.NewArray(), Def: c.def, Rep: c.rep}}, c.rows, memory.NewGoAllocator())
		switch {
		case c.want == "" && err == nil:
			if s := jsonOf(got); s != "[[7,null],[],null]" {
				t.Errorf("%s: %s", name, s)
			}
		case err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "corrupt: l: "):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCounts(t *testing.T) {
	rep := slices.Concat([]byte{0, 1, 1, 0, 0, 2, 1}, make([]byte, 5000), []byte{1, 1, 0})
	if n := CountRows(rep); n != 5004 {
		t.Errorf("%d rows", n)
	}
	for row, want := range map[int]int{0: 0, 1: 3, 2: 4, 3: 7, 4: 8, 5002: 5006, 5003: 5009, 5004: len(rep),
		9999: len(rep)} {
		if got := RowStart(rep, row); got != want {
			t.Errorf("row %d begins at %d, want %d", row, got, want)
		}
	}
	if n, err := SumLengths([]int32{3, 0, 4}); n != 7 || err != nil {
		t.Error(n, err)
	}
	if _, err := SumLengths([]int32{3, -1, 4}); err == nil || !strings.Contains(err.Error(), "entry 1") {
		t.Error(err)
	}
}

// jsonOf returns the content of an array, independent of its representation.
func jsonOf(a arrow.Array) string {
	b, err := a.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), "\n", "")
}
