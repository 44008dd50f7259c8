package parquet

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// TestChunkFacts compares the facts about column chunks, which are counted page by page, with the footers that pyarrow,
// DuckDB and polars wrote.
func TestChunkFacts(t *testing.T) {
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
					t.Errorf("%s: row_groups[%d].columns[%d]: got %d bytes, %d raw, %s, want %d, %d, %s", name,
						g, k, f.Stored, f.Raw, f.Codec, m.TotalCompressedSize, m.TotalUncompressedSize, m.Codec)
				}
				want, got := map[string]int64{}, map[string]int64{}
				for _, s := range m.EncodingStats {
					if s.PageType == meta.DataPage || s.PageType == meta.DataPageV2 {
						want[s.Encoding.String()] += int64(s.Count)
					}
				}
				for _, e := range f.Encodings {
					got[e.Encoding] = e.Pages
				}
				if len(want) == 0 {
					continue
				}
				if counted++; !maps.Equal(want, got) {
					t.Errorf("%s: row_groups[%d].columns[%d]: got encodings %v, want %v", name, g, k, got, want)
				}
			}
		}
		r.Close()
	}
	if counted < 50 {
		t.Errorf("got %d chunks with encoding_stats, want 50 or more", counted)
	}
}
