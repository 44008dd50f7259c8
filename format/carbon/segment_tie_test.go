package carbon_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestCopiedOver: without index files, a data file of another segment in place of the segment's own is detected by min
// and max in the segment file, and in older tables as a likely copy of another file.
func TestCopiedOver(t *testing.T) {
	const code = "carbon.segment.minmax"
	for name, size := range map[string][2]string{"managed1": {"3838", "2446"}, "managed_alter": {"863", "1377"},
		"managed_del": {"1212", "1212"}} {
		tree := lacking(t, loaded(t, filepath.Join(golden2, "managed", name)), ".carbonindexmerge")
		tree.Put(dataOf(t, tree, "Segment_0"), tree.Bytes(dataOf(t, tree, "Segment_1")))
		// as if both files had the same size
		swap(t, tree, "tablestatus", `"dataSize":"`+size[0], `"dataSize":"`+size[1])
		refused(t, name, tree, code)
		if _, found, err := recovered(t, tree, "t"); err != nil || !has(found, code) ||
			!has(found, "carbon.file.twice") {
			t.Errorf("%s: %v, %v", name, err, found)
		}
	}
	tree := store.NewMemory(without(goldenFiles(t, "v2_b2000"), ".carbonindex"))
	const one = "t/Fact/Part0/Segment_0/part-0-0-0-1480000000000.carbondata"
	const two = "t/Fact/Part0/Segment_1/part-0-0-0-1480000000001.carbondata"
	tree.Put(two, tree.Bytes(one)) // the golden table has the first segment only, and a status of both
	found := only(verdict(t, tree), "carbon.file.twice")
	if len(found) != 1 || found[0].Severity != region.Warning || found[0].At.Object != two ||
		!strings.Contains(found[0].Message, one) {
		t.Errorf("format 2: %v", found)
	}
	if _, found, err := recovered(t, tree, "t"); err != nil || !has(found, "carbon.file.twice") {
		t.Errorf("format 2, recovered: %v, %v", err, found)
	}
}

// dataOf returns the data file of a segment.
func dataOf(t *testing.T, tree *store.Memory, segment string) string {
	t.Helper()
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbondata") && path.Base(path.Dir(n)) == segment {
			return n
		}
	}
	t.Fatal("no data file of " + segment)
	return ""
}

// TestHealthyWithoutIndex: tables of CarbonData that lost only their index files are read completely, and no file is
// reported as that of another segment.
func TestHealthyWithoutIndex(t *testing.T) {
	dirs := map[string]string{}
	for _, n := range []string{"managed1", "managed_alter", "managed_bucket", "managed_compact", "managed_complex",
		"managed_del", "managed_gsort", "managed_part"} {
		dirs[n] = filepath.Join(golden2, "managed", n)
	}
	if corpus := os.Getenv("STOA_CORPUS"); corpus != "" {
		for _, n := range []string{"v1/basic/default/old_basic_v1", "v2/basic/default/old_basic_v2",
			"v2/basic_b2000/default/old_basic_v2", "v1/complex/default/old_complex_v1"} {
			dirs[n] = filepath.Join(corpus, "carbon", n)
		}
	}
	for n, dir := range dirs {
		whole := loaded(t, dir)
		_, right, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
		if err != nil || len(right) == 0 {
			t.Fatal(n, len(right), err)
		}
		tree := lacking(t, whole, ".carbonindex")
		_, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if d := differ(rows, right, true); err != nil || d != "" {
			t.Errorf("%s: %v, %s", n, err, d)
		}
		if found := verdict(t, tree); len(errorsIn(found)) > 0 || has(found, "carbon.file.twice") ||
			!has(found, "carbon.index.missing") {
			t.Errorf("%s: %v", n, found)
		}
	}
}
