package kudu

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format/kudu/internal/fs"
	"stoa/region"
	"stoa/store"
)

// TestCopiesKeepTheirOwn: a server's directories are joined by its UUID, but two copies are not mixed.
func TestCopiesKeepTheirOwn(t *testing.T) {
	files := map[string][]byte{}
	for name, b := range loadTree(t, "testdata/log", "") {
		rest, data := strings.CutPrefix(name, "data/")
		for _, at := range []string{"a", "b"} {
			if data { // b's data sorts before a's metadata, and is far from it
				files["x/"+at+"/disk/"+rest] = b
			} else {
				files["x/"+at+"/meta/deep/"+strings.TrimPrefix(name, "wal/")] = b
			}
		}
	}
	ls, err := fs.FindServers(context.Background(), store.NewMemory(files), "x", fs.FSOptions{})
	want := []fs.Layout{{MetaDir: "x/a/meta/deep", DataDirs: []string{"x/a/disk"}},
		{MetaDir: "x/b/meta/deep", DataDirs: []string{"x/b/disk"}}}
	if err != nil || dump(ls) != dump(want) {
		t.Errorf("%s, %v", dump(ls), err)
	}
}

// TestStrayInstance: a file block_manager_instance in a directory without blocks does not hide the data directories,
// whatever its content.
func TestStrayInstance(t *testing.T) {
	whole := loadTree(t, "testdata/log", "srv")
	own := whole["srv/data/data/block_manager_instance"]
	if own == nil {
		t.Fatal("no instance")
	}
	for _, at := range []string{"srv", "srv/data", "srv/wal", "srv/other"} {
		for what, b := range map[string][]byte{"empty": {}, "a copy": own, "noise": []byte("something else")} {
			files := maps.Clone(whole)
			name := at + "/block_manager_instance"
			files[name] = b
			f := openOne(t, store.NewMemory(files), "")
			n := 0
			for range f.AllBlocks(context.Background()) {
				n++
			}
			strays := slices.IndexFunc(f.Findings,
				func(x region.Finding) bool { return x.Code == "kudu.datadir.stray" && x.At.Object == name })
			if len(mustTablets(t, f)) != 4 || n != 14 || codesIn(f) != "kudu.datadir.stray" || strays < 0 {
				t.Errorf("%s, %s: %d blocks, %s", name, what, n, codesIn(f))
			}
		}
	}
	// alone: a new data directory without blocks
	ls, err := fs.FindServers(context.Background(),
		store.NewMemory(map[string][]byte{filepath.Join("d", "block_manager_instance"): own}), "d", fs.FSOptions{})
	if err != nil || len(ls) != 1 || dump(ls[0].DataDirs) != dump([]string{"d"}) {
		t.Errorf("%s, %v", dump(ls), err)
	}
}
