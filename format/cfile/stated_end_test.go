package cfile_test

import (
	"bytes"
	"fmt"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
)

// TestStatedEnd: where a byte behind the headers of the last block is damaged, in files without checksums, the rows
// that are read and those that are reported as lost are all rows of the file, under both policies: the block's header,
// the index and the footer agree on where it ends.
func TestStatedEnd(t *testing.T) {
	tried, lost := 0, 0
	forGoldenFiles(t, func(t *testing.T, _ block, whole []byte, l *kudugen.Layout, x expected) {
		if l.Checksums || l.Compression > 1 {
			return
		}
		var last kudugen.Block
		for _, b := range l.Blocks {
			if b.Kind == "data" {
				last = b
			}
		}
		header := 48 + (int64(len(x.cells))-last.First)/4 // with a bitmap before the values' own
		for at := last.Off + header; at < last.Off+last.Len; at += max(1, last.Len/16) {
			data := bytes.Clone(whole)
			data[at] ^= 1 << (at % 8)
			for _, damaged := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
				rows, reported, some := countRows(t, data, damaged)
				tried++
				if reported > 0 {
					lost++
				}
				if want := int64(len(x.cells)); rows+reported != want || some {
					t.Errorf("byte %d of the last block [%d+%d], policy %v: %d rows are read and %d reported as lost, "+
						"want %d together; more may be lost: %v", at-last.Off, last.Off, last.Len, damaged, rows,
						reported, want, some)
				}
			}
		}
	})
	if tried < 100 || lost < 10 {
		t.Errorf("%d were tried, rows were lost in %d", tried, lost)
	}
}

// countRows recovers a file: how many rows are read, how many whole rows are reported as lost (cells that are null in
// their place are read), and whether a loss is of unknown size.
func countRows(t *testing.T, data []byte, damaged stoa.Damaged) (rows, lost int64, unknown bool) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": data}),
		Formats: []format.Format{cfile.Format}, Recover: true, Opts: map[string]string{"kind": "column"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var losses []region.Loss
	spec := stoa.ScanSpec{Damaged: damaged, Lost: func(l region.Loss) { losses = append(losses, l) }}
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(fmt.Errorf("after %d rows: %w", rows, err))
		}
		rows += b.NumRows()
	}
	lost, exact := region.LostRows(losses)
	if damaged == stoa.NullCells {
		lost = 0 // they are read, as nulls
	}
	return rows, lost, !exact
}
