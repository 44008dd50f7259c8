package laws_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/vec"
)

// TestLookUpsKeepPages: lookups by key and by position return the right rows, from several goroutines, with the default
// page cache, with one so small that pages are evicted, and without one.
func TestLookUpsKeepPages(t *testing.T) {
	const n = 30_000
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "word", Type: arrow.BinaryTypes.String},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	want := make([]string, n)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(3 * i))
		text, flag := fmt.Sprintf("text %d", i*i), fmt.Sprint(i%3 == 0)
		if i%7 == 0 {
			text = "(null)"
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(text)
		}
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("word", i%50))
		if i%1000 == 1 {
			flag = "(null)"
			b.Field(3).AppendNull()
		} else {
			b.Field(3).(*array.BooleanBuilder).Append(i%3 == 0)
		}
		want[i] = fmt.Sprint(3*i, " ", text, " word", i%50, " ", flag)
	}
	place := filepath.Join(t.TempDir(), "t") + "/"
	w, err := stoa.Create(t.Context(), place, sc,
		stoa.CreateOptions{To: "cfile", Opts: map[string]string{"value-index.k": "true", "block-size": "4096",
			"encoding.word": "dict"}})
	if err == nil {
		err = w.Write(t.Context(), b.NewRecordBatch())
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int64{0, 300_000, -1} {
		tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{KeepPages: keep})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for g := range 3 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				for range 300 {
					i := r.IntN(n)
					if got := oneRow(t, tab, stoa.ScanSpec{}, int64(3*i)); got != want[i] {
						t.Errorf("keep %d, key %d: %s, want %s", keep, 3*i, got, want[i])
					}
					if got := oneRow(t, tab, stoa.ScanSpec{Rows: vec.Range{From: int64(i), To: int64(i) + 1}},
						nil); got != want[i] {
						t.Errorf("keep %d, row %d: %s, want %s", keep, i, got, want[i])
					}
				}
			})
		}
		all.Wait()
		tab.Close()
	}
}

// oneRow returns the only row that key, or spec if key is nil, selects.
func oneRow(t *testing.T, tab *stoa.Table, spec stoa.ScanSpec, key any) (text string) {
	rows := tab.Scan(t.Context(), spec)
	if key != nil {
		rows = tab.Seek(t.Context(), []any{key}, spec)
	}
	for b, err := range rows {
		if err != nil || b.NumRows() != 1 || text != "" {
			t.Error(key, spec, b, err)
			return
		}
		for i, c := range b.Columns() {
			if i > 0 {
				text += " "
			}
			text += c.ValueStr(0)
		}
	}
	return text
}
