package verify

import (
	"path/filepath"
	"reflect"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/region"
	"stoa/store"
)

// TestCountedWithTheValues: the counts that verify makes of pages together with their values agree with their levels
// and stored strings, in every file of the testdata.
func TestCountedWithTheValues(t *testing.T) {
	names, err := filepath.Glob("../../testdata/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	counted, texts := 0, 0
	for _, name := range names {
		f, err := file.New(t.Context(), format.Target{Tree: store.Local{}, Name: name}, format.OpenOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		r := read.NewReader(f, nil)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(name, err)
		}
		v := newVerifier(t.Context(), name, func(region.Finding) bool { return true })
		v.r, v.badPages = r, map[fault.Span]bool{}
		for g := range r.Footer.RowGroups {
			for fd, leaves := range r.FieldLeaves {
				if len(leaves) != 1 || r.Readable(g, leaves[0]) != nil {
					continue
				}
				w := []chunkWalk{v.chunk(g, leaves[0])}
				if v.values(g, fd, w); len(w[0].counted) == 0 {
					continue
				}
				want := stored(t, r, g, &w[0])
				if counted += len(want); !reflect.DeepEqual(w[0].counted, want) {
					t.Errorf("%s: row group %d, column %d: %v, want %v", name, g, leaves[0], w[0].counted, want)
				}
				for _, p := range want {
					texts += int(p[textBytes][0])
				}
			}
		}
		r.Close()
	}
	if counted < 1000 || texts < 10_000 {
		t.Errorf("%d pages were counted, with %d bytes of strings", counted, texts)
	}
}

// stored counts the pages of a flat chunk by their levels.
func stored(t *testing.T, r *read.Reader, g int, w *chunkWalk) (out []tally) {
	t.Helper()
	most := int(r.Leaves[w.leaf].MaxDef)
	for range w.data {
		out = append(out, tally{make([]int64, 1), make([]int64, most+1), make([]int64, 1)})
	}
	page, seen := 0, int64(0)
	err := entries(r, t.Context(), g, w.leaf, func(rep, def byte, size int64) {
		for seen == w.data[page].Values {
			page, seen = page+1, 0
		}
		out[page][repLevels][rep]++
		out[page][defLevels][def]++
		if seen++; r.Leaves[w.leaf].Typ == meta.TypeBytes {
			out[page][textBytes][0] += size
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
