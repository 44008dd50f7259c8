package redfile_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestTwoDamagesInAChunk: one page's bytes are damaged, and the number of values in any page's header of the file.
// Without checksums the page that cannot be decoded need not be the one whose header is wrong, so no row moves: each is
// as it was, or reported as lost. (A real file of generation A, with optional values.)
func TestTwoDamagesInAChunk(t *testing.T) {
	whole, err := os.ReadFile("../../corpus/redfile/red1a/a_optional_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	want, lost := rowTexts(t, whole, "s")
	if len(want) != 300 || len(lost) > 0 {
		t.Fatalf("%d rows, lost %v", len(want), lost)
	}
	const body, bit = 2845, 1 // in the first page of column s of the second row group: it cannot be decoded any more
	reported := 0
	for _, at := range counts(t, whole) {
		for k := range 8 {
			b := slices.Clone(whole)
			b[body] ^= 1 << bit
			b[at] ^= 1 << k
			got, lost := rowTexts(t, b, "s")
			if len(lost) > 0 {
				reported++
			}
			for i := range got {
				if i >= len(want) || got[i] != want[i] && !lost[i] {
					t.Fatalf("bit %d of byte %d: row %d is %s, was %s, and that was not reported", k, at, i, got[i],
						want[min(i, len(want)-1)])
				}
			}
		}
	}
	if reported < 50 {
		t.Errorf("only %d were reported", reported)
	}
}

// TestTwoNumbersOfRows: a bit of the number of values in the first page's header is flipped, and an inserted byte moves
// the chunks after it, so that recovery finds them by their structure. The number of rows is the one that the metadata
// of the file and of the chunk agree on.
func TestTwoNumbersOfRows(t *testing.T) {
	const rows = 236
	whole := writeSample(t, rows, map[string]string{"crc": "false", "index": "false", "sync": "0",
		"compression": "none"})
	for k := range 8 {
		for _, at := range counts(t, whole)[:3] {
			for _, insert := range []int{int(at) + 700, len(whole) / 2} {
				b := slices.Insert(slices.Clone(whole), insert, 0x5a)
				b[at] ^= 1 << k
				if got, _ := rowTexts(t, b, "id"); len(got) != rows {
					t.Errorf("bit %d of byte %d, a byte at %d: %d rows of %d", k, at, insert, len(got), rows)
				}
			}
		}
	}
}

// rowTexts reads a column of a file whose row groups have 100 rows, and the rows of it that are reported as lost.
func rowTexts(t *testing.T, file []byte, column string) (rows []string, lost map[int]bool) {
	t.Helper()
	lost = map[int]bool{}
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f.red": file}),
		Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec := stoa.ScanSpec{Columns: []string{column}, Damaged: stoa.NullCells, Lost: func(l region.Loss) {
		for r := l.Rows[0]; r < l.Rows[1]; r++ {
			lost[100*l.Group+int(r)] = true
		}
	}}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			text, err := json.Marshal(b.Column(0).GetOneForMarshal(i))
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(text))
		}
	}
	return rows, lost
}
