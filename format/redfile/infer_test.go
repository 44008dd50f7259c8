package redfile_test

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
	"stoa/format/redfile"
	"stoa/internal/nest"
	"stoa/region"
	"stoa/store"
)

// withoutSchema writes a file of generation A without an Arrow schema.
func withoutSchema(t testing.TB, b arrow.RecordBatch, opts ...string) *store.Memory {
	t.Helper()
	o := map[string]string{"generation": "A", "arrow-schema": "false"}
	for i := 0; i < len(opts); i += 2 {
		o[opts[i]] = opts[i+1]
	}
	return store.NewMemory(map[string][]byte{"f.red": writeTable(t, o, b)})
}

// entriesOf returns the levels of every leaf of a field, and the numbers of values.
func entriesOf(t testing.TB, f arrow.Field, a arrow.Array) (out []string) {
	t.Helper()
	leaves, err := nest.Shred(f, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leaves {
		out = append(out, fmt.Sprint(l.Entries, l.Rep, l.Def, l.Count()))
	}
	return out
}

// TestInferred: for any schema and rows, a file that states only paths and maximum levels is read without an error,
// under a schema that has the levels of the file.
func TestInferred(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 17))
		var fields []arrow.Field
		for i := range 1 + r.IntN(3) {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: randomType(r, 4),
				Nullable: r.IntN(2) == 0})
		}
		sc := arrow.NewSchema(fields, nil)
		bld := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for range 1 + r.IntN(30) {
			for i, f := range fields {
				appendRandom(r, f, bld.Field(i))
			}
		}
		b := bld.NewRecordBatch()
		mem := withoutSchema(t, b, "page-size", "60")
		for f := range redfile.Format.Verify(t.Context(), format.Target{Tree: mem, Name: "f.red"},
			format.OpenOptions{}) {
			if f.Severity > region.Note {
				t.Errorf("seed %d, %s: %+v", seed, sc, f)
			}
		}
		rd, err := redfile.Format.Open(t.Context(), format.Target{Tree: mem, Name: "f.red"}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range arrays(t, rd, mem)[0] {
			if got, want := entriesOf(t, rd.Schema().Field(i), a),
				entriesOf(t, fields[i], b.Column(i)); !slices.Equal(got, want) {
				t.Errorf("seed %d: %s\nas\n%s\n%v\nwant\n%v", seed, fields[i], rd.Schema().Field(i), got, want)
			}
		}
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
	b := bld.NewRecordBatch()
	field := func(name, leaf string, nullable bool) []byte {
		return fmt.Appendf(nil, `{"fields":[{"name":%q,"type":"struct","nullable":%t,"children":[{"name":"b",`+
			`"type":%q}]}]}`, name, nullable, leaf)
	}
	whole := withoutSchema(t, b, "arrow-schema", "true").Bytes("f.red")
	for _, c := range []struct {
		schema []byte
		ok     bool
	}{{field("a", "date32", true), true}, {whole, true}, {field("a", "date32", false), false},
		{field("x", "date32", true), false}, {field("a", "utf8", true), false}} {
		tree := store.NewMemory(map[string][]byte{"f.red": withoutSchema(t, b).Bytes("f.red"), "s": c.schema})
		r, err := redfile.Format.Open(t.Context(), format.Target{Tree: tree, Name: "f.red"},
			format.OpenOptions{Opts: map[string]string{"schema": "s"}})
		if (err == nil) != c.ok {
			t.Errorf("%.80s: %v", c.schema, err)
		}
		if c.ok && err == nil && !r.Schema().Equal(sc) {
			t.Errorf("%.80s: %s", c.schema, r.Schema())
		}
	}
}
