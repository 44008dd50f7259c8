package cfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
)

// TestIndexNodeLost destroys each leaf of the positional index of real files, one at a time: the rows that other leaves
// place come out as they are, those told as lost are the leaf's alone (so those of all leaves together are the file's
// rows, once each), and Verify blames the leaf alone.
func TestIndexNodeLost(t *testing.T) {
	leaves := 0
	for _, name := range []string{"k.ck.cfile", "k.nock.cfile", "n.ck.cfile", "w.ck.cfile"} {
		whole, err := os.ReadFile(filepath.Join(golden, "btree", name))
		if err != nil {
			t.Fatal(err)
		}
		l, err := kudugen.Walk(whole)
		if err != nil {
			t.Fatal(err)
		}
		want, lost := readPast(t, whole)
		if int64(len(want)) != l.Values || len(lost) > 0 {
			t.Fatalf("%s: %d rows of %d, losses %v", name, len(want), l.Values, lost)
		}
		blamed := make([]int, l.Values) // leaves whose loss costs a row
		last := lastLeaf(l)
		for _, b := range l.Blocks {
			if b.Kind != "posidx" || l.Levels["posidx"] != 2 || b.Off == rootOf(l) {
				continue
			}
			leaves++
			data := bytes.Clone(whole)
			for i := b.Off; i < b.Off+b.Len; i++ {
				data[i] ^= 0x5a
			}
			got, lost := readPast(t, data)
			if got == nil && !l.Checksums && b.Off == last { // the last leaf must prove the footer's number of values
				for i := range blamed {
					blamed[i] = max(blamed[i], 1)
				}
				continue
			}
			if len(got) != len(want) {
				t.Fatalf("%s, leaf at %d: %d rows, want %d", name, b.Off, len(got), len(want))
			}
			gone := make([]bool, len(want))
			for _, x := range lost {
				for i := x.Rows[0]; i < x.Rows[1]; i++ {
					gone[i] = true
				}
			}
			for i := range got {
				if gone[i] {
					blamed[i]++
				} else if !same(got[i], want[i]) {
					t.Fatalf("%s, leaf at %d: row %d: got %s, want %s", name, b.Off, i, show(got[i]), show(want[i]))
				}
			}
			verifyBlames(t, name, data, b)
		}
		for i, n := range blamed {
			if n != 1 && l.Levels["posidx"] == 2 {
				t.Fatalf("%s: row %d is lost with %d leaves, want 1", name, i, n)
			}
		}
	}
	if leaves < 4 {
		t.Errorf("only %d leaves", leaves)
	}
	t.Logf("%d leaves", leaves)
}

// rootOf returns the offset of the root of the positional index: nodes come before those that point to them.
func rootOf(l *kudugen.Layout) (off int64) {
	for _, b := range l.Blocks {
		if b.Kind == "posidx" {
			off = max(off, b.Off)
		}
	}
	return off
}

// lastLeaf returns the offset of the last leaf of the positional index.
func lastLeaf(l *kudugen.Layout) (off int64) {
	for _, b := range l.Blocks {
		if b.Kind == "posidx" && b.Off != rootOf(l) {
			off = max(off, b.Off)
		}
	}
	return off
}

// readPast reads all rows, those that cannot be read as nulls; cells is nil if the file is refused as corrupt.
func readPast(t *testing.T, data []byte) (cells []kudugen.Cell, lost []region.Loss) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": data})})
	var e *fault.Error
	if errors.As(err, &e) && e.Class == fault.Corrupt {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	cells, err = collect(tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells,
		Lost: func(l region.Loss) { lost = append(lost, l) }}), 0)
	if err != nil {
		t.Fatal(err)
	}
	return cells, lost
}

// verifyBlames checks that all errors that Verify finds are in the block b.
func verifyBlames(t *testing.T, name string, data []byte, b kudugen.Block) {
	t.Helper()
	n := 0
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
	for f := range cfile.Format.Verify(t.Context(), tg, format.OpenOptions{}) {
		if f.Severity != region.Error {
			continue
		}
		if n++; f.At.Off < b.Off || f.At.End() > b.Off+b.Len {
			t.Errorf("%s, leaf at %d: %s %v %s: %s", name, b.Off, f.Code, f.At, f.Path, f.Message)
		}
	}
	if n == 0 {
		t.Errorf("%s, leaf at %d: no error", name, b.Off)
	}
}
