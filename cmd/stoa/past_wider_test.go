package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// widening is a column whose type has become wider in the source.
type widening struct {
	was, now         arrow.DataType
	wasText, nowText string // JSON of the values; some are the same, and some of the new ones need the wider type
	terms            []string
}

// widenings are those that Iceberg allows, alone and in nested types, with partitions that may be of the column.
func widenings() []widening {
	i32, i64 := arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	d9, d30 := &arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 30, Scale: 2}
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	codes := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: i64}
	ints, longs := `[1, 2, null, -7, 2147483647]`, `[1, 1099511627776, null, -7, -4611686018427387904]`
	return []widening{
		{i32, i64, ints, longs, []string{"it", "bucket(3, it)", "truncate(10, it)"}},
		{arrow.PrimitiveTypes.Int16, i64, `[1, 2, null, -7]`, longs, nil},
		{i32, codes, ints, longs, []string{"it"}},
		{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, `[0.5, null, 2.5]`, `[0.5, 0.1, 3e300]`, nil},
		{d9, d30, `["1.25", "-3.00", null, "9999999.99"]`, `["1.25", "123456789012345678.11", null, "-0.01"]`,
			[]string{"it", "bucket(3, it)"}},
		{arrow.ListOf(i32), arrow.ListOf(i64), `[[1], [2, null], null]`, `[[1], [1099511627776], [], null]`, nil},
		{arrow.MapOf(arrow.BinaryTypes.String, i32), arrow.MapOf(arrow.BinaryTypes.String, i64),
			`[[{"key": "k", "value": 1}], null]`, `[[{"key": "k", "value": 1099511627776}], null]`, nil},
		{arrow.StructOf(field("a", i32), field("b", arrow.ListOf(d9))),
			arrow.StructOf(field("a", i64), field("b", arrow.ListOf(d30))),
			`[{"a": 1, "b": ["0.50"]}, null]`, `[{"a": 1099511627776, "b": null}, {"a": 1, "b": ["0.50"]}]`, nil},
	}
}

// putColumn writes an Arrow file of one column.
func putColumn(t *testing.T, name string, typ arrow.DataType, text string) {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	if err := b.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	a := b.NewArray()
	defer a.Release()
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "it", Type: typ, Nullable: true}}, nil),
		[]arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	put(t, name, rec)
}

// TestCatchUpWidens: where a column of the source has got a wider type, that of an Iceberg table gets it, too, in a new
// schema with the same field ids, and the table has the rows of the source; its first snapshot has the rows and types
// that it had. Where Delta has a catalogue, it is refused, with the way out, and nothing changes. --dry-run foretells
// both.
func TestCatchUpWidens(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, w := range widenings() {
		was, now := fmt.Sprintf("%d-was.arrow", i), fmt.Sprintf("%d-now.arrow", i)
		putColumn(t, was, w.was, w.wasText)
		putColumn(t, now, w.now, w.nowText)
		for _, version := range []string{"2", "3"} {
			for k, term := range append([]string{""}, w.terms...) {
				lake := fmt.Sprintf("lake-%d-%s-%d", i, version, k)
				args := []string{"convert", was, "--to", "iceberg", "-o", lake, "-q", "--opt",
					"format-version=" + version}
				if term != "" {
					args = append(args, "--partition-by", term)
				}
				do(t, args...)
				if !foretold(t, now, lake) {
					t.Fatalf("%s: %s was refused", lake, w.now)
				}
				w.check(t, lake, was, now)
			}
		}
		for _, to := range []string{"delta", "iceberg,delta"} {
			lake := fmt.Sprintf("lake-%d-%s", i, to)
			do(t, "convert", was, "--to", to, "-o", lake, "-q")
			before := sizesBelow(t, lake)
			got := said("nowhere", "convert", "--catch-up", now, "-o", lake)
			if !strings.HasSuffix(got, "status: 2") || !strings.Contains(got, "column it") ||
				!strings.Contains(got, "convert -o with another directory") {
				t.Errorf("%s into %s of %s: %s", w.now, to, w.was, got)
			}
			if after := sizesBelow(t, lake); !slices.Equal(before, after) {
				t.Errorf("%s: got files %q, want %q", lake, after, before)
			}
		}
	}
}

// check checks a table that has caught up.
func (w widening) check(t *testing.T, lake, was, now string) {
	t.Helper()
	do(t, "verify", lake, "-q")
	if a, b := sortedRows(t, lake), sortedRows(t, now); !slices.Equal(a, b) {
		t.Errorf("%s: got %q, want %q", lake, a, b)
	}
	text, err := os.ReadFile(filepath.Join(lake, "metadata", "v2.metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Current   int `json:"current-schema-id"`
		Schemas   []json.RawMessage
		Snapshots []struct {
			ID     int64 `json:"snapshot-id"`
			Schema int   `json:"schema-id"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Schemas) != 2 || doc.Current != 1 || len(doc.Snapshots) != 2 || doc.Snapshots[0].Schema != 0 ||
		doc.Snapshots[1].Schema != 1 {
		t.Fatalf("%s: %s", lake, text)
	}
	if a, b := fieldIDs(t, doc.Schemas[0]), fieldIDs(t, doc.Schemas[1]); !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%s: the field ids are %v, and were %v", lake, b, a)
	}
	first := []string{lake, "--at", fmt.Sprint(doc.Snapshots[0].ID)}
	if a, b := sortedRows(t, first...), sortedRows(t, was); !slices.Equal(a, b) {
		t.Errorf("%s: the first snapshot has %q, want %q", lake, a, b)
	}
	old, new := do(t, append([]string{"schema"}, first...)...), do(t, "schema", lake)
	if old == new {
		t.Errorf("%s: the first snapshot has the type of the second: %s", lake, old)
	}
	if got := do(t, "convert", "--catch-up", now, "-o", lake, "-f", "json"); !unchanged(t, got) {
		t.Errorf("%s: the second run changes something: %s", lake, got)
	}
}

// fieldIDs returns the ids in a schema, in order.
func fieldIDs(t *testing.T, schema []byte) (ids []float64) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(schema, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, k := range []string{"id", "element-id", "key-id", "value-id"} {
				if n, ok := v[k].(float64); ok {
					ids = append(ids, n)
				}
			}
			for _, k := range []string{"fields", "type", "element", "key", "value"} {
				walk(v[k])
			}
		}
	}
	walk(doc)
	return ids
}
