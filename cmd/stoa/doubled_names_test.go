package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
)

// TestDoubledNames: names that are there twice, at the top or in a struct, would be one key twice in an object:
// whatever form has objects refuses them by name.
func TestDoubledNames(t *testing.T) {
	a := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	for what, fields := range map[string][]arrow.Field{
		"top":    {a, a},
		"struct": {{Name: "s", Type: arrow.StructOf(a, arrow.Field{Name: "b", Type: arrow.StructOf(a, a)})}},
	} {
		sc := arrow.NewSchema(fields, nil)
		place := filepath.Join(t.TempDir(), "x.arrow")
		w, err := stoa.Create(t.Context(), place, sc, stoa.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for _, f := range b.Fields() {
			f.AppendEmptyValue()
		}
		if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"cat -f json", "cat -f jsonl", "head -f json", "get --row 0 -f json",
			"cat -o OUT.json"} {
			st, said := runOver(t, verb, place)
			if st != cli.StatusCannot || !strings.Contains(said, "a: two columns") {
				t.Errorf("%s, %s: status %d: %.200s", what, verb, st, said)
			}
		}
		if st, said := runOver(t, "cat -f table", place); st != cli.StatusFine {
			t.Errorf("%s: as a table: %d, %.200s", what, st, said)
		}
	}
}
