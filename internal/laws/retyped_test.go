package laws_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

// TestRetyped: an output that does not keep the Arrow schema is checked nevertheless, and the columns that are read
// back with another type are reported.
func TestRetyped(t *testing.T) {
	item := arrow.StructOf(arrow.Field{Name: "f", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "d", Type: arrow.FixedWidthTypes.Date32}, {Name: "l", Type: arrow.ListOfNonNullable(item)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	if err := json.Unmarshal([]byte(`{"i":1,"d":"2020-01-01","l":[{"f":1},{}]}`), b); err != nil {
		t.Fatal(err)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	for _, c := range []struct {
		uri  string
		opts map[string]string
		want []string
	}{
		{"t.trv", map[string]string{"arrow-schema": "false"}, []string{"d"}},
		{"t.trv", nil, nil},
		{"t.red", map[string]string{"arrow-schema": "false"}, []string{"d"}},
		{"t.red", map[string]string{"arrow-schema": "false", "generation": "A"}, []string{"d"}},
		{"t.red", nil, nil},
	} {
		w, err := stoa.Create(t.Context(), c.uri, sc,
			stoa.CreateOptions{Sink: store.NewMemory(nil).Sink(c.uri), Opts: c.opts})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if s, err := w.Close(t.Context()); err != nil || !s.Checked || len(s.Unchecked) > 0 ||
			!slices.Equal(s.Retyped, c.want) {
			t.Errorf("%s %v: %v, %+v", c.uri, c.opts, err, s)
		}
	}
}
