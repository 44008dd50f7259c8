package parquet

import (
	"encoding/binary"
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
