package delta

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"stoa/format"
	"stoa/store"
)

// TestRefersToAll: every file that a line of the log adds or removes is part of some version, and so it is with the
// checkpoints alone, after a writer has cleaned up the log before them. What nothing names is left.
func TestRefersToAll(t *testing.T) {
	logs, _ := filepath.Glob("testdata/*/_delta_log")
	checkpoints, removed := 0, 0
	for _, log := range logs {
		dir := filepath.Join(t.TempDir(), "t")
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(log))); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		versions, _ := filepath.Glob(dir + "/_delta_log/*.json")
		for _, v := range versions {
			b, err := os.ReadFile(v)
			if err != nil {
				t.Fatal(err)
			}
			for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
				var a struct{ Add, Remove struct{ Path string } }
				if err := json.Unmarshal(s.Bytes(), &a); err != nil {
					t.Fatal(err)
				}
				if a.Remove.Path != "" {
					removed++
				}
				for _, p := range []string{a.Add.Path, a.Remove.Path} {
					if plain, err := url.PathUnescape(p); err == nil && p != "" {
						names[path.Base(plain)] = true
					}
				}
			}
		}
		refersToAll(t, dir, names)
		newest := ""
		found, _ := filepath.Glob(dir + "/_delta_log/*.checkpoint.*")
		if len(found) > 0 {
			newest = filepath.Base(slices.Max(found))
		}
		n, _ := strconv.Atoi(newest[:min(len(newest), 20)])
		for _, v := range versions {
			if k, err := strconv.Atoi(filepath.Base(v)[:20]); err == nil && newest != "" && k <= n &&
				len(filepath.Base(v)) == 25 {
				if err := os.Remove(v); err != nil {
					t.Fatal(err)
				}
				checkpoints++
			}
		}
		refersToAll(t, dir, names)
	}
	if checkpoints == 0 || removed == 0 {
		t.Errorf("%d versions before checkpoints, %d files removed: the test shows little", checkpoints, removed)
	}
}

func refersToAll(t *testing.T, dir string, names map[string]bool) {
	t.Helper()
	left := map[string][]store.Info{"none.parquet": nil}
	for n := range names {
		left[n] = nil
	}
	err := refers(t.Context(), format.Target{Tree: store.Local{}, Name: dir}, format.OpenOptions{}, left)
	if err != nil {
		t.Errorf("%s: %v", dir, err)
	}
	if _, ok := left["none.parquet"]; !ok || len(left) != 1 {
		t.Errorf("%s: of %d names, these are left: %v", dir, len(names), left)
	}
}
