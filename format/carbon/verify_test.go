package carbon_test

import (
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestVerifyFindsNothing: no table of the corpus is damaged, so verify has nothing to say of any.
func TestVerifyFindsNothing(t *testing.T) {
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
		t.Errorf("%d tables ran, the manifest has 40", ran)
	}
}

// findings are what verify says, without notes.
func findings(t testing.TB, tree store.Tree, name string) (out []region.Finding) {
	t.Helper()
	for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: name}, format.OpenOptions{}) {
		if f.Severity > region.Note {
			out = append(out, f)
		}
	}
	return out
}
