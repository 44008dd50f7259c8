package parquet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	metadata "github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/internal/cells"
	"stoa/region"
	"stoa/store"
)

// movedRow is a row of testdata/moved.parquet.
type movedRow struct {
	ID, A, B, C int
	S, Few      string
	L           []int
	D           *float64
}

// right reports whether every value is the one that make_others.py computes.
func (r *movedRow) right() bool {
	i := r.ID
	d := r.D == nil
	if i%5 != 0 {
		d = r.D != nil && *r.D == float64(i)/7
	}
	return d && r.A == i*37%100 && r.B == i*41%100 && r.C == i*73%100 && r.S == fmt.Sprintf("s%d", i*13%1000) &&
		r.Few == "xyz"[i%3:i%3+1] && slices.Equal(r.L, slices.Repeat([]int{i}, i%4))
}

// movedRows returns the rows that a file gives, and the row groups in which it says rows are lost.
func movedRows(t *testing.T, b []byte, recover bool) (rows []movedRow, lost map[int]bool) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Formats: []format.Format{parquet.Format},
		Tree: store.NewMemory(map[string][]byte{"t": b}), Recover: recover})
	if err != nil && !recover { // chunks are behind the end of the file
		return nil, map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	lost = map[int]bool{}
	var lines bytes.Buffer
	w := cells.NewJSONLWriter(&lines, tab.Schema())
	for rec, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) {
		lost[l.Group] = true
	}}) {
		if err == nil {
			err = w.Write(rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(&lines); d.More(); {
		var row movedRow
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows, lost
}

// checkMoved checks what a damaged file gives: right rows only, in their order, and all of the row groups that it does
// not say are lost. It returns the number of those.
func checkMoved(t *testing.T, what string, b []byte, recover bool) (lost int) {
	t.Helper()
	rows, groups := movedRows(t, b, recover)
	next := 0
	for _, r := range rows {
		for next < r.ID && groups[next/100] {
			next++
		}
		if !r.right() || r.ID != next {
			t.Errorf("%s, recover %v: row %d is %+v", what, recover, next, r)
			return len(groups)
		}
		next++
	}
	for next < 500 && groups[next/100] {
		next++
	}
	if next != 500 {
		t.Errorf("%s, recover %v: row %d is neither there nor lost", what, recover, next)
	}
	return len(groups)
}

// TestMovedChunks: bytes are inserted or removed before the footer of a file without checksums, also as many as lie
// between two of its chunks, so that pages of one column are where the footer has those of another, of the same size
// and with the same statistics. All rows that reading and recovery give are right, and all others are said to be lost;
// and where a single chunk is torn, recovery loses no other row group than its own.
func TestMovedChunks(t *testing.T) {
	whole, err := os.ReadFile("testdata/moved.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if n := checkMoved(t, "whole", whole, false); n != 0 {
		t.Fatalf("%d row groups are lost in the intact file", n)
	}
	chunks := chunksOf(t, whole)
	distances := []int{1, 8, 13, 200}
	for i, from := range chunks[:9] {
		for _, to := range chunks[i+1 : min(i+9, len(chunks))] {
			distances = append(distances, to-from)
		}
	}
	step := 5
	if testing.Short() {
		step = 19
	}
	torn, few := 0, 0
	for k := 0; k < len(distances); k += step {
		n := distances[k]
		for c := k % 5; c < len(chunks)-1; c += 5 {
			for _, at := range []int{chunks[c], chunks[c] - 8, chunks[c] + 60} {
				at = min(max(at, 4), chunks[len(chunks)-1]-n)
				for op, bad := range map[string][]byte{
					"inserted": slices.Insert(bytes.Clone(whole), at, bytes.Repeat([]byte{0x5a}, n)...),
					"doubled":  slices.Insert(bytes.Clone(whole), at, whole[at:at+n]...),
					"removed":  slices.Delete(bytes.Clone(whole), at, at+n),
				} {
					what := fmt.Sprintf("%d bytes %s at %d", n, op, at)
					checkMoved(t, what, bad, false)
					lost := checkMoved(t, what, bad, true)
					if at == chunks[c]+60 && op != "doubled" && at+n < chunks[c+1] && c%8 > 0 && c%8 < 7 {
						if torn++; lost == 1 {
							few++
						}
					}
				}
			}
		}
	}
	if t.Logf("%d times a single chunk was torn, %d times only its row group was lost", torn, few); few != torn {
		t.Errorf("only its row group was lost %d times, want %d", few, torn)
	}
}

// chunksOf returns where the chunks of a file begin, and where the last one ends.
func chunksOf(t *testing.T, b []byte) (starts []int) {
	end := 0
	withGroups(t, b, func(m *metadata.FileMetaData) {
		for _, g := range m.RowGroups {
			for _, c := range g.Columns {
				from := int(c.MetaData.DataPageOffset)
				if d := c.MetaData.DictionaryPageOffset; d != nil {
					from = int(*d)
				}
				starts, end = append(starts, from), from+int(c.MetaData.TotalCompressedSize)
			}
		}
	})
	return append(starts, end)
}
