package kudugen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestWalk: Walk finds the blocks of every CFile of the corpus, and its facts are those that Kudu lists.
func TestWalk(t *testing.T) {
	dir := corpus(t)
	var entries []struct {
		File, Kind string
		CFile      map[string]string
		Checksums  bool
		Btree      map[string]struct{ Levels int }
		Nullable   bool
	}
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &entries); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		l, err := Walk(b)
		if err != nil {
			t.Errorf("%s: %v", e.File, err)
			continue
		}
		n, _ := strconv.ParseInt(e.CFile["num-values"], 10, 64)
		if l.Values != n || l.Checksums != e.Checksums || strconv.FormatBool(l.Nullable) != e.CFile["nullable"] ||
			l.Levels["posidx"] != e.Btree["pos"].Levels || l.Levels["validx"] != e.Btree["val"].Levels {
			t.Errorf("%s: %+v", e.File, l)
		}
		for _, x := range l.Blocks {
			kinds[x.Kind]++
			if l.Owner(x.Off).Off != x.Off || l.Owner(x.Off+x.Len-1).Off != x.Off {
				t.Errorf("%s: owner of %+v", e.File, x)
			}
		}
	}
	t.Log(len(entries), "files", kinds)
}
