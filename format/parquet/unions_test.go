package parquet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa"
	"stoa/fault"
	"stoa/format/formattest"
	"stoa/store"
)

// unionOf returns a union of these fields, with the codes 3, 5, …: a code need not be the number of a member.
func unionOf(fields ...arrow.Field) arrow.DataType {
	codes := make([]arrow.UnionTypeCode, len(fields))
	for i := range codes {
		codes[i] = arrow.UnionTypeCode(3 + 2*i)
	}
	return arrow.DenseUnionOf(fields, codes)
}

// unionFields returns columns with unions, at the top level and in all nested types.
func unionFields() []arrow.Field {
	u := unionOf(arrow.Field{Name: "null", Type: arrow.Null, Nullable: true},
		arrow.Field{Name: "int", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "text", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "pair", Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.BinaryTypes.String})},
		arrow.Field{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64)})
	same := unionOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32},
		arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}, arrow.Field{Type: arrow.FixedWidthTypes.Boolean})
	return []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "u", Type: u},
		{Name: "same", Type: same},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "in", Type: u},
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: u}), Nullable: true},
		{Name: "m", Type: arrow.MapOfFields(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String},
			arrow.Field{Name: "value", Type: u}), Nullable: true},
	}
}

// draw returns a random value of a field in the form of Arrow's JSON, where a union is a pair of code and value, and as
// seen by a reader without unions, where a union is a struct of all members. There a member keeps its name unless two
// are equal.
func draw(r *rand.Rand, f arrow.Field) (own, others any) {
	if f.Nullable && r.IntN(4) == 0 {
		return nil, nil
	}
	switch t := f.Type.(type) {
	case *arrow.DenseUnionType:
		k := r.IntN(len(t.Fields()))
		members := map[string]any{}
		for i, c := range t.Fields() {
			name := c.Name
			if t.Fields()[0].Name == t.Fields()[1].Name {
				name = fmt.Sprintf("member%d", i)
			}
			if members[name] = nil; i == k {
				c.Nullable = false
				own, members[name] = draw(r, c)
			}
		}
		return []any{t.TypeCodes()[k], own}, members
	case *arrow.StructType:
		a, b := map[string]any{}, map[string]any{}
		for _, c := range t.Fields() {
			a[c.Name], b[c.Name] = draw(r, c)
		}
		return a, b
	case *arrow.MapType:
		var a, b []any
		for i := range r.IntN(4) {
			x, y := draw(r, t.ItemField())
			a = append(a, map[string]any{"key": fmt.Sprint(i), "value": x})
			b = append(b, map[string]any{"key": fmt.Sprint(i), "value": y})
		}
		return append([]any{}, a...), append([]any{}, b...)
	case *arrow.ListType:
		a, b := []any{}, []any{}
		for range r.IntN(4) {
			x, y := draw(r, t.ElemField())
			a, b = append(a, x), append(b, y)
		}
		return a, b
	case *arrow.NullType:
		return nil, nil
	case *arrow.StringType:
		own = fmt.Sprint("t", r.IntN(20))
	case *arrow.BooleanType:
		own = r.IntN(2) == 0
	default:
		own = r.IntN(1000)
	}
	return own, own
}

// unionTable returns a table with unions, and the rows that other readers see, one line of JSON each.
func unionTable(t *testing.T, seed uint64, rows int) (table formattest.Table, others []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	sc := arrow.NewSchema(unionFields(), nil)
	text := func(row map[string]any) string {
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var own []string
	for range rows {
		a, b := map[string]any{}, map[string]any{}
		for _, f := range sc.Fields() {
			a[f.Name], b[f.Name] = draw(r, f)
		}
		own, others = append(own, text(a)), append(others, text(b))
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+strings.Join(own, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return formattest.Table{Schema: sc, Batch: rec}, others
}

// jsonRows returns the rows of a batch, one line of JSON each, with sorted keys.
func jsonRows(t *testing.T, b arrow.RecordBatch) (out []string) {
	t.Helper()
	raw, err := b.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var rows []any
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		line, _ := json.Marshal(r)
		out = append(out, string(line))
	}
	return out
}

// TestUnions: unions are read back with their members and codes, also from a copy whose pages are cut; without the
// Arrow schema, and by arrow-go, they are structs with a field for each member.
func TestUnions(t *testing.T) {
	for seed := range uint64(6) {
		tree := store.NewMemory(nil)
		table, others := unionTable(t, seed, 700)
		sliced := formattest.Table{Schema: table.Schema, Batch: table.Batch.NewSlice(13, 613)} // with an offset
		own, others := jsonRows(t, sliced.Batch), others[13:613]
		sum, err := create(t, tree, "t", sliced, map[string]string{"page-rows": "50"})
		if err != nil {
			t.Fatal(err)
		}
		if !sum.Checked || len(sum.Retyped) > 0 || len(sum.Notes) != 1 ||
			!strings.Contains(sum.Notes[0], "in u, same, s, l, m other readers see a struct") {
			t.Errorf("got summary %+v, want one note", sum)
		}
		_, why, err := stoa.Copy(t.Context(), openUnions(t, tree, "t", nil), stoa.ScanSpec{}, "copy",
			stoa.CreateOptions{To: "parquet", Sink: tree.Sink("copy"), Opts: map[string]string{"row-group-rows": "77"}})
		if why != "" || err != nil {
			t.Fatal(why, err)
		}
		for _, name := range []string{"t", "copy"} {
			back := openUnions(t, tree, name, nil)
			for i, f := range back.Schema().Fields() {
				if !arrow.TypeEqual(f.Type, table.Schema.Field(i).Type) || f.Metadata.Len() > 0 {
					t.Errorf("%s: got %v, want %v", name, f, table.Schema.Field(i))
				}
			}
			sameRows(t, name, scanRows(t, back), own)
			plain := openUnions(t, tree, name, map[string]string{"arrow-schema": "ignore"})
			sameRows(t, name+" without the Arrow schema", scanRows(t, plain), others)
			sameRows(t, name+" by arrow-go", arrowGoRows(t, tree.Bytes(name)), others)
		}
	}
}

func openUnions(t *testing.T, tree *store.Memory, name string, opts map[string]string) *stoa.Table {
	t.Helper()
	src, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Tree: tree, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

func scanRows(t *testing.T, src *stoa.Table) (out []string) {
	t.Helper()
	for b, err := range src.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, jsonRows(t, b)...)
	}
	return out
}

func arrowGoRows(t *testing.T, b []byte) (out []string) {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	pr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: 1000}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := pr.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for tr := array.NewTableReader(table, 1000); tr.Next(); {
		out = append(out, jsonRows(t, tr.RecordBatch())...)
	}
	return out
}

func sameRows(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: row %d: got %s, want %s", what, i, got[i], want[i])
			return
		}
	}
}

// TestUnionEdges: a null of any member becomes a null of the member that represents nulls; a sparse union is read back
// as a dense one; a union in a union is refused by name; a mark that does not fit its struct is ignored.
func TestUnionEdges(t *testing.T) {
	text := arrow.Field{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}
	number := arrow.Field{Name: "number", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	rows := `[{"u":[3,1]},{"u":[5,null]},{"u":[3,null]},{"u":[5,"x"]}]`
	for _, typ := range []arrow.DataType{unionOf(number, text),
		arrow.SparseUnionOf([]arrow.Field{number, text}, []arrow.UnionTypeCode{3, 5})} {
		sc := arrow.NewSchema([]arrow.Field{{Name: "u", Type: typ, Nullable: true}}, nil)
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		tree := store.NewMemory(nil)
		if _, err := create(t, tree, "t", formattest.Table{Schema: sc, Batch: rec}, nil); err != nil {
			t.Fatal(err)
		}
		sameRows(t, typ.String(), scanRows(t, openUnions(t, tree, "t", nil)),
			[]string{`{"u":[3,1]}`, `{"u":null}`, `{"u":null}`, `{"u":[5,"x"]}`})
	}
	inner := arrow.Field{Name: "inner", Type: unionOf(number)}
	pair := arrow.Field{Name: "pair", Type: arrow.StructOf(inner)}
	for _, member := range []arrow.Field{inner, pair} {
		sc := arrow.NewSchema([]arrow.Field{{Name: "deep", Type: arrow.ListOf(unionOf(text, member))}}, nil)
		_, err := create(t, store.NewMemory(nil), "t", formattest.Table{Schema: sc}, nil)
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), `column "deep"`) {
			t.Error(err)
		}
	}
	mark := arrow.NewMetadata([]string{"stoa:union"}, []string{`{"names":["a"],"nullable":[true],"codes":[0]}`})
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.StructOf(number, text), Metadata: mark}}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
		strings.NewReader(`[{"s":{"number":1,"text":"x"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(nil)
	if _, err := create(t, tree, "t", formattest.Table{Schema: sc, Batch: rec}, nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "a mark of one member", scanRows(t, openUnions(t, tree, "t", nil)),
		[]string{`{"s":{"number":1,"text":"x"}}`})
}
