package cfile_test

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// person is a nullable struct with a non-nullable field and a nested struct.
var person = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int32},
	{Name: "p", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "name", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "age", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		arrow.Field{Name: "at", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true})})},
}, nil)

const persons = `[{"id":0,"p":{"name":"a","age":1,"at":{"x":0.5}}}, {"id":1,"p":null},
	{"id":2,"p":{"name":"b","age":null,"at":null}}, {"id":3,"p":{"name":"c","age":3,"at":{"x":null}}}]`

func personsTable(t *testing.T, text string, opts map[string]string) *store.Memory {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, person, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	tree, _ := tableOf(t, b, opts)
	return tree
}

// jsonOf scans, and returns the rows as JSON, one per line.
func jsonOf(t *testing.T, src scan.Source, spec scan.Spec) (lines []string, lost []region.Loss, err error) {
	t.Helper()
	spec.Lost = func(l region.Loss) { lost = append(lost, l) }
	for b, err := range scan.Run(t.Context(), src, spec, nil) {
		if err != nil {
			return lines, lost, err
		}
		var out bytes.Buffer
		if err := array.RecordToJSON(b, &out); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(out.String()), "\n")...)
	}
	return lines, lost, nil
}

func codesOf(tree store.Tree, d format.Depth, t *testing.T) (out []string) {
	for f := range cfile.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
		format.OpenOptions{Limits: format.Limits{}.WithDefaults(), Depth: d}) {
		out = append(out, f.Code)
	}
	return out
}

// openError returns the error of opening a table.
func openError(t *testing.T, tree store.Tree) error {
	r, err := cfile.Format.Open(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err == nil {
		r.Close()
	}
	return err
}

func without(tree *store.Memory, name string) *store.Memory {
	files := map[string][]byte{}
	for _, n := range tree.Names() {
		if n != name {
			files[n] = slices.Clone(tree.Bytes(n))
		}
	}
	return store.NewMemory(files)
}

// TestLostFiles: if a file is missing, only its cells are lost. The other fields of its struct are read; a struct whose
// validity is missing is not null where a field of it is not.
func TestLostFiles(t *testing.T) {
	whole := personsTable(t, persons, nil)
	for name, want := range map[string][]string{
		"p.name.cfile": {`{"id":0,"p":{"age":1,"at":{"x":0.5},"name":null}}`, `{"id":1,"p":null}`,
			`{"id":2,"p":{"age":null,"at":null,"name":null}}`, `{"id":3,"p":{"age":3,"at":{"x":null},"name":null}}`},
		"p.at.x.cfile": {`{"id":0,"p":{"age":1,"at":{"x":null},"name":"a"}}`, `{"id":1,"p":null}`,
			`{"id":2,"p":{"age":null,"at":null,"name":"b"}}`, `{"id":3,"p":{"age":3,"at":{"x":null},"name":"c"}}`},
		"p.cfile": {`{"id":0,"p":{"age":1,"at":{"x":0.5},"name":"a"}}`, `{"id":1,"p":null}`,
			`{"id":2,"p":{"age":null,"at":null,"name":"b"}}`, `{"id":3,"p":{"age":3,"at":{"x":null},"name":"c"}}`},
		"p.at.cfile": {`{"id":0,"p":{"age":1,"at":{"x":0.5},"name":"a"}}`, `{"id":1,"p":null}`,
			`{"id":2,"p":{"age":null,"at":null,"name":"b"}}`, `{"id":3,"p":{"age":3,"at":null,"name":"c"}}`},
	} {
		column := strings.TrimSuffix(name, ".cfile")
		tree := without(whole, "t/"+name)
		if c := codesOf(tree, format.Quick, t); !slices.Contains(c, "cfile.set") {
			t.Errorf("%s: verify reports %v", name, c)
		}
		if err := openError(t, tree); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		src, found := sourceOf(t, tree, true)
		if len(found) != 1 || found[0].Code != "cfile.set" || found[0].Column != column || found[0].Lost != 4 ||
			found[0].Rows != [2]int64{0, 4} {
			t.Errorf("%s: recover found %+v", name, found)
		}
		got, lost, err := jsonOf(t, src, scan.Spec{Damaged: scan.NullCells})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(lost) != 1 || lost[0].Column != "p" || cmp.Or(lost[0].Stored, "p") != column ||
			lost[0].Rows != [2]int64{0, 4} || !lost[0].Exact {
			t.Errorf("%s: losses %+v", name, lost)
		}
		got, lost, err = jsonOf(t, src, scan.Spec{Damaged: scan.SkipRows})
		if err != nil || len(got) > 0 || len(lost) != 1 {
			t.Errorf("%s: skipping rows: %v %v %v", name, got, lost, err)
		}
		other := map[bool]string{true: "p.age", false: "p.name"}[column != "p.age"]
		if column == "p.name" {
			other = "p.at.x"
		}
		_, lost, err = jsonOf(t, src, scan.Spec{Columns: []string{other}})
		if column != other && (err != nil || len(lost) > 0) {
			t.Errorf("%s: %s cannot be read: %v %v", name, other, err, lost)
		}
	}
}

// TestContradictions: a null struct with a field that is not null, and a struct that is not null but lacks a
// non-nullable field, are damage, wherever the files came from. Verify reports it, and so does reading under every
// policy.
func TestContradictions(t *testing.T) {
	withoutSums := map[string]string{"plain-metadata": "true"} // no file states that it is another table's
	tree := personsTable(t, persons, withoutSums)
	other := personsTable(t, strings.Replace(strings.Replace(persons, `"p":null`, `"p":{"name":"n"}`, 1),
		`{"name":"c","age":3,"at":{"x":null}}`, "null", 1), withoutSums)
	tree.Put("t/p.cfile", other.Bytes("t/p.cfile")) // row 1 is not null, row 3 is
	for d, want := range map[format.Depth][]string{format.Deep: {"cfile.set", "cfile.struct"},
		format.Sums: {"cfile.set", "cfile.struct"}, format.Quick: nil} {
		if got := codesOf(tree, d, t); !slices.Equal(got, want) {
			t.Errorf("%s: %v", d, got)
		}
	}
	src, _ := sourceOf(t, tree, false)
	_, _, err := jsonOf(t, src, scan.Spec{})
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "column p: row 1: p.name is null") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		policy scan.Damaged
		want   []string
	}{
		{scan.SkipRows, []string{`{"id":0,"p":{"age":1,"at":{"x":0.5},"name":"a"}}`,
			`{"id":2,"p":{"age":null,"at":null,"name":"b"}}`}},
		{scan.NullCells, []string{`{"id":0,"p":{"age":1,"at":{"x":0.5},"name":"a"}}`, `{"id":1,"p":null}`,
			`{"id":2,"p":{"age":null,"at":null,"name":"b"}}`, `{"id":3,"p":null}`}},
	} {
		got, lost, err := jsonOf(t, src, scan.Spec{Damaged: c.policy})
		var rows []int64
		for _, l := range lost {
			if l.Column != "p" || !l.Exact || l.Rows[1] != l.Rows[0]+1 {
				t.Errorf("%+v", l)
			}
			rows = append(rows, l.Rows[0])
		}
		if slices.Sort(rows); err != nil || !slices.Equal(got, c.want) || !slices.Equal(rows, []int64{1, 3}) {
			t.Errorf("policy %d: %v, lost %v\n%s", c.policy, err, rows, strings.Join(got, "\n"))
		}
	}
	// a field alone is read from its own file
	if got, lost, err := jsonOf(t, src, scan.Spec{Columns: []string{"p.age"}}); err != nil || len(lost) > 0 ||
		!slices.Equal(got, []string{`{"p.age":1}`, `{"p.age":null}`, `{"p.age":null}`, `{"p.age":3}`}) {
		t.Errorf("%v %v %v", got, lost, err)
	}
}

// TestDamagedSet: a damaged table.json is reported, and recovery restores structs from what is left of it; without
// table.json the fields become columns according to the metadata of the files.
func TestDamagedSet(t *testing.T) {
	whole := personsTable(t, persons, nil)
	src, _ := sourceOf(t, whole, false)
	want, _, err := jsonOf(t, src, scan.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`"version": 2`, `"version": 1`}, {`"holds": "validity"`, `"holds": "validitz"`},
		{`"path": "p.at"`, `"path": "p.bt"`}, {`"file": "p.cfile"`, `"file": "q.cfile"`}} {
		tree := without(whole, "")
		b := bytes.Replace(whole.Bytes("t/table.json"), []byte(c[0]), []byte(c[1]), 1)
		if bytes.Equal(b, whole.Bytes("t/table.json")) {
			t.Fatalf("%s is not in %s", c[0], b)
		}
		tree.Put("t/table.json", b)
		if err := openError(t, tree); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%v: %v", c, err)
		}
		if got := codesOf(tree, format.Quick, t); !slices.Contains(got, "cfile.set") {
			t.Errorf("%v: verify reports %v", c, got)
		}
		rec, found := sourceOf(t, tree, true)
		got, _, err := jsonOf(t, rec, scan.Spec{Damaged: scan.NullCells})
		if err != nil || !slices.Equal(got, want) || len(found) == 0 {
			t.Errorf("%v: %v, found %v\n%s", c, err, found, strings.Join(got, "\n"))
		}
	}
	rec, found := sourceOf(t, without(whole, "t/table.json"), true)
	var names []string
	for _, f := range rec.Reader.Schema().Fields() {
		holds, _ := f.Metadata.GetValue("stoa.holds")
		names = append(names, f.Name+" "+f.Type.String()+" "+holds)
	}
	if w := []string{"id int32 ", "p bool validity", "p.age int8 ", "p.at bool validity", "p.at.x float64 ",
		"p.name utf8 "}; !slices.Equal(names, w) || len(found) == 0 {
		t.Errorf("%q, %v", names, found)
	}
	got, _, err := jsonOf(t, rec, scan.Spec{})
	w := `{"id":0,"p":true,"p.age":1,"p.at":true,"p.at.x":0.5,"p.name":"a"}`
	if err != nil || len(got) != 4 || got[0] != w {
		t.Errorf("%v %v", got, err)
	}
	// an unknown version is refused
	tree := without(whole, "")
	tree.Put("t/table.json", bytes.Replace(whole.Bytes("t/table.json"), []byte(`"version": 2`),
		[]byte(`"version": 3`), 1))
	if err := openError(t, tree); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "version") {
		t.Error(err)
	}
}

// TestKeyInStruct: a field with a value index is the table's key, and its index narrows what is read.
func TestKeyInStruct(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "v", Type: arrow.BinaryTypes.String})}}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	s := rb.Field(0).(*array.StructBuilder)
	for i := range 5000 {
		s.Append(true)
		s.FieldBuilder(0).(*array.Int64Builder).Append(int64(3 * i))
		s.FieldBuilder(1).(*array.StringBuilder).Append("v" + string(rune('a'+i%26)))
	}
	b := rb.NewRecordBatch()
	defer b.Release()
	opts := map[string]string{"value-index.s.k": "true", "block-size": "512"}
	tree, _ := tableOf(t, b, opts)
	healthy(t, tree, "keyed")
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{cfile.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if !tab.Keyed() || !reflect.DeepEqual(tab.Keys(), []string{"s.k"}) {
		t.Fatalf("keys %v", tab.Keys())
	}
	key, err := tab.ParseKey([]string{"2997"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for b, err := range tab.Seek(t.Context(), key, stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			got = append(got, b.Column(0).ValueStr(i))
		}
	}
	if !slices.Equal(got, []string{`{"k":2997,"v":"vl"}`}) {
		t.Errorf("%v", got)
	}
	if _, err := tab.ParseKey([]string{"x"}); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "s.k") {
		t.Error(err)
	}
	where, err := pred.Parse("s.k >= 3000 and s.k < 3030")
	if err != nil {
		t.Fatal(err)
	}
	x, err := tab.Explain(t.Context(), stoa.ScanSpec{Filter: where}, false)
	if err != nil {
		t.Fatal(err)
	}
	narrowed := false
	for _, l := range x.Levels {
		if l.Level == format.LevelRows && l.Read < 1000 {
			narrowed = true
		}
	}
	if !narrowed {
		t.Errorf("%+v", x.Levels)
	}
	// such an index cannot hold a null, and a null struct contains one
	s.AppendNull()
	n := rb.NewRecordBatch()
	defer n.Release()
	w, err := cfile.Format.Create(t.Context(), store.NewMemory(nil).Sink("t"), sc, format.WriteOptions{Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), n); err == nil || !strings.Contains(err.Error(), `"s.k"`) {
		t.Error(err)
	}
	_ = w.Abort(t.Context())
}
