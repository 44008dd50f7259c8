package parquet

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	metas "stoa/format/parquet/internal/meta"
)

// TestVerifyBoundsOfPagesAndGroup: if the bounds of both pages and row group are too narrow, verify reports both,
// wherever the values outside them are.
func TestVerifyBoundsOfPagesAndGroup(t *testing.T) {
	intact := claimed(t)
	narrow := func(lo, hi int64) []byte {
		b := reindex(t, intact, colX, func(x *metas.ColumnIndex) {
			for i := range x.Min {
				x.Min[i] = le64(max(lo, int64(binary.LittleEndian.Uint64(x.Min[i]))))
				x.Max[i] = le64(min(hi, int64(binary.LittleEndian.Uint64(x.Max[i]))))
			}
		})
		return refooter(t, b, nil, func(m *metadata.FileMetaData, _ int64) {
			s := m.RowGroups[0].Columns[colX].MetaData.Statistics
			s.MinValue, s.MaxValue = le64(lo), le64(hi)
		})
	}
	for _, c := range []struct{ lo, hi int64 }{{0, 3980}, {10, 3990}, {10, 3980}, {0, 3990}} {
		codes := map[string]bool{}
		for _, f := range findings(narrow(c.lo, c.hi)) {
			codes[f.Code] = true
		}
		for _, code := range []string{"parquet.statistics", "parquet.index.bounds"} {
			if want := c.lo > 0 || c.hi < 3990; codes[code] != want {
				t.Errorf("%v: %s: got reported %t, want %t", c, code, codes[code], want)
			}
		}
	}
}

// TestBoundsAreNoLoss: a value outside its bounds contradicts them. It can be read, so no finding about it counts a
// loss; each is about the rows of one page, which nothing proves, and names value and bounds.
func TestBoundsAreNoLoss(t *testing.T) {
	intact := claimed(t)
	pages, at := map[[2]int64]bool{}, int64(0) // rows of each, by the headers
	for p, err := range readerOf(t, intact).Pages(t.Context(), 0, colX) {
		if err != nil {
			t.Fatal(err)
		}
		if p.IsData() {
			pages[[2]int64{at, at + p.Values}] = true
			at += p.Values
		}
	}
	if len(pages) < 2 || at != 400 {
		t.Fatal(pages)
	}
	for _, hi := range []int64{3980, 3000, 10, -1} {
		b := refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			m.RowGroups[0].Columns[colX].MetaData.Statistics.MaxValue = le64(hi)
		})
		found := 0
		for _, f := range findings(b) {
			if !strings.Contains(f.Message, "outside its bounds") {
				continue
			}
			found++
			if f.Lost != 0 || !pages[f.Rows] {
				t.Errorf("max %d: %d lost of rows %v, want none, and the rows of a page", hi, f.Lost, f.Rows)
			}
			if want := fmt.Sprintf("max %d)", hi); !strings.Contains(f.Message, want) ||
				!strings.Contains(f.Message,
					fmt.Sprintf("nothing proves the %d rows of the page", f.Rows[1]-f.Rows[0])) {
				t.Errorf("max %d: %s", hi, f.Message)
			}
		}
		if found == 0 {
			t.Errorf("max %d: not noticed", hi)
		}
	}
}
