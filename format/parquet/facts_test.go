package parquet

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// TestFactsAreTheWritersOwn holds what is told of column chunks, which is counted page by page, against what their
// writers (pyarrow, DuckDB, polars) say of them in the footer.
func TestFactsAreTheWritersOwn(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) < 20 {
		t.Fatal(len(names), err)
	}
	counted := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(t, b)
		for g, rg := range r.Footer.RowGroups {
			for k, c := range rg.Columns {
				f, err := r.ChunkFacts(t.Context(), format.RowGroup{Index: g}, k)
				if err != nil {
					t.Fatal(name, err)
				}
				m := c.MetaData
				if f.Stored != m.TotalCompressedSize || f.Raw != m.TotalUncompressedSize ||
					f.Codec != m.Codec.String() {
					t.Errorf("%s: row_groups[%d].columns[%d]: %d bytes, %d raw, %s; the footer says %d, %d, %s", name,
						g, k, f.Stored, f.Raw, f.Codec, m.TotalCompressedSize, m.TotalUncompressedSize, m.Codec)
				}
				said, is := map[string]int64{}, map[string]int64{}
				for _, s := range m.EncodingStats {
					if s.PageType == meta.DataPage || s.PageType == meta.DataPageV2 {
						said[s.Encoding.String()] += int64(s.Count)
					}
				}
				for _, e := range f.Encodings {
					is[e.Encoding] = e.Pages
				}
				if len(said) == 0 {
					continue
				}
				if counted++; !maps.Equal(said, is) {
					t.Errorf("%s: row_groups[%d].columns[%d]: %v, the footer says %v", name, g, k, is, said)
				}
			}
		}
		r.Close()
	}
	if counted < 50 {
		t.Errorf("%d chunks have encoding_stats", counted)
	}
}
