package carbon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
