package cfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// numValuesAt returns the offset of the number of values in the footer, which is a varint of size bytes.
func numValuesAt(t *testing.T, data []byte, l *kudugen.Layout, n int) (at, size int) {
	t.Helper()
	foot := l.Blocks[len(l.Blocks)-1]
	want := binary.AppendUvarint([]byte{0x18}, uint64(n))
	at = bytes.Index(data[foot.Off:], want)
	if at < 0 {
		t.Fatalf("the footer does not have %d values", n)
	}
	return int(foot.Off) + at + 1, len(want) - 1
}

// breakChecksum changes more bits of the footer's checksum, if it has one, than recovery can find.
func breakChecksum(data []byte, l *kudugen.Layout) {
	if l.Checksums {
		data[l.Blocks[len(l.Blocks)-1].Off] ^= 0xff
	}
}

// TestNumberOfValues: for any number of values in the footer, no number of rows other than that of the blocks is read,
// counted or listed without an error, and recovery returns all rows. If the number in the block may be the damaged one,
// it returns as many rows as the smaller of the two, and reports the others.
func TestNumberOfValues(t *testing.T) {
	ctx, files, tried, uncertain := context.Background(), 0, 0, 0
	forGoldenFiles(t, func(t *testing.T, _ block, whole []byte, l *kudugen.Layout, x expected) {
		var last kudugen.Block
		for _, b := range l.Blocks {
			if b.Kind == "data" {
				last = b
			}
		}
		at, size := numValuesAt(t, whole, l, len(x.cells))
		files++
		for bit := range 7 * size {
			if (bit+files)%9 != 0 && !long() { // only some bits of each file
				continue
			}
			data := bytes.Clone(whole)
			data[at+bit/7] ^= 1 << (bit % 7)
			breakChecksum(data, l)
			u, _ := binary.Uvarint(data[at:])
			n, end := int64(u), last.First+last.Rows
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
			tried++
			if r, err := cfile.Format.Open(ctx, tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("%d values instead of %d are taken: %v", n, end, err)
			} else if r != nil {
				r.Close()
			}
			for _, err := range cfile.Format.List(ctx, tg) {
				if err == nil {
					t.Fatalf("%d values instead of %d are listed", n, end)
				}
			}
			for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
				if errorsOf(ctx, tg, depth) == 0 {
					t.Fatalf("%d values instead of %d: verify of depth %v finds nothing", n, end, depth)
				}
			}
			_, found, err := cfile.Format.Recover(ctx, tg,
				format.OpenOptions{Opts: map[string]string{"kind": "column"}})
			k := slices.IndexFunc(found, func(f region.Finding) bool { return f.Code == "cfile.numvalues" })
			if err != nil || k < 0 {
				t.Fatalf("%d values instead of %d are not reported: %v, %v", n, end, found, err)
			}
			if !l.Checksums && (last.Rows+7)/8 == (n-last.First+7)/8 {
				uncertain++
				if want := [2]int64{min(n, end), max(n, end)}; found[k].Rows != want {
					t.Fatalf("rows %v are in doubt, want %v", found[k].Rows, want)
				}
				if n < end {
					continue
				}
			}
			cells, lost, rows := salvage(t, data, map[string]string{"kind": "column"})
			if len(lost) > 0 || rows != end {
				t.Fatalf("%d values instead of %d: %d rows, lost %v", n, end, rows, lost)
			}
			checkOutside(t, cells, x, vec.Range{})
		}
	})
	if t.Logf("%d tried, %d in doubt", tried, uncertain); tried < 100 || uncertain == 0 {
		t.Error("nothing was tried")
	}
}

// TestUnknownEnd: the number of rows is unknown if the last block of a file is damaged and no checksum proves the
// footer's number of values, or if the footer is damaged as well and, in files whose blocks have checksums, all indexes
// are. No number is then returned or listed, and recovery returns the rows of the other blocks and reports a loss of
// unknown size.
func TestUnknownEnd(t *testing.T) {
	ctx, tried, checked := context.Background(), 0, 0
	forGoldenFiles(t, func(t *testing.T, _ block, whole []byte, l *kudugen.Layout, x expected) {
		var last kudugen.Block
		for _, b := range l.Blocks {
			if b.Kind == "data" {
				last = b
			}
		}
		if last.First == 0 {
			return
		}
		at, _ := numValuesAt(t, whole, l, len(x.cells))
		indexes := bytes.Clone(whole)
		for _, b := range l.Blocks {
			if b.Kind == "posidx" || b.Kind == "validx" {
				hit(indexes, b)
			}
		}
		for i, other := range []byte{0, 1, 8, 64, 1, 8, 64} {
			if l.Checksums && other == 0 || !l.Checksums && i > 3 {
				continue // the footer's checksum proves the number, or only the index proves blocks
			}
			data := bytes.Clone(whole)
			if i > 3 {
				data = bytes.Clone(indexes)
			}
			data[at] ^= other
			breakChecksum(data, l)
			clear(data[last.Off:][:last.Len])
			if n, _ := binary.Uvarint(data[at:]); i > 3 && int64(n) == last.First {
				continue // the rest is equal to a file of the preceding blocks
			}
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
			if _, err := cfile.Format.Open(ctx, tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("expected an error of opening, got: %v", err)
			}
			for _, damaged := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
				rows, exact := endless(t, data, damaged)
				if rows != last.First || exact {
					t.Fatalf("%d rows, expected %d; the losses are exact: %v", rows, last.First, exact)
				}
			}
			if tried++; l.Checksums {
				checked++
			}
		}
	})
	if tried < 40 || checked < 20 {
		t.Errorf("only %d were tried, %d of them with checksums", tried, checked)
	}
}

// endless recovers a file with an unknown number of rows. It returns the number of rows read, and whether the losses
// are exact.
func endless(t *testing.T, data []byte, damaged stoa.Damaged) (rows int64, exact bool) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": data}),
		Recover: true, Opts: map[string]string{"kind": "column"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var losses []region.Loss
	spec := stoa.ScanSpec{Damaged: damaged, Lost: func(l region.Loss) { losses = append(losses, l) }}
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
	}
	_, exact = region.LostRows(losses)
	return rows, exact
}

// errorsOf returns the number of errors that verify finds.
func errorsOf(ctx context.Context, tg format.Target, depth format.Depth) (n int) {
	for f := range cfile.Format.Verify(ctx, tg, format.OpenOptions{Depth: depth}) {
		if f.Severity == region.Error {
			n++
		}
	}
	return n
}

// TestDictionaryIsNoRows: if all codes and the footer's checksum of a dictionary-encoded file are damaged, and only the
// type is passed, recovery does not return the entries of the dictionary as rows, although it is a sound block of plain
// strings.
func TestDictionaryIsNoRows(t *testing.T) {
	n := 0
	forGoldenFiles(t, func(t *testing.T, _ block, data []byte, l *kudugen.Layout, x expected) {
		if cfile.Encoding(l.Encoding) != cfile.Dict {
			return
		}
		for _, b := range l.Blocks {
			if b.Kind == "data" {
				hit(data, b)
			}
		}
		foot := l.Blocks[len(l.Blocks)-1]
		data[foot.Off] ^= 1
		n++
		tab, err := stoa.Open(t.Context(), "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": data}),
			Recover: true, Opts: map[string]string{"kind": "column", "type": cfile.Type(l.Type).String()}})
		if err != nil {
			return
		}
		defer tab.Close()
		lost, rows := int64(0), int64(0)
		spec := stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }}
		for b, err := range tab.Scan(t.Context(), spec) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.NumRows()
		}
		if rows > 0 || lost != int64(len(x.cells)) {
			t.Fatalf("%d rows, %d lost, expected none and all %d, whose codes are damaged", rows, lost, len(x.cells))
		}
	})
	if n < 5 {
		t.Errorf("only %d files have a dictionary", n)
	}
}

// TestRecoverWithinABudget: metadata that exceeds its limit is not damage for recovery either, in undamaged files and
// in files with a damaged header: the error is of class Limit, and for an undamaged file nothing is reported.
func TestRecoverWithinABudget(t *testing.T) {
	ctx, n := context.Background(), 0
	forGoldenFiles(t, func(t *testing.T, _ block, whole []byte, l *kudugen.Layout, _ expected) {
		for _, at := range []int{-1, 3} {
			data := bytes.Clone(whole)
			if at >= 0 {
				data[at] ^= 1
			}
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
			r, found, err := cfile.Format.Recover(ctx, tg, format.OpenOptions{Limits: format.Limits{Metadata: 10}})
			if !errors.Is(err, fault.Limit) || r != nil {
				t.Fatalf("byte %d damaged: %v", at, err)
			}
			if at < 0 && len(found) > 0 {
				t.Fatalf("findings in an undamaged file: %v", found)
			}
			n++
		}
	})
	if n < 100 {
		t.Errorf("only %d were tried", n)
	}
}
