package redfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
)

// TestRow: single rows by number equal those of the table, flat and nested, in any order.
func TestRow(t *testing.T) {
	for _, opts := range []map[string]string{{"page-size": "300", "row-group-rows": "150"},
		{"generation": "A", "page-size": "100"}} {
		b := writeSample(t, 500, opts)
		r, err := redfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRows() != 500 {
			t.Fatal(r.NumRows())
		}
		want := sampleBatch(0, 500)
		rnd := rand.New(rand.NewPCG(9, 9))
		for range 1000 {
			n := rnd.IntN(500)
			got, err := r.Row(ctx, int64(n), nil)
			if err != nil {
				t.Fatal(err)
			}
			for c := range int(got.NumCols()) {
				if got.Column(c).IsNull(0) != want.Column(c).IsNull(n) ||
					got.Column(c).ValueStr(0) != want.Column(c).ValueStr(n) {
					t.Fatalf("row %d, column %d: %s, want %s", n, c, got.Column(c).ValueStr(0),
						want.Column(c).ValueStr(n))
				}
			}
			got.Release()
		}
		for _, n := range []int64{-1, 500} {
			if _, err := r.Row(ctx, n, nil); err == nil {
				t.Errorf("row %d", n)
			}
		}
		r.Close()
	}
}

// TestNative: rows from a position on, and single rows, are those that were written.
func TestNative(t *testing.T) {
	for _, opts := range []map[string]string{{"page-size": "300", "row-group-rows": "150"},
		{"generation": "A", "page-size": "100"}, {"index": "false", "page-size": "200"}} {
		b := writeSample(t, 500, opts)
		r, err := redfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		formattest.Native(t, r, sampleBatch(0, 500))
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A single file: its rows from a position on, and one of them.
func ExampleNewReader() {
	f, err := os.Open("../../corpus/redfile/red1/flat.red")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	r, err := redfile.NewReader(f, info.Size(), format.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	n := int64(0)
	for b, err := range r.RowsFrom(ctx, 100, nil) {
		if err != nil {
			panic(err)
		}
		n += b.NumRows()
	}
	row, err := r.Row(ctx, 2, nil)
	if err != nil {
		panic(err)
	}
	defer row.Release()
	fmt.Println(n, "of", r.NumRows(), "rows;", row.Column(0).ValueStr(0))
	// Output:
	// 400 of 500 rows; 479680206
}
