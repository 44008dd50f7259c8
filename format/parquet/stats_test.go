package parquet_test

import (
	"path/filepath"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/store"
)

// TestStats: the stored and raw bytes of columns are those of their chunks in the footers, including headers, and the
// dictionary page of a chunk of nulls; over several files they are the sums.
func TestStats(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) < 20 {
		t.Fatal(len(names), err)
	}
	asked := 0
	for _, name := range names {
		f, err := file.Open(t.Context(), format.Target{Tree: store.Local{}, Name: name}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for times := range 2 {
			src := []string{name, name}[:times+1]
			table, err := stoa.OpenAll(t.Context(), src, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stats, err := table.Stats(t.Context(), stoa.Fail, nil)
			table.Close()
			if err != nil {
				t.Fatal(name, err)
			}
			sum, all := stoa.SumStats(stats), [2]int64{}
			for k, s := range stats {
				var want [2]int64
				for _, g := range f.Footer.RowGroups {
					m := g.Columns[k].MetaData
					want[0] += m.TotalCompressedSize * int64(times+1)
					want[1] += m.TotalUncompressedSize * int64(times+1)
				}
				all[0], all[1] = all[0]+want[0], all[1]+want[1]
				if asked++; s.Stored != want[0] || s.Raw != want[1] {
					t.Errorf("%s ×%d, %s: got %d bytes stored, %d raw, want %v", name, times+1, s.Name, s.Stored,
						s.Raw, want)
				}
			}
			if sum.Stored != all[0] || sum.Raw != all[1] {
				t.Errorf("%s: got sums %d and %d, want %v", name, sum.Stored, sum.Raw, all)
			}
		}
	}
	if asked < 100 {
		t.Errorf("got %d columns, want 100 or more", asked)
	}
}
