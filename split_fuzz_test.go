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

// FuzzSplit opens and scans splits of arbitrary JSON: a split comes from outside, and may name any parts, row groups
// and rows. No piece yields more rows than the table has.
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
			classed(t, err)
			return
		}
		defer tab.Close()
		limit, got := 0, 0
		for _, src := range s.Sources {
			limit += rows * len(src.Pieces)
		}
		for b, err := range tab.Scan(context.Background(), stoa.ScanSpec{}) {
			if err != nil {
				classed(t, err)
				break
			}
			formattest.Valid(t, b)
			got += int(b.NumRows())
		}
		if got > limit {
			t.Errorf("got %d rows, want at most %d", got, limit)
		}
		if n, limit := formattest.Allocated()-before, int64(64<<20+len(text)<<10); n > limit {
			t.Errorf("%d bytes allocated, want at most %d", n, limit)
		}
	})
}

// classed checks that the error of a wrong split has a class other than Bug, or is a missing file.
func classed(t *testing.T, err error) {
	var e *fault.Error
	if !errors.As(err, &e) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.Bug) {
		t.Errorf("got %T %v, want an error with a class other than Bug", err, err)
	}
}
