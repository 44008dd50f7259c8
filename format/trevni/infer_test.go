package trevni_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/nest"
	"stoa/internal/scan"
	judge "stoa/interop/trevni"
	"stoa/store"
)

// entriesOf returns the levels of every leaf of the fields of batches, and the numbers of values. The values are left
// out, because they may have the stored types.
func entriesOf(t testing.TB, batches ...arrow.RecordBatch) (out []string) {
	t.Helper()
	for _, b := range batches {
		var leaves []nest.Shredded
		for i, f := range b.Schema().Fields() {
			// shown as nullable, as Arrow knows no other; of no levels where it is required
			if f.Type.ID() == arrow.NULL {
				leaves = append(leaves, nest.Shredded{Entries: b.Column(i).Len()})
				continue
			}
			ls, err := nest.Shred(f, b.Column(i))
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, ls...)
		}
		if out == nil {
			out = make([]string, len(leaves))
		}
		for i, l := range leaves {
			out[i] += fmt.Sprint(l.Entries, l.Rep, l.Def, l.Count())
		}
	}
	return out
}

// TestInferred: for any schema and rows, a file without a schema is read without an error, under a schema that has the
// levels of the file.
func TestInferred(t *testing.T) {
	reported := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		var fields []arrow.Field
		for i := range 1 + r.IntN(3) {
			fields = append(fields, judge.RandomField(r, fmt.Sprintf("c%d", i), 1+r.IntN(5), false))
		}
		sc := arrow.NewSchema(fields, nil)
		b := judge.RandomBatch(r, sc, 1+r.IntN(30))
		m := write(t, trevni.Format, sc, map[string]string{"arrow-schema": "false", "block-size": "300"}, b)
		codes, all := findings(t, m.Bytes("t"))
		if anyError(all) {
			t.Errorf("seed %d, %s: %+v", seed, sc, all)
		}
		reported += len(codes)
		src := openScan(t, m, "t", format.OpenOptions{})
		for got, err := range scan.Run(t.Context(), src, scan.Spec{}, nil) {
			if err != nil {
				t.Errorf("seed %d: %v\n%s\nas\n%s", seed, err, sc, src.Reader.Schema())
				break
			}
			if !slices.Equal(entriesOf(t, got), entriesOf(t, b)) {
				t.Errorf("seed %d: other entries\n%s\nas\n%s", seed, sc, src.Reader.Schema())
			}
		}
	}
	if reported == 0 || reported == 200 {
		t.Errorf("of 200 files %d are reported as ambiguous", reported)
	}
}

// TestRefutedGuess: rows that contradict the simplest schema.
func TestRefutedGuess(t *testing.T) {
	item := arrow.StructOf(arrow.Field{Name: "f0", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	sc := arrow.NewSchema([]arrow.Field{{Name: "c1", Type: arrow.ListOfNonNullable(item)}}, nil)
	bld := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for _, row := range []string{`{"c1":[{"f0":1},{}]}`, `{"c1":[]}`} {
		if err := json.Unmarshal([]byte(row), bld); err != nil {
			t.Fatal(err)
		}
	}
	m := write(t, trevni.Format, sc, map[string]string{"arrow-schema": "false"}, bld.NewRecordBatch())
	src := openScan(t, m, "t", format.OpenOptions{})
	if !src.Reader.Schema().Equal(sc) {
		t.Errorf("%s, want %s", src.Reader.Schema(), sc)
	}
	if codes, _ := findings(t, m.Bytes("t")); len(codes) > 0 {
		t.Errorf("%v: the levels leave no choice", codes)
	}
}

// TestSchemaOption: a given schema is used if the columns allow it, and refused otherwise.
func TestSchemaOption(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a",
		Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Date32}), Nullable: true}}, nil)
	bld := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	if err := json.Unmarshal([]byte(`{"a":{"b":"2020-01-02"}}`), bld); err != nil {
		t.Fatal(err)
	}
	m := write(t, trevni.Format, sc, map[string]string{"arrow-schema": "false"}, bld.NewRecordBatch())
	field := func(name, leaf string, nullable bool) string {
		return fmt.Sprintf(`{"fields":[{"name":%q,"type":"struct","nullable":%t,"children":[{"name":"b","type":%q}]}]}`,
			name, nullable, leaf)
	}
	for schema, ok := range map[string]bool{field("a", "date32", true): true, field("a", "int32", true): true,
		field("a", "date32", false): false,
		field("x", "date32", true):  false, field("a", "utf8", true): false, "{}": false} {
		tree := store.NewMemory(map[string][]byte{"t": m.Bytes("t"), "s.json": []byte(schema)})
		r, err := trevni.Format.Open(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"schema": "s.json"}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", schema, err)
		}
		if ok && err == nil && schema == field("a", "date32", true) && !r.Schema().Equal(sc) {
			t.Errorf("%s", r.Schema())
		}
	}
}
