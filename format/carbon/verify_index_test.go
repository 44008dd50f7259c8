package carbon_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestVerifyIndexAndCounts changes the numbers of rows, offsets and bounds in an index file and a footer of a real
// table, one at a time: verify compares them with the data and reports the difference.
func TestVerifyIndexAndCounts(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "v3/allprim_zstd/table"))
	if s := verdict(t, tree); len(errorsIn(s)) > 0 {
		t.Fatal(s)
	}
	tried := map[string]int{}
	for _, file := range tree.Names() {
		index := strings.HasSuffix(file, ".carbonindex") || strings.HasSuffix(file, ".carbonindexmerge")
		if !index && !strings.HasSuffix(file, ".carbondata") {
			continue
		}
		whole := tree.Bytes(file)
		var under []string
		for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: file},
			format.DescribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			under = append(under[:min(n.Depth, len(under))], n.Name)
			what := n.Name
			if k := len(under) - 2; k >= 0 && strings.HasSuffix(under[k], "_values") {
				what = under[k]
			}
			counts := []string{"num_rows", "number_of_rows_in_blocklet", "row_count"}
			if index {
				counts = append(counts, "min_values", "max_values", "offset")
			}
			if !slices.Contains(counts, what) || n.Kind != region.Data || n.At.Len < 1 ||
				!slices.Contains(under, "FileFooter3") && !index {
				continue
			}
			b := bytes.Clone(whole)
			b[n.At.End()-1] ^= 2 // the highest digit of a zigzag varint, or the last byte of a text
			files := map[string][]byte{}
			for _, name := range tree.Names() {
				files[name] = tree.Bytes(name)
			}
			files[file] = b
			tried[what]++
			if len(errorsIn(verdict(t, store.NewMemory(files)))) == 0 {
				t.Errorf("%s: %s at %d: verify: got no findings, want some", filepath.Ext(file),
					strings.Join(under, "/"), n.At.Off)
			}
		}
	}
	t.Log(tried)
	for _, what := range []string{"num_rows", "min_values", "max_values", "offset"} {
		if tried[what] == 0 {
			t.Errorf("got no %s tried: %v", what, tried)
		}
	}
}

func errorsIn(found []region.Finding) (out []region.Finding) {
	for _, f := range found {
		if f.Severity == region.Error {
			out = append(out, f)
		}
	}
	return out
}
