package lake

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/store"
)

// TestPausedFiles: a writer that resumes has the files of the one that paused, with the same partition values, of every
// type that a term can have, with null, text that is no UTF-8, and the same bounds.
func TestPausedFiles(t *testing.T) {
	fields := []arrow.Field{{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "l", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "o", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true},
		{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true}}
	sc := arrow.NewSchema(fields, nil)
	stored, _, err := Rules{Catalogue: "test", Times: true, Nanos: true, Fixed: true, UUIDs: true}.Storage(sc)
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[
		{"b":true,"i":-1,"l":9007199254740993,"s":"","o":"","d":"-1.25","t":"1969-12-31T23:59:59Z"},
		{"b":false,"i":2147483647,"l":-1,"s":"a/b=c","o":"AP8=","d":"9999999.99","t":"2020-01-01T00:00:00Z"},
		{"b":null,"i":null,"l":null,"s":null,"o":null,"d":null,"t":null}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"b", "i", "l", "s", "o", "d", "day(t)", "hour(t)", "bucket(4, s)", "truncate(1, o)",
		"truncate(10, l)", "void(i)"} {
		terms, err := ParseSpec([]string{spec})
		if err == nil {
			terms, err = Bind(terms, stored)
		}
		if err != nil {
			t.Fatal(spec, err)
		}
		var want, got []File
		keep := func(to *[]File) Commit {
			return func(_ context.Context, _ store.Sink, files []File) ([]string, int64, error) {
				*to = files
				return nil, 0, nil
			}
		}
		o := WriterOptions{Terms: terms, Dir: "data", Write: format.WriteOptions{Rows: -1}, Commit: keep(&want)}
		first := NewWriter(store.NewMemory(nil).Sink("t"), sc, stored, o)
		o.Commit = keep(&got)
		second := NewWriter(store.NewMemory(nil).Sink("t"), sc, stored, o)
		for i := range rows.NumRows() { // one state for each row
			part := rows.NewSlice(i, i+1)
			if err := first.Write(t.Context(), part); err != nil {
				t.Fatal(spec, err)
			}
			state, err := first.Pause(t.Context())
			if err != nil {
				t.Fatal(spec, err)
			}
			if err := second.Resume(state); err != nil {
				t.Fatal(spec, err)
			}
		}
		for _, w := range []*Writer{first, second} {
			if s, err := w.Close(t.Context()); err != nil || s.Rows != rows.NumRows() {
				t.Fatal(spec, s.Rows, err)
			}
		}
		if len(want) != 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", spec, got, want)
		}
	}
}
