package parquet_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/store"
)

// TestEmptyStringsAreValues: batches of empty strings only, with an empty data buffer as scans return them, count in
// the bounds that are written. (Found by the soak test: readers overlooked them.)
func TestEmptyStringsAreValues(t *testing.T) {
	ctx := context.Background()
	tables := [][]string{{"", "b"}, {"b", ""}, {"", ""}, {"", "NULL", "b"}, {"NULL", "", "b", "NULL"},
		{"b", "NULL", "", "c"}, {"NULL", "NULL"}}
	for _, opts := range []map[string]string{{}, {"dictionary": "false", "page-size": "1"}, {"page-version": "2"},
		{"page-version": "2", "dictionary": "false", "row-group-rows": "2"}} {
		for _, nested := range []bool{false, true} {
			for _, rows := range tables {
				field := arrow.Field{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true}
				if nested {
					field.Type = arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true})
				}
				sc := arrow.NewSchema([]arrow.Field{field}, nil)
				mem := store.NewMemory(nil)
				w, err := parquet.Format.Create(ctx, mem.Sink("t"), sc, format.WriteOptions{Rows: -1, Opts: opts})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rows {
					b := array.NewRecordBatch(sc, []arrow.Array{oneString(r, nested)}, 1)
					if err := w.Write(ctx, b); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.Close(ctx); err != nil {
					t.Fatal(err)
				}
				tg := format.Target{Tree: mem, Name: "t"}
				for _, f := range slices.Collect(parquet.Format.Verify(ctx, tg,
					format.OpenOptions{Limits: format.Limits{}.WithDefaults()})) {
					t.Errorf("%v, nested %v, %q: %s %s", opts, nested, rows, f.Code, f.Message)
				}
			}
		}
	}
}

// oneString returns an array of one string, "NULL" for null; an empty string has a buffer without bytes.
func oneString(s string, nested bool) arrow.Array {
	end, valid, nulls := int32(len(s)), byte(1), 0
	if s == "NULL" {
		end, valid, nulls = 0, 0, 1
	}
	var text []byte
	if end > 0 {
		text = []byte(s)
	}
	bufs := []*memory.Buffer{memory.NewBufferBytes([]byte{valid}),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, end})), memory.NewBufferBytes(text)}
	a := array.MakeFromData(array.NewData(arrow.BinaryTypes.String, 1, bufs, nil, nulls, 0))
	if !nested {
		return a
	}
	st, err := array.NewStructArray([]arrow.Array{a}, []string{"s"})
	if err != nil {
		panic(err)
	}
	return st
}

// TestBrotliInPagesOfVersion2: pages of nulls, which have no bytes to compress, are read back. (Brotli compresses an
// empty input to one byte, which arrow-go cannot decompress.)
func TestBrotliInPagesOfVersion2(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	tree := store.NewMemory(nil)
	w, err := parquet.Format.Create(t.Context(), tree.Sink("t"), sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"compression": "brotli", "page-version": "2",
			"page-size": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"NULL", "NULL", "a", "", "NULL", strings.Repeat("abc", 1000)}
	for _, s := range texts {
		if err := w.Write(t.Context(), array.NewRecordBatch(sc, []arrow.Array{oneString(s, false)}, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var got []string
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			if c := b.Column(0).(*array.String); c.IsNull(i) {
				got = append(got, "NULL")
			} else {
				got = append(got, strings.Clone(c.Value(i)))
			}
		}
	}
	if !slices.Equal(got, texts) {
		t.Errorf("%q", got)
	}
}

// TestNoRowsOfArrowCpp: for a table without rows Arrow C++ writes dictionaries without data pages. Verify has no
// findings, and every scan succeeds.
func TestNoRowsOfArrowCpp(t *testing.T) {
	b, err := os.ReadFile("testdata/empty.parquet")
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"t": b})
	for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		for f := range parquet.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Depth: depth}) {
			t.Errorf("%s %s", f.Code, f.Message)
		}
	}
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for _, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Error(err)
		}
	}
}
