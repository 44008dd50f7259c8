package cfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestRecoveryToldOfLastBlock: whatever is overwritten in the last block of a file without checksums, recovery that
// reports nothing gives a file that is also read without it. A block whose values end before the block does is refused
// when it is opened; its rows may be other ones, however many of them there are.
func TestRecoveryToldOfLastBlock(t *testing.T) {
	told := 0
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
		r := rand.New(rand.NewPCG(17, uint64(last.Len)))
		for range 12 {
			data := bytes.Clone(whole)
			at := last.Off + r.Int64N(last.Len)
			end := min(at+1+r.Int64N(100), last.Off+last.Len)
			for i := at; i < end; i++ {
				data[i] = byte(r.Uint32())
			}
			if readable(t, data, false) {
				continue
			}
			if told++; readable(t, data, true) {
				t.Errorf("bytes %d to %d of the last block [%d+%d]: recovery reports nothing, and the file is refused "+
					"when it is read", at-last.Off, end-last.Off, last.Off, last.Len)
			}
		}
	})
	if told < 50 {
		t.Errorf("only %d files are refused", told)
	}
}

// readable reports whether all rows of a file are read, or recovered, and no damage is reported.
func readable(t *testing.T, data []byte, recover bool) bool {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": data}),
		Formats: []format.Format{cfile.Format}, Recover: recover, Opts: map[string]string{"kind": "column"}})
	if err != nil {
		return false
	}
	defer tab.Close()
	intact := true
	spec := stoa.ScanSpec{}
	if recover {
		spec = stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(region.Loss) { intact = false }}
	}
	for _, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			return false
		}
	}
	return intact && !slices.ContainsFunc(tab.Findings(),
		func(f region.Finding) bool { return f.Severity == region.Error })
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
