package kudu_test

import (
	"path"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/store"
)

// blockFiles are the names of a directory's block files.
func blockFiles(files map[string][]byte) (out []string) {
	for name := range files {
		if strings.Contains(name, "/data/") && len(path.Base(name)) == 16 {
			out = append(out, name)
		}
	}
	return out
}

// Every block is verified and described as if it were of every kind: a delta file as a bloom file, a column of numbers as a delta file.
// What cannot be of the kind is told.
func TestBlocksAsEveryKind(t *testing.T) {
	files := load(t, "testdata/history")
	tree := store.NewMemory(files)
	f, tablets := layout(t, tree)
	kinds := map[string]string{"redo": "delta", "undo": "delta", "bloom": "bloom", "adhoc-index": "index"}
	tried := 0
	for kind, places := range blocksOf(t, f, tablets, "d_major") {
		for _, at := range places {
			for _, as := range []string{"column", "delta", "bloom", "index"} {
				own := as == kinds[kind] || as == "column" && kinds[kind] == ""
				tg := format.Target{Tree: tree, Name: at.Object}
				opts := map[string]string{"kind": as}
				errs := 0
				for x := range cfile.Format.Verify(t.Context(), tg, format.OpenOptions{Opts: opts, Depth: format.Deep}) {
					if x.Severity >= region.Error {
						errs++
					}
				}
				if own && errs > 0 || !own && errs == 0 && as != "column" && kinds[kind] == "" {
					t.Errorf("%s of %s as %s: %d errors", at.Object, kind, as, errs)
				}
				for _, err := range cfile.Format.Describe(t.Context(), tg, format.DescribeOptions{OpenOptions: format.OpenOptions{Opts: opts}}) {
					if e, ok := err.(*fault.Error); ok && e.Class == fault.Bug {
						t.Errorf("%s of %s as %s: %v", at.Object, kind, as, err)
					}
				}
				tried++
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d attempts", tried)
	}
}
