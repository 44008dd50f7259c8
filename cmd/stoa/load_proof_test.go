package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/carbon"
)

// TestWrongLoadsDoNotCount: a segment that does not hold what went in leaves the table as it was.
func TestWrongLoadsDoNotCount(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "t")
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	schema := filepath.Join(t.TempDir(), "s.txt")
	if err := os.WriteFile(schema, []byte("a BIGINT, b STRING"), 0o666); err != nil {
		t.Fatal(err)
	}
	if st, out := runText(t, &bytes.Buffer{}, "create", dir, "--schema", schema); st != 0 {
		t.Fatal(out)
	}
	rows := func(text string) arrow.RecordBatch {
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := func(b arrow.RecordBatch) batches {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(b, nil) }
	}
	load := func(in, written arrow.RecordBatch) error {
		var o carbon.LoadOptions
		passing, err := a.provenLoad(ctx, dir, sc, of(in), &o)
		if err != nil {
			t.Fatal(err)
		}
		for range passing { // what went in
		}
		l, err := carbon.BeginLoad(ctx, dir, sc, o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fill(ctx, l, of(written))
		return err
	}
	count := func() string {
		_, out := runText(t, &bytes.Buffer{}, "count", dir)
		return strings.TrimSpace(out)
	}
	good := rows(`[{"a":1,"b":"x"},{"a":2,"b":null}]`)
	if err := load(good, good); err != nil || count() != "2" {
		t.Fatalf("%v, %s rows", err, count())
	}
	for _, bad := range []string{`[{"a":1,"b":"x"}]`, `[{"a":1,"b":null},{"a":2,"b":"x"}]`, `[{"a":1,"b":"x"},{"a":3,"b":null}]`} {
		if err := load(good, rows(bad)); !stoa.IsUnproven(err) {
			t.Errorf("%s: %v", bad, err)
		}
		if count() != "2" {
			t.Errorf("%s: %s rows", bad, count())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "Fact/Part0/Segment_*/*")); len(left) == 0 {
		t.Error("nothing is there")
	} else {
		for _, name := range left {
			if !strings.Contains(name, "Segment_0") {
				t.Errorf("%s is left", name)
			}
		}
	}
}
