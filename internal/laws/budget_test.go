package laws_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// corpusFiles returns the files below a directory of the corpus with one of these endings.
func corpusFiles(t *testing.T, dir string, endings ...string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		for _, e := range endings {
			if err == nil && !d.IsDir() && strings.HasSuffix(p, e) {
				out = append(out, p)
			}
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(out), err)
	}
	return out
}

// TestBudgetIsNoDamage: a budget that is too small for a file adds no error findings to those of a larger one. Verify
// then ends with an error of class Limit, unless the budget suffices.
func TestBudgetIsNoDamage(t *testing.T) {
	limited := 0
	names := append(corpusFiles(t, "corpus/trevni", ".trv"), corpusFiles(t, "corpus/redfile", ".red")...)
	for i, name := range corpusFiles(t, "corpus/kudu", ".cfile") {
		if i%7 == 0 || strings.Contains(name, "synthetic") {
			names = append(names, name)
		}
	}
	names = append(names, "format/kudu/testdata/file", "format/kudu/testdata/log")
	for i, name := range names {
		for k, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
			if testing.Short() && i%3 != k && strings.HasPrefix(name, "corpus/") { // one depth of each, in turn
				continue
			}
			reported := map[string]bool{}
			for f, err := range stoa.Verify(t.Context(), name, stoa.OpenOptions{Depth: depth, Tree: store.Local{}}) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				reported[f.Code] = true
			}
			for _, l := range []format.Limits{{Page: 1}, {Page: 64}, {Page: 4096}, {Metadata: 64}, {Fields: 1}} {
				for f, err := range stoa.Verify(t.Context(), name,
					stoa.OpenOptions{Depth: depth, Tree: store.Local{}, Limits: l}) {
					switch {
					case err != nil && !errors.Is(err, fault.Limit):
						t.Errorf("%s, %v, %+v: %v", name, depth, l, err)
					case err != nil:
						limited++
					case f.Severity == region.Error && !reported[f.Code]:
						t.Errorf("%s, %v, %+v: %+v", name, depth, l, f)
					}
				}
			}
		}
	}
	if limited < 100 {
		t.Errorf("only %d budgets were too small, expected 100 or more", limited)
	}
}
