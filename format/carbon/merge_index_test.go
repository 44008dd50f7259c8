package carbon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
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
			// A damaged index file must not be removed.
			victim, _ := filepath.Glob(filepath.Join(dir, c.places+".carbonindex"))
			whole, err := os.ReadFile(victim[1])
			if err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
			os.WriteFile(victim[1], whole[:len(whole)/2], 0o666)
			if m, err := carbon.MergeIndexes(t.Context(), dir, nil); err == nil {
				t.Errorf("a damaged index: got merged %v, want an error", m)
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
				t.Error("merged again:", m, err)
			}
			if l, err := carbon.Clean(t.Context(), dir, true); err != nil ||
				slices.ContainsFunc(l.Files, func(f string) bool { return !strings.HasPrefix(f, "LockFiles/") }) {
				t.Error("leftovers:", l.Files, err)
			}
			segments, err := filepath.Glob(filepath.Join(dir, "Metadata/segments/*"))
			if err != nil || len(segments) != len(m.Segments) {
				t.Error(segments, err)
			}
		})
	}
}

// TestRefusedMergeLeavesNothing: whichever index file of any directory and segment is damaged, merging is refused, and
// no file changes.
func TestRefusedMergeLeavesNothing(t *testing.T) {
	for table, n := range map[string]int{"parts": 12, "plain": 6} {
		t.Run(table, func(t *testing.T) { refusedMerges(t, table, n) })
	}
}

// refusedMerges damages the n index files of a table in turn.
func refusedMerges(t *testing.T, table string, n int) {
	whole := "testdata/single_index/" + table
	victims, err := indexesOf(whole)
	if err != nil || len(victims) != n {
		t.Fatal(victims, err)
	}
	for _, v := range victims {
		name, err := filepath.Rel(whole, v)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "t")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b[:len(b)/2], 0o666); err != nil {
			t.Fatal(err)
		}
		before := bytesBelow(t, dir)
		if m, err := carbon.MergeIndexes(t.Context(), dir, nil); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s damaged: got merged %v, %v, want an error", name, m, err)
		}
		after := bytesBelow(t, dir)
		for n := range after {
			if _, ok := before[n]; !ok {
				t.Errorf("%s damaged: the refused merge left %s", name, n)
			}
		}
		for n, b := range before {
			if after[n] != b {
				t.Errorf("%s damaged: the refused merge changed %s", name, n)
			}
		}
	}
}

// TestAbandonedMergeLeavesNothing: if one of a segment's directories has an index file of an older version, which
// cannot be merged, the segment remains unchanged, including the directories processed before.
func TestAbandonedMergeLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	if err := os.CopyFS(dir, os.DirFS("testdata/single_index/parts")); err != nil {
		t.Fatal(err)
	}
	l, err := indexesOf(dir)
	if err != nil || len(l) != 12 {
		t.Fatal(l, err)
	}
	last := l[len(l)-1]
	b, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	// the header's first field is the version, in Thrift's compact protocol
	if b[0] != 0x15 || b[1] != 2*3 {
		t.Fatalf("no version 3: %x", b[:2])
	}
	b[1] = 2 * 2
	if err := os.WriteFile(last, b, 0o666); err != nil {
		t.Fatal(err)
	}
	before := bytesBelow(t, dir)
	if m, err := carbon.MergeIndexes(t.Context(), dir, nil); err != nil || m.Files != 0 {
		t.Error(m, err)
	}
	if after := bytesBelow(t, dir); !maps.Equal(before, after) {
		t.Errorf("got files %v, want %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// bytesBelow returns the files below dir except locks, which remain after changes.
func bytesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		b, err := os.ReadFile(name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
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

// indexesOf returns the single index files of a table.
func indexesOf(dir string) (out []string, err error) {
	for _, at := range []string{"day=*", "Fact/Part0/*"} {
		l, err := filepath.Glob(filepath.Join(dir, at, "*.carbonindex"))
		if err != nil {
			return nil, err
		}
		out = append(out, l...)
	}
	return out, nil
}
