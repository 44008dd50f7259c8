package cfile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// heldLeaves returns the leaf types that are read as they were written.
func heldLeaves() []arrow.DataType {
	return slices.DeleteFunc(formattest.LeafTypes(), func(t arrow.DataType) bool {
		return notHeld(t) || t.ID() == arrow.DICTIONARY
	})
}

// notHeld reports whether a CFile cannot hold values of a type.
func notHeld(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.NullType, *arrow.MonthIntervalType, *arrow.DayTimeIntervalType, *arrow.MonthDayNanoIntervalType:
		return true
	case *arrow.Decimal256Type:
		return t.Precision > 38
	case *arrow.DictionaryType:
		return notHeld(t.ValueType)
	}
	return false
}

// tableOf writes a batch in pieces.
func tableOf(t *testing.T, b arrow.RecordBatch, opts map[string]string) (*store.Memory, format.Summary) {
	t.Helper()
	tree := store.NewMemory(nil)
	w, err := cfile.Format.Create(t.Context(), tree.Sink("t"), b.Schema(), format.WriteOptions{Rows: -1, Opts: opts,
		Dir: true})
	if err != nil {
		t.Fatalf("%v: %v", b.Schema(), err)
	}
	for from := int64(0); from < b.NumRows(); {
		to := min(b.NumRows(), from+1+b.NumRows()/3)
		s := b.NewSlice(from, to)
		if err := w.Write(t.Context(), s); err != nil {
			t.Fatalf("%v: %v", b.Schema(), err)
		}
		s.Release()
		from = to
	}
	sum, err := w.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tree, sum
}

// sourceOf opens a table, or recovers it.
func sourceOf(t *testing.T, tree store.Tree, recovered bool) (scan.Source, []region.Finding) {
	t.Helper()
	o := format.OpenOptions{Limits: format.Limits{}.WithDefaults()}
	tg := format.Target{Tree: tree, Name: "t"}
	var found []region.Finding
	r, err := cfile.Format.Open(t.Context(), tg, o)
	if recovered {
		r, found, err = cfile.Format.Recover(t.Context(), tg, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return scan.Source{Reader: r, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(), Limits: o.Limits}, found
}

// scanned scans; cells have the form that formattest.CellsOf returns.
func scanned(t *testing.T, src scan.Source, spec scan.Spec) (columns [][]any, schema *arrow.Schema, err error) {
	t.Helper()
	if schema, err = scan.Schema(src.Reader, spec); err != nil {
		return nil, nil, err
	}
	columns = make([][]any, schema.NumFields())
	for b, err := range scan.Run(t.Context(), src, spec, nil) {
		if err != nil {
			return nil, nil, err
		}
		formattest.Valid(t, b)
		for i, c := range b.Columns() {
			if !arrow.TypeEqual(c.DataType(), schema.Field(i).Type) {
				t.Fatalf("column %d is %s, the plan says %s", i, c.DataType(), schema.Field(i).Type)
			}
			columns[i] = append(columns[i], formattest.CellsOf(c)...)
		}
	}
	return columns, schema, nil
}

func healthy(t *testing.T, tree store.Tree, what string) {
	t.Helper()
	for _, d := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		for f := range cfile.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Limits: format.Limits{}.WithDefaults(), Depth: d}) {
			if f.Severity > region.Note {
				t.Fatalf("%s: %s: %s %s: %s", what, d, f.Code, f.At, f.Message)
			}
		}
	}
}

// below returns the cells of the field at a path of child indices.
func below(cells []any, path []int) []any {
	out := slices.Clone(cells)
	for i, c := range out {
		for _, k := range path {
			if children, ok := c.([]any); ok {
				c = children[k]
			}
		}
		out[i] = c
	}
	return out
}

// paths calls f for all fields of a type, under the names that filters use.
func paths(name string, t arrow.DataType, at []int, f func(name string, at []int)) {
	f(name, at)
	if st, ok := t.(*arrow.StructType); ok {
		for i, c := range st.Fields() {
			paths(name+"."+c.Name, c.Type, append(slices.Clone(at), i), f)
		}
	}
}

// sameFields compares types and nullability, but not metadata, where the reader records how values are stored.
func sameFields(got, want []arrow.Field) bool {
	return slices.EqualFunc(got, want, func(g, w arrow.Field) bool {
		gs, ok := g.Type.(*arrow.StructType)
		if ws, is := w.Type.(*arrow.StructType); ok && is {
			return g.Name == w.Name && g.Nullable == w.Nullable && sameFields(gs.Fields(), ws.Fields())
		}
		return g.Name == w.Name && g.Nullable == w.Nullable && arrow.TypeEqual(g.Type, w.Type)
	})
}

// TestRandomStructs: for tables of structs with any types and nulls, the schema and each cell are read as they were
// written, also through projections. Filters find each field null exactly where its cell is, alone and together with
// others. And the files pass verification.
func TestRandomStructs(t *testing.T) {
	tables := 250
	if testing.Short() {
		tables = 50
	}
	for seed := range uint64(tables) {
		r := rand.New(rand.NewPCG(seed, 17))
		table := formattest.RandomTable(r, formattest.TableOptions{Rows: 60, Columns: 3, Depth: 1 + r.IntN(5),
			Leaves: heldLeaves(), Structs: true, Micros: true, Gaps: []int{0, 10, 50, 95, 100}})
		opts := map[string]string{}
		for _, o := range [][]string{{"block-size", "", "512"}, {"checksums", "", "false"}, {"version", "", "1"},
			{"plain-metadata", "", "true"}, {"compression", "", "lz4"}, {"encoding", "", "plain"}} {
			if v := o[1+r.IntN(2)]; v != "" {
				opts[o[0]] = v
			}
		}
		what := fmt.Sprintf("seed %d, %v, %v", seed, opts, table)
		tree, sum := tableOf(t, table.Batch, opts)
		if len(sum.Retyped) > 0 {
			t.Errorf("%s: retyped %v", what, sum.Retyped)
		}
		src, _ := sourceOf(t, tree, false)
		got, schema, err := scanned(t, src, scan.Spec{Batch: 1 + r.IntN(70)})
		if err != nil || !sameFields(schema.Fields(), table.Schema.Fields()) {
			t.Fatalf("%s: %v, schema %v", what, err, schema)
		}
		for i, want := range table.Cells {
			if len(want)+len(got[i]) > 0 && !reflect.DeepEqual(got[i], want) {
				t.Fatalf("%s: column %d:\n%q\n%q", what, i, got[i], want)
			}
		}
		for i, f := range table.Schema.Fields() {
			paths(f.Name, f.Type, nil, func(name string, at []int) {
				testField(t, what, src, table, i, at, name, r)
			})
		}
		healthy(t, tree, what)
		if rec, found := sourceOf(t, tree, true); len(found) == 0 {
			again, _, err := scanned(t, rec, scan.Spec{})
			if err != nil || len(got[0]) > 0 && !reflect.DeepEqual(again, got) {
				t.Fatalf("%s: recovered %v: %q", what, err, again)
			}
		} else {
			t.Fatalf("%s: recover found %v", what, found)
		}
	}
}

// testField reads one field alone, and filters by is null and is not null.
func testField(t *testing.T, what string, src scan.Source, table formattest.Table, top int, at []int, name string,
	r *rand.Rand) {
	t.Helper()
	cells := below(table.Cells[top], at)
	got, _, err := scanned(t, src, scan.Spec{Columns: []string{name}, Batch: 1 + r.IntN(70)})
	if err != nil || len(cells) > 0 && !reflect.DeepEqual(got[0], cells) {
		t.Fatalf("%s: %s is %v %q, want %q", what, name, err, got, cells)
	}
	for _, test := range []string{"is null", "is not null"} {
		where, err := pred.Parse(name + " " + test)
		if err != nil {
			t.Fatal(err)
		}
		last := table.Schema.NumFields() - 1
		var want []any
		for row, c := range cells {
			if (c == nil) == (test == "is null") {
				want = append(want, table.Cells[last][row])
			}
		}
		got, _, err := scanned(t, src, scan.Spec{Columns: []string{name, table.Schema.Field(last).Name}, Filter: where})
		if err != nil || !reflect.DeepEqual(got[1], want) {
			t.Fatalf("%s: %s %s gives %v %q, want %q", what, name, test, err, got, want)
		}
	}
}

// TestFlattened: with null-structs=flatten the fields are columns, as in sets of version 1.
func TestFlattened(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 18))
		table := formattest.RandomTable(r, formattest.TableOptions{Rows: 30, Columns: 3, Depth: 4,
			Leaves: heldLeaves(), Structs: true, Micros: true})
		if strings.Contains(table.Schema.String(), "struct<>") {
			continue
		}
		tree, _ := tableOf(t, table.Batch, map[string]string{"null-structs": "flatten"})
		if b := tree.Bytes("t/table.json"); !strings.Contains(string(b), `"version": 1`) ||
			strings.Contains(string(b), "holds") {
			t.Errorf("%s", b)
		}
		src, _ := sourceOf(t, tree, false)
		got, schema, err := scanned(t, src, scan.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for i, f := range table.Schema.Fields() {
			paths(f.Name, f.Type, nil, func(name string, at []int) {
				ft := f.Type
				for _, x := range at {
					ft = ft.(*arrow.StructType).Field(x).Type
				}
				if ft.ID() == arrow.STRUCT {
					return
				}
				want := below(table.Cells[i], at)
				if schema.Field(k).Name != name || len(want) > 0 && !reflect.DeepEqual(got[k], want) {
					t.Errorf("seed %d: column %v is %q, want %s %q", seed, schema.Field(k), got[k], name, want)
				}
				k++
			})
		}
		healthy(t, tree, "flattened")
	}
}

// TestEveryType: every type of Arrow is refused with the column's name, or read as it was written, or reported by the
// writer as retyped; alone, in a struct, and in a list.
func TestEveryType(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	types := append(formattest.LeafTypes(), arrow.MapOf(arrow.BinaryTypes.String, i32), arrow.ListOf(arrow.ListOf(i32)),
		arrow.LargeListOf(arrow.BinaryTypes.LargeString), arrow.LargeListOf(i32), arrow.FixedSizeListOf(2, i32),
		arrow.DenseUnionOf([]arrow.Field{{Name: "x", Type: i32}}, []arrow.UnionTypeCode{0}),
		arrow.SparseUnionOf([]arrow.Field{{Name: "x", Type: i32}}, []arrow.UnionTypeCode{0}),
		arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, i32), arrow.ListViewOf(i32))
	for _, leaf := range formattest.LeafTypes() {
		types = append(types, arrow.ListOf(leaf))
	}
	var refused, retyped, kept int
	for i, typ := range types {
		for _, inside := range []bool{false, true} {
			f := arrow.Field{Name: "x", Type: typ, Nullable: true}
			name := "x"
			if inside {
				f, name = arrow.Field{Name: "s", Type: arrow.StructOf(f), Nullable: true}, "s.x"
			}
			sc := arrow.NewSchema([]arrow.Field{f}, nil)
			w, err := cfile.Format.Create(t.Context(), store.NewMemory(nil).Sink("t"), sc,
				format.WriteOptions{Dir: true})
			if err != nil {
				if refused++; !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %v", typ, err)
				}
				continue
			}
			if err := w.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			table := formattest.RandomTable(rand.New(rand.NewPCG(uint64(i), 3)),
				formattest.TableOptions{Rows: 40, Fields: []arrow.Field{f}, Micros: true})
			tree, sum := tableOf(t, table.Batch, nil)
			src, _ := sourceOf(t, tree, false)
			got, schema, err := scanned(t, src, scan.Spec{})
			if err != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			switch same := sameFields(schema.Fields(), sc.Fields()); {
			case same != (len(sum.Retyped) == 0), len(sum.Retyped) > 1:
				t.Errorf("%s is read as %s, and the writer reports %v", typ, schema, sum.Retyped)
			case !same && !strings.HasPrefix(sum.Retyped[0], name+" ("+typ.String()+" as "):
				t.Errorf("%s is read as %s, and the writer reports %v", typ, schema, sum.Retyped)
			case same:
				kept++
			default:
				retyped++
				t.Logf("retyped: %s", sum.Retyped[0])
			}
			if len(got[0])+len(table.Cells[0]) > 0 && !reflect.DeepEqual(got[0], table.Cells[0]) {
				t.Errorf("%s: %q, want %q", typ, got, table.Cells)
			}
		}
	}
	t.Logf("%d kept, %d as another type, %d refused", kept, retyped, refused)
	if kept < 60 || retyped == 0 || refused == 0 {
		t.Errorf("expected at least 60 kept, and some retyped and refused")
	}
}

// TestExtensions: a registered extension type is read as it was written, alone and in a struct.
func TestExtensions(t *testing.T) {
	id := extensions.NewUUIDType()
	sc := arrow.NewSchema([]arrow.Field{{Name: "u", Type: id, Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "u", Type: id, Nullable: true}), Nullable: true}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(
		`[{"u":"0f5d3b1c-91d6-4a6b-9c3e-2f8f30d5a1aa","s":{"u":null}},{"u":null,"s":null},
		{"u":null,"s":{"u":"11111111-91d6-4a6b-9c3e-2f8f30d5a1aa"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	tree, sum := tableOf(t, b, nil)
	src, _ := sourceOf(t, tree, false)
	got, schema, err := scanned(t, src, scan.Spec{})
	if err != nil || len(sum.Retyped) > 0 || !sameFields(schema.Fields(), sc.Fields()) {
		t.Errorf("%v, %v, %v", err, sum.Retyped, schema)
	}
	for i, c := range b.Columns() {
		if want := formattest.CellsOf(c); !reflect.DeepEqual(got[i], want) {
			t.Errorf("%q, want %q", got[i], want)
		}
	}
}
