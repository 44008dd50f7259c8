package carbon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/format/carbon"
)

// TestMergeIndexes merges the index files of tables that CarbonData 2.3.0 under Spark 3.1.1 wrote with
// carbon.merge.index.in.segment=false (testdata/single_index): rows id, 'n' || id % 7, 2020-01-01 + id days
// (parts: + id % 3 days, as partitions), by four tasks ids 0…39, and in plain by two more 40…59.
// interop/carbon-spark has Spark read such a table afterwards.
func TestMergeIndexes(t *testing.T) {
	for _, c := range []struct {
		name            string
		rows, days      int
		single, merged  int // index files before and after
		places, summary string
	}{{"plain", 60, 60, 6, 2, "Fact/Part0/*/*", "[0 1] 6"}, {"parts", 40, 3, 12, 3, "day=*/*", "[0] 12"}} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), c.name)
			if err := os.CopyFS(dir, os.DirFS("testdata/single_index/"+c.name)); err != nil {
				t.Fatal(err)
			}
			var want []line
			for i := range c.rows {
				want = append(want, line{"id": fmt.Sprint(i), "name": fmt.Sprintf("%q", fmt.Sprint("n", i%7)),
					"day": time.Date(2020, 1, 1+i%c.days, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)})
			}
			same := func() {
				t.Helper()
				_, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(err)
				}
				inInputOrder(got)
				if d := differ(got, want, false); d != "" {
					t.Error(d)
				}
				healthy(t, dir)
			}
			indexes := func(ext string) int {
				l, err := filepath.Glob(filepath.Join(dir, c.places+ext))
				if err != nil {
					t.Fatal(err)
				}
				return len(l)
			}
			same()
			if indexes(".carbonindex") != c.single {
				t.Fatal(indexes(".carbonindex"))
			}
			// A damaged index file is no reason to throw it away.
			victim, _ := filepath.Glob(filepath.Join(dir, c.places+".carbonindex"))
			whole, err := os.ReadFile(victim[1])
			if err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
			os.WriteFile(victim[1], whole[:len(whole)/2], 0o666)
			if m, err := carbon.MergeIndexes(t.Context(), dir, nil); err == nil {
				t.Error("a damaged index was merged", m)
			}
			after, _ := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
			if string(before) != string(after) || indexes(".carbonindex") != c.single ||
				indexes(".carbonindexmerge") != 0 {
				t.Errorf("a refused merge left %d and %d index files, and %s", indexes(".carbonindex"),
					indexes(".carbonindexmerge"), after)
			}
			os.WriteFile(victim[1], whole, 0o666)

			m, err := carbon.MergeIndexes(t.Context(), dir, nil)
			if got := fmt.Sprint(m.Segments, m.Files); err != nil || got != c.summary {
				t.Errorf("%s, %v", got, err)
			}
			if indexes(".carbonindex") != 0 || indexes(".carbonindexmerge") != c.merged {
				t.Error(indexes(".carbonindex"), indexes(".carbonindexmerge"))
			}
			same()
			if m, err := carbon.MergeIndexes(t.Context(), dir, nil); err != nil || m.Files != 0 {
				t.Error("once more:", m, err)
			}
			if l, err := carbon.Clean(t.Context(), dir, true); err != nil ||
				slices.ContainsFunc(l.Files, func(f string) bool { return !strings.HasPrefix(f, "LockFiles/") }) {
				t.Error("left behind:", l.Files, err)
			}
			segments, err := filepath.Glob(filepath.Join(dir, "Metadata/segments/*"))
			if err != nil || len(segments) != len(m.Segments) {
				t.Error(segments, err)
			}
		})
	}
}

// TestMergeOldIndexes leaves segments of formats 1 and 2 as they are.
func TestMergeOldIndexes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := os.CopyFS(dir, os.DirFS("../../corpus/carbon/1.0.0/v1_complex")); err != nil {
		t.Fatal(err)
	}
	if m, err := carbon.MergeIndexes(t.Context(), dir, nil); err != nil || m.Files != 0 {
		t.Error(m, err)
	}
	if l, err := filepath.Glob(filepath.Join(dir, "Fact/Part0/*/*.carbonindexmerge")); err != nil || len(l) > 0 {
		t.Error(l, err)
	}
}
