package parquet

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	metas "stoa/format/parquet/internal/meta"
)

// TestVerifyTellsLiesOfTwoPlaces: bounds of pages that lie within those of their row group stand for these, as long as
// no value is outside of them. Where one is, both are held against the values, wherever the value lies.
func TestVerifyTellsLiesOfTwoPlaces(t *testing.T) {
	whole := claimed(t)
	narrow := func(least, most int64) []byte {
		b := reindex(t, whole, colX, func(x *metas.ColumnIndex) {
			for i := range x.Min {
				x.Min[i] = le64(max(least, int64(binary.LittleEndian.Uint64(x.Min[i]))))
				x.Max[i] = le64(min(most, int64(binary.LittleEndian.Uint64(x.Max[i]))))
			}
		})
		return refooter(t, b, nil, func(m *metadata.FileMetaData, _ int64) {
			s := m.RowGroups[0].Columns[colX].MetaData.Statistics
			s.MinValue, s.MaxValue = le64(least), le64(most)
		})
	}
	for _, c := range []struct{ least, most int64 }{{0, 3980}, {10, 3990}, {10, 3980}, {0, 3990}} {
		codes := map[string]bool{}
		for _, f := range findings(narrow(c.least, c.most)) {
			codes[f.Code] = true
		}
		for _, code := range []string{"parquet.statistics", "parquet.index.bounds"} {
			if lie := c.least > 0 || c.most < 3990; codes[code] != lie {
				t.Errorf("%v: %s is told: %t, want %t", c, code, codes[code], lie)
			}
		}
	}
}
