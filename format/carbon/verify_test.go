package carbon_test

import (
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestVerifyCorpus: verify has no findings in the corpus's tables, none of which is damaged.
func TestVerifyCorpus(t *testing.T) {
	dir := corpusDir(t)
	ran := 0
	for _, e := range manifest(t, dir) {
		ran++
		t.Run(e.Table, func(t *testing.T) {
			for _, f := range findings(t, store.Local{}, filepath.Join(dir, e.Path)) {
				t.Errorf("%s %v %s: %s", f.Code, f.At, f.Path, f.Message)
			}
		})
	}
	if ran != 40 {
		t.Errorf("got %d tables, want 40", ran)
	}
}

// findings returns the findings of verify without notes.
func findings(t testing.TB, tree store.Tree, name string) (out []region.Finding) {
	t.Helper()
	for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: name}, format.OpenOptions{}) {
		if f.Severity > region.Note {
			out = append(out, f)
		}
	}
	return out
}
