package carbon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
)

// filesBelow returns the binary files below dir that CarbonData wrote.
func filesBelow(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, ext := range []string{".carbondata", ".carbonindex", ".carbonindexmerge", ".dict", ".dictmeta",
			".sortindex"} {
			if strings.HasSuffix(p, ext) {
				out = append(out, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCoverage: in every file of the corpus the described regions partition all the bytes.
func TestCoverage(t *testing.T) {
	dir := corpusDir(t)
	n := coverage(t, dir)
	t.Logf("%d files", n)
	if n < 150 {
		t.Errorf("got %d files described", n)
	}
}

func coverage(t *testing.T, dir string) (ran int) {
	for _, name := range filesBelow(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		var nodes []region.Node
		for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: store.Local{}, Name: name},
			format.DescribeOptions{Pages: true}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if n.Kind == region.Gap {
				t.Errorf("%s: got a gap at %v, want none", name, n.At)
			}
			nodes = append(nodes, n)
		}
		formattest.Partition(t, nodes, name, info.Size())
		ran++
	}
	return ran
}

// TestDescribeMetadata: each file of a table is described by its name alone, to its last byte.
func TestDescribeMetadata(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 60}, [2]int{60, 90})
	if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 3")); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		kinds[filepath.Ext(name)]++
		first, end := true, int64(0)
		for n, err := range stoa.Describe(t.Context(), name, stoa.DescribeOptions{}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			first, end = false, max(end, n.At.Off+n.At.Len)
		}
		if first || end != info.Size() {
			t.Errorf("%s: described to byte %d of %d", name, end, info.Size())
		}
		return nil
	})
	if err != nil || kinds[".deletedelta"] == 0 || kinds[".segment"] != 2 || kinds[".lock"] == 0 || kinds[""] < 3 {
		t.Errorf("files %v, %v", kinds, err)
	}
}
