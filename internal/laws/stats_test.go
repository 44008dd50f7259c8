package laws_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// TestStoredOnce: each byte of a file counts for at most one column: a format may have to derive nulls of structs and
// lists from the pages of their columns, and must not count those pages again.
func TestStoredOnce(t *testing.T) {
	inner := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})
	outer := arrow.StructOf(arrow.Field{Name: "in", Type: inner, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true})
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: outer, Nullable: true}}, nil)
	var rows strings.Builder
	for i := range 2000 {
		if rows.WriteByte(','); i%7 == 0 {
			fmt.Fprintf(&rows, `{"id":%d,"s":null}`, i)
			continue
		}
		fmt.Fprintf(&rows, `{"id":%d,"s":{"in":{"a":%d,"b":"text %d"},"l":[%d,%d]}}`, i, i*7919, i*i*31, i, i*104729)
	}
	for _, name := range []string{"t.carbondata", "t.parquet", "t.red", "t.trv"} {
		place := filepath.Join(t.TempDir(), name)
		tab := written(t, place, sc, "["+rows.String()[1:]+"]", nil)
		stats, err := tab.Stats(t.Context(), stoa.Fail, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(place)
		if err != nil {
			t.Fatal(err)
		}
		sum := stoa.SumStats(stats)
		if len(stats) < 4 || sum.Stored > info.Size() || sum.Stored < info.Size()/3 {
			t.Errorf("%s: %d columns take %d bytes, the file has %d", name, len(stats), sum.Stored, info.Size())
		}
	}
}

// TestKeyOfAnyName: a key is found whatever the name of its column is, including names that no predicate can express.
func TestKeyOfAnyName(t *testing.T) {
	for _, name := range []string{"id", "a b", `"`, "a.b", "", "i\xe4", "\xff", "k = 1 or k"} {
		sc := arrow.NewSchema([]arrow.Field{{Name: name, Type: arrow.PrimitiveTypes.Int64}}, nil)
		place := filepath.Join(t.TempDir(), "t.arrows")
		if err := streamOf(place, sc, 5); err != nil {
			t.Fatal(err)
		}
		tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		key, err := tab.ParseKey([]string{"3"})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		n := int64(0)
		for b, err := range tab.Seek(t.Context(), key, stoa.ScanSpec{Damaged: stoa.SkipRows}) {
			if err != nil {
				t.Errorf("%q: %v", name, err)
				break
			}
			n += b.NumRows()
		}
		if n != 1 {
			t.Errorf("%q: %d rows have the key 3", name, n)
		}
	}
}

// streamOf writes an Arrow stream with one column, the numbers from 0 to n-1.
func streamOf(place string, sc *arrow.Schema, n int) error {
	f, err := os.Create(place)
	if err != nil {
		return err
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range n {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	w := ipc.NewWriter(f, ipc.WithSchema(sc))
	err = w.Write(rb.NewRecordBatch())
	return errors.Join(err, w.Close(), f.Close())
}
