package stoa_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/store"
)

// FuzzSplit reads the JSON of a split and what it names of a table: a split comes from elsewhere, and may say
// anything of parts, row groups and rows. What it gives is never more than the table has for each of its
// pieces.
func FuzzSplit(f *testing.F) {
	tree := store.NewMemory(nil)
	const rows = 200
	r := rand.New(rand.NewPCG(1, 1))
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w, err := trevni.Format.Create(f.Context(), tree.Sink("t.trv"), sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"block-size": "100"}})
	if err != nil {
		f.Fatal(err)
	}
	b := array.NewRecordBatch(sc, []arrow.Array{formattest.Random(r, sc.Field(0).Type, rows, 0),
		formattest.Random(r, sc.Field(1).Type, rows, 20)}, rows)
	if err := w.Write(f.Context(), b); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Close(f.Context()); err != nil {
		f.Fatal(err)
	}
	o := stoa.OpenOptions{Formats: []format.Format{trevni.Format}, Tree: tree}
	t, err := stoa.Open(f.Context(), "t.trv", o)
	if err != nil {
		f.Fatal(err)
	}
	defer t.Close()
	for s, err := range t.Plan(f.Context(), stoa.ScanSpec{}, 400) {
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add([]byte(strings.Replace(string(text), `"columns":null`, `"columns":["b"],"where":"a > 5"`, 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s stoa.Split
		if json.Unmarshal(text, &s) != nil {
			return
		}
		before := formattest.Allocated()
		defer formattest.Watch(20 * time.Second)()
		tab, err := stoa.OpenSplit(context.Background(), s, o)
		if err != nil {
			classedSplit(t, err)
			return
		}
		defer tab.Close()
		most, got := 0, 0
		for _, src := range s.Sources {
			most += rows * len(src.Pieces)
		}
		for b, err := range tab.Scan(context.Background(), stoa.ScanSpec{}) {
			if err != nil {
				classedSplit(t, err)
				break
			}
			formattest.Valid(t, b)
			got += int(b.NumRows())
		}
		if got > most {
			t.Errorf("%d rows, the pieces have %d at most", got, most)
		}
		if n := formattest.Allocated() - before; n > int64(64<<20+len(text)<<10) {
			t.Errorf("%d bytes were allocated", n)
		}
	})
}

// classedSplit: a split that is wrong is a fault of who gives it, or its table's.
func classedSplit(t *testing.T, err error) {
	var e *fault.Error
	if !errors.As(err, &e) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.Bug) {
		t.Errorf("%T %v", err, err)
	}
}
