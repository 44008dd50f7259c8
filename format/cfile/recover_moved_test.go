package cfile_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"stoa"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// TestMovedBytes: from a file without checksums into which bytes were inserted, or from which bytes were removed,
// recovery returns the right values in all rows that it does not report as lost. If index and footer are intact, only
// the rows of the block in which that happened, and of the adjacent blocks, are lost.
func TestMovedBytes(t *testing.T) {
	tried, spared := 0, 0
	forGoldenFiles(t, func(t *testing.T, b block, whole []byte, l *kudugen.Layout, x expected) {
		if l.Checksums {
			return
		}
		for i, at := range l.Blocks {
			if (i+tried)%7 != 0 && len(l.Blocks) > 8 && !long() {
				continue
			}
			for _, n := range []int64{-69, -8, -1, 1, 4, 8, 69} {
				if tried++; testing.Short() && tried%5 > 0 {
					continue
				}
				from := at.Off + at.Len*int64(tried%5)/5
				data := moveBytes(whole, from, n)
				if data == nil {
					continue
				}
				lost := lostOutside(t, data, x, map[string]string{"kind": "column"})
				if lost >= 0 && at.Kind == "data" && l.Blocks[len(l.Blocks)-1].Kind == "footer" {
					spared++
					if limit := rowsAround(l, from, max(from, from-n)); lost > limit {
						t.Errorf("%d bytes moved at %d: %d rows are lost, at most %d should be: %+v", n, from, lost,
							limit, l.Blocks)
					}
				}
			}
		}
	})
	if edges := acrossEdges(t); edges < 100 {
		t.Errorf("only %d across the edges of blocks", edges)
	}
	if t.Logf("%d tried, %d in data", tried, spared); tried < 100 || spared < 20 {
		t.Error("too little was tried")
	}
}

// acrossEdges removes the last bytes of a block and the first bytes after it. The remains of both may then be read as a
// different value, and the block may end at its original offset.
func acrossEdges(t *testing.T) (tried int) {
	forGoldenFiles(t, func(t *testing.T, _ block, whole []byte, l *kudugen.Layout, x expected) {
		if l.Checksums {
			return
		}
		for i, at := range l.Blocks {
			if (i+tried)%7 != 0 && len(l.Blocks) > 8 && !long() {
				continue
			}
			for before := int64(1); before < 6; before++ {
				if data := moveBytes(whole, at.Off+at.Len-before, -before-1); data != nil {
					lostOutside(t, data, x, map[string]string{"kind": "column"})
					tried++
				}
			}
		}
	})
	return tried
}

// moveBytes inserts n bytes at an offset, or removes -n; nil if there are not enough.
func moveBytes(data []byte, at, n int64) []byte {
	if n > 0 {
		return slices.Insert(bytes.Clone(data), int(at), bytes.Repeat([]byte{0x5a}, int(n))...)
	}
	if at-n > int64(len(data)) {
		return nil
	}
	return slices.Delete(bytes.Clone(data), int(at), int(at-n))
}

// rowsAround returns the number of rows of the data blocks that touch [from, to], and of the blocks next to them.
func rowsAround(l *kudugen.Layout, from, to int64) (n int64) {
	data := slices.DeleteFunc(slices.Clone(l.Blocks), func(b kudugen.Block) bool { return b.Kind != "data" })
	for i := range data {
		near := data[max(0, i-1):min(len(data), i+2)]
		if slices.ContainsFunc(near, func(b kudugen.Block) bool { return b.Off <= to && from <= b.Off+b.Len }) {
			n += data[i].Rows
		}
	}
	return n
}

// lostOutside recovers a file, and compares the rows that are not lost with the original rows. It returns the number of
// lost rows; -1 if all are lost because the file cannot be opened, or if something is in doubt.
func lostOutside(t *testing.T, data []byte, x expected, opts map[string]string) int64 {
	t.Helper()
	ctx := context.Background()
	tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{From: "cfile", Opts: opts, Recover: true,
		Tree: store.NewMemory(map[string][]byte{"f": data})})
	if err != nil {
		return -1
	}
	defer tab.Close()
	var gone []vec.Range
	lost := int64(0)
	got, err := collect(tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) {
		gone = append(gone, vec.Range{From: l.Rows[0], To: l.Rows[1]})
		lost += l.Rows[1] - l.Rows[0]
	}}), 0)
	if err != nil {
		return -1
	}
	for i, c := range got {
		in := func(r vec.Range) bool { return r.From <= int64(i) && int64(i) < r.To }
		if slices.ContainsFunc(gone, in) {
			continue
		}
		if w := x.col.Width(); c != nil && w > 0 {
			c = c[:w]
		}
		if i >= len(x.cells) || !same(c, x.cells[i]) {
			t.Fatalf("row %d is %v, but not reported as lost", i, c)
		}
	}
	return lost
}
