package carbon_test

import (
	"path/filepath"
	"testing"

	"stoa/store"
)

// golden2 is the part of the corpus that is always tested.
const golden2 = "../../corpus/carbon/2.3.0"

func TestGolden(t *testing.T) {
	t.Run("files", func(t *testing.T) { runV3(t, golden2, 13) })
	t.Run("tables", func(t *testing.T) { runManaged(t, golden2, 8) })
	t.Run("coverage", func(t *testing.T) {
		if n := coverage(t, golden2); n < 45 {
			t.Errorf("got %d files described", n)
		}
	})
	t.Run("verify", func(t *testing.T) {
		for _, e := range manifest(t, golden2) {
			for _, f := range findings(t, store.Local{}, filepath.Join(golden2, e.Path)) {
				t.Errorf("%s %v %s: %s", f.Code, f.At, f.Path, f.Message)
			}
		}
	})
}
