package stoa_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// TestKeyIsTheSortedColumn looks up keys in tables whose sorted column is not the first one. The other column has the
// same values in the opposite order, so that a look-up in it finds another row.
func TestKeyIsTheSortedColumn(t *testing.T) {
	const rows = 1000
	type pair struct {
		A int64 `arrow:"a"`
		K int64 `arrow:"k"`
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range int64(rows) {
		b.Field(0).(*array.Int64Builder).Append(rows - 1 - i)
		b.Field(1).(*array.Int64Builder).Append(i)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	for to, opts := range map[string]map[string]string{"parquet": {"sorting-columns": "k"},
		"cfile": {"value-index.k": "true"}, "trevni": {"first-values": "k"}} {
		name := filepath.Join(t.TempDir(), "table")
		w, err := stoa.Create(t.Context(), name, sc, stoa.CreateOptions{To: to, Opts: opts})
		if err != nil {
			t.Fatal(to, err)
		}
		if err := w.Write(t.Context(), batch); err != nil {
			t.Fatal(to, err)
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(to, err)
		}
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(to, err)
		}
		if got := table.Keys(); !slices.Equal(got, []string{"k"}) {
			t.Errorf("%s: the key is %v, want k", to, got)
		}
		for key := int64(0); key < rows; key += 37 {
			row, err := stoa.Get[pair](t.Context(), table, key)
			if want := (pair{rows - 1 - key, key}); err != nil || row != want {
				t.Errorf("%s: got %v, %v, want %v", to, row, err, want)
			}
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
}
