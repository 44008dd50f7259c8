package redfile_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"stoa/format"
	"stoa/format/redfile"
)

// TestRow: single rows by number are those of the table, flat and nested, in any order.
func TestRow(t *testing.T) {
	for _, opts := range []map[string]string{{"page-size": "300", "row-group-rows": "150"},
		{"generation": "A", "page-size": "100"}} {
		b := writeKill(t, 500, opts)
		r, err := redfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRows() != 500 {
			t.Fatal(r.NumRows())
		}
		want := killBatch(0, 500)
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
