package parquet

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/vec"
)

// TestWideDeltas reads what DuckDB packs with more than 32 bits (testdata/make_others.py), from row 0 on and from within a block.
func TestWideDeltas(t *testing.T) {
	tree := golden(t, "testdata/deltas32.duckdb.parquet")
	for _, rows := range []vec.Range{{}, {From: 1, To: 2}, {From: 700, To: 2100}, {From: 2047, To: 2060}} {
		_, got, err := readAll(tree, nil, rows)
		if err != nil {
			t.Fatal(rows, err)
		}
		i := rows.From
		for _, b := range got {
			for k := range int(b.NumRows()) {
				checkWide(t, b, k, i)
				i++
			}
		}
		if rows.Len() == 0 {
			rows.To = 2100
		}
		if i != rows.To {
			t.Errorf("%v: to row %d", rows, i)
		}
	}
	if fs := findings(tree.Bytes("t")); len(fs) != 0 {
		t.Errorf("%+v", fs)
	}
}

func checkWide(t *testing.T, b arrow.RecordBatch, k int, i int64) {
	t.Helper()
	u32 := func(c int) *array.Uint32 { return b.Column(c).(*array.Uint32) }
	third := uint32(i * 1431655765 % (1 << 32))
	if got := u32(0).Value(k); got != uint32(1<<32-1-i) {
		t.Fatalf("row %d: down is %d", i, got)
	}
	if got := u32(1).Value(k); got != uint32(i*2654435761%(1<<32)) {
		t.Fatalf("row %d: far is %d", i, got)
	}
	if got := u32(2); got.IsNull(k) != (i%3 == 0) || i%3 != 0 && got.Value(k) != third {
		t.Fatalf("row %d: nulls is %s", i, got.ValueStr(k))
	}
	if got := b.Column(3).(*array.Int32).Value(k); got != [2]int32{1<<31 - 1, -1 << 31}[i%2] {
		t.Fatalf("row %d: signed is %d", i, got)
	}
	l := b.Column(4).(*array.List)
	if from, to := l.ValueOffsets(k); to-from != 1 || l.ListValues().(*array.Uint32).Value(int(from)) != third {
		t.Fatalf("row %d: list is %s", i, l.ValueStr(k))
	}
}

// TestPlainOfDeltas32 is a page by hand, and bytes that are none.
func TestPlainOfDeltas32(t *testing.T) {
	page := []byte{
		128, 1, 4, 3, 0xfe, 0xff, 0xff, 0xff, 0x1f, // 3 numbers, the first 4294967295
		2, 1, 0, 0, 0, 2, 0, 0, 0, // then 1 more than that, and 1 more than least delta 1
	}
	got, err := plainOfDeltas32(page, 3)
	if want := "\xff\xff\xff\xff\x00\x00\x00\x00\x02\x00\x00\x00"; err != nil || string(got) != want {
		t.Errorf("%x, %v", got, err)
	}
	for n := range page {
		if got, err := plainOfDeltas32(page[:n], 3); err == nil {
			t.Errorf("%d bytes: %x", n, got)
		}
	}
	if _, err := plainOfDeltas32(page, 2); err == nil {
		t.Error("more numbers than values")
	}
}
