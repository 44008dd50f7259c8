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

// TestDuplicateNames: duplicate column or field names would be duplicate keys of a JSON object, so output forms with
// objects refuse them by name.
func TestDuplicateNames(t *testing.T) {
	a := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	for what, fields := range map[string][]arrow.Field{
		"top":    {a, a},
		"struct": {{Name: "s", Type: arrow.StructOf(a, arrow.Field{Name: "b", Type: arrow.StructOf(a, a)})}},
	} {
		sc := arrow.NewSchema(fields, nil)
		file := filepath.Join(t.TempDir(), "x.arrow")
		w, err := stoa.Create(t.Context(), file, sc, stoa.CreateOptions{})
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
			st, stderr := runOver(t, verb, file)
			if st != cli.StatusCannot || !strings.Contains(stderr, "a: two columns") {
				t.Errorf("%s, %s: got status %d, want %d and the column's name: %.200s", what, verb, st,
					cli.StatusCannot, stderr)
			}
		}
		if st, stderr := runOver(t, "cat -f table", file); st != cli.StatusFine {
			t.Errorf("%s: as a table: got status %d, want 0: %.200s", what, st, stderr)
		}
	}
}
