package trevni_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/internal/scan"
	judge "stoa/interop/trevni"
	"stoa/store"
	"stoa/vec"
)

// write writes batches to a file.
func write(t testing.TB, f format.Format, sc *arrow.Schema, opts map[string]string,
	batches ...arrow.RecordBatch) *store.Memory {
	t.Helper()
	ctx, m := context.Background(), store.NewMemory(nil)
	w, err := f.Create(ctx, m.Sink("t"), sc, format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatalf("%s: %v", sc, err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatalf("%s: %v", sc, err)
		}
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatalf("%s: %v", sc, err)
	}
	for _, name := range m.Names() {
		formattest.Sound(t, &f, m, name)
	}
	return m
}

// open opens a file for the engine.
func openScan(t testing.TB, tree store.Tree, name string, o format.OpenOptions) scan.Source {
	t.Helper()
	o.Limits = o.Limits.WithDefaults()
	r, err := trevni.Format.Open(context.Background(), format.Target{Tree: tree, Name: name}, o)
	if err != nil {
		t.Fatal(err)
	}
	return scan.Source{Reader: r, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(), Limits: o.Limits}
}

// TestNestedRoundTrips: random schemas and rows, written and read with any window.
func TestNestedRoundTrips(t *testing.T) {
	opts := []map[string]string{{}, {"block-size": "100"}, {"block-size": "1000", "codec": "snappy"}}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		f, unions := trevni.Format, false
		o := opts[seed%3]
		if seed%2 == 0 {
			f, unions = trevni.AvroFormat, true
			if seed%4 == 0 {
				o = map[string]string{"version": "1", "block-size": "200", "codec": "deflate"}
			}
		}
		var fields []arrow.Field
		for i := range 1 + r.IntN(3) {
			fields = append(fields, judge.RandomField(r, fmt.Sprintf("c %d", i), 1+r.IntN(4), unions))
		}
		sc := arrow.NewSchema(fields, nil)
		n := r.IntN(300)
		b := judge.RandomBatch(r, sc, n)
		cut := int64(r.IntN(n + 1))
		m := write(t, f, sc, o, b.NewSlice(0, cut), b.NewSlice(cut, int64(n)))
		src := openScan(t, m, "t", format.OpenOptions{})
		if !src.Reader.Schema().Equal(sc) {
			t.Fatalf("seed %d: %s, want %s", seed, src.Reader.Schema(), sc)
		}
		if reported := src.Reader.(format.Finder).Findings(); len(reported) > 0 {
			t.Errorf("seed %d %v: %+v", seed, sc, reported)
		}
		from := int64(r.IntN(n + 1))
		for _, spec := range []scan.Spec{{}, {Batch: 1 + r.IntN(50)},
			{Rows: vec.Range{From: from, To: int64(n) + 1}, Batch: 1 + r.IntN(100)}} {
			at := spec.Rows.From
			for got, err := range scan.Run(t.Context(), src, spec, nil) {
				if err != nil {
					t.Fatalf("seed %d %v: %v", seed, sc, err)
				}
				want := b.NewSlice(at, at+got.NumRows())
				at += got.NumRows()
				for i := range fields {
					g, w := asJSON(t, got.Column(i)), asJSON(t, want.Column(i))
					if g != w {
						t.Fatalf("seed %d, %s, rows up to %d:\n%s", seed, fields[i], at, difference(g, w))
					}
				}
			}
			if at != int64(n) {
				t.Errorf("seed %d: rows end at %d of %d", seed, at, n)
			}
		}
	}
}

// asJSON returns an array as JSON; values under nulls are not included.
func asJSON(t testing.TB, a arrow.Array) string {
	t.Helper()
	b, err := a.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// difference returns the parts around the first difference.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, min(i-40, len(s))):min(len(s), i+60)] }
	return cut(got) + "\nwant\n" + cut(want)
}

// countingBatch returns n rows with the numbers from 0 on.
func countingBatch(sc *arrow.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
	}
	return b.NewRecordBatch()
}
