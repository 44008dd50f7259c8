package parquet_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/format/parquet/internal/meta"
	"stoa/pred"
	"stoa/store"
)

// emptyStructs returns a table with structs without fields, at the top level and in all nested types.
func emptyStructs() formattest.Table {
	empty := arrow.StructOf()
	return formattest.RandomTable(rand.New(rand.NewPCG(5, 5)), formattest.TableOptions{Rows: 900, Fields: []arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "e", Type: empty, Nullable: true},
		{Name: "must", Type: empty},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "in", Type: empty, Nullable: true},
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: empty, Nullable: true}),
			Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, empty), Nullable: true},
	}})
}

// create writes a table as Parquet to a name in a tree.
func create(t *testing.T, tree *store.Memory, name string, table formattest.Table, opts map[string]string) (
	format.Summary, error) {
	t.Helper()
	w, err := stoa.Create(t.Context(), name, table.Schema, stoa.CreateOptions{To: "parquet", Sink: tree.Sink(name),
		Opts: opts})
	if err != nil {
		return format.Summary{}, err
	}
	if err := w.Write(t.Context(), table.Batch); err != nil {
		return format.Summary{}, err
	}
	return w.Close(t.Context())
}

// TestStructsWithoutFields: structs without fields are read back unchanged, even after pages are copied or cut, with or
// without the Arrow schema; filters see their nulls, the summary has a note, and other readers see the documented
// field.
func TestStructsWithoutFields(t *testing.T) {
	tree, table := store.NewMemory(nil), emptyStructs()
	sum, err := create(t, tree, "t", table, map[string]string{"page-rows": "50"})
	if err != nil {
		t.Fatal(err)
	}
	if !sum.Checked || len(sum.Retyped) > 0 || len(sum.Notes) != 1 ||
		!strings.Contains(sum.Notes[0], "in e, must, s, l, m other readers see a field stoa_no_fields") {
		t.Errorf("got summary %+v, want one note", sum)
	}
	open := func(name string, opts map[string]string) *stoa.Table {
		src, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Tree: tree, Opts: opts})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { src.Close() })
		return src
	}
	for _, opts := range []map[string]string{nil, {"arrow-schema": "ignore"}} {
		if got := open("t", opts).Schema(); !reflect.DeepEqual(typesOf(got), typesOf(table.Schema)) {
			t.Errorf("%v: got schema %v, want %v", opts, got, table.Schema)
		}
	}
	sameCells(t, 0, tree, table)
	nulls := int64(0)
	for _, c := range table.Cells[1] {
		if c == nil {
			nulls++
		}
	}
	n, err := open("t", nil).Count(t.Context(), stoa.ScanSpec{Filter: pred.Test("e", pred.OpIsNull)})
	if err != nil || n != nulls || n == 0 {
		t.Errorf("got %d nulls, %v, want %d", n, err, nulls)
	}
	if _, err := open("t", nil).ScanSchema(stoa.ScanSpec{Columns: []string{"e.stoa_no_fields"}}); err == nil {
		t.Error("selecting the field: got no error, want one")
	}
	s, why, err := stoa.Copy(t.Context(), open("t", nil), stoa.ScanSpec{}, "u", stoa.CreateOptions{To: "parquet",
		Sink: tree.Sink("u"), Opts: map[string]string{"row-group-rows": "77"}})
	if why != "" || err != nil || s.PagesCut == 0 {
		t.Fatal(why, err, s.PagesCut)
	}
	tree = store.NewMemory(map[string][]byte{"t": tree.Bytes("u")})
	sameCells(t, 1, tree, table)
	checkOthers(t, tree.Bytes("t"))
}

func typesOf(sc *arrow.Schema) (out []string) {
	for _, f := range sc.Fields() {
		out = append(out, fmt.Sprint(f.Name, f.Type, f.Nullable))
	}
	return out
}

// checkOthers checks that the Arrow schema in the file, which other readers use, agrees with the file's columns.
func checkOthers(t *testing.T, b []byte) {
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	pr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := pr.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if got := sc.Field(1).Type.String(); got != "struct<stoa_no_fields: null nullable>" {
		t.Errorf("other readers: got type %s", got)
	}
	for _, p := range r.MetaData().KeyValueMetadata() {
		if p.Key != meta.StoredSchema || p.Value == nil {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(*p.Value)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(raw, []byte("stoa_no_fields")); n != 5 {
			t.Errorf("got %d fields in the Arrow schema, want 5", n)
		}
	}
}

// TestStructsWithoutFieldsAreRefused: structs without fields are refused by option, and structs with the field that
// stands for none are always refused.
func TestStructsWithoutFieldsAreRefused(t *testing.T) {
	table := emptyStructs()
	_, err := create(t, store.NewMemory(nil), "t", table, map[string]string{"empty-structs": "refuse"})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), `column "e" of type struct<>`) {
		t.Error(err)
	}
	own := arrow.StructOf(arrow.Field{Name: "stoa_no_fields", Type: arrow.Null, Nullable: true})
	for name, typ := range map[string]arrow.DataType{"x": own, "y": arrow.ListOf(own)} {
		table := formattest.RandomTable(rand.New(rand.NewPCG(1, 1)), formattest.TableOptions{Rows: 3,
			Fields: []arrow.Field{{Name: name, Type: typ}}})
		_, err := create(t, store.NewMemory(nil), "t", table, nil)
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), `column "`+name+`"`) {
			t.Error(name, err)
		}
	}
	if parquet.EmptyStructsRefuse != "refuse" || parquet.EmptyStructsKeep != "keep" {
		t.Error("got wrong values of the option")
	}
}
