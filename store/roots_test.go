package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store"
)

// walked returns all files below dir, as NAME=CONTENT.
func walked(t *testing.T, tree store.Tree, dir string) (out []string) {
	t.Helper()
	for info, err := range tree.List(context.Background(), dir) {
		if err != nil {
			t.Fatal(err)
		}
		if st, err := tree.Stat(context.Background(), info.Name); err != nil || st.Dir != info.Dir ||
			st.Name != info.Name {
			t.Fatalf("%s: %+v, %v", info.Name, st, err)
		}
		if info.Dir {
			out = append(out, walked(t, tree, info.Name)...)
			continue
		}
		src, err := tree.Open(context.Background(), info.Name)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, src.Size())
		if _, err := src.ReadAt(context.Background(), b, 0); err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name+"="+string(b))
		src.Close()
	}
	return out
}

// TestRoots: the roots that a file lists are children of @FILE, under their names; other names are unaffected.
func TestRoots(t *testing.T) {
	files := map[string][]byte{
		"lists/r":      []byte("# the disks\n\n/disk1\r\nhere/data\n../disk2\n"),
		"/disk1/a/b":   []byte("1"),
		"disk2/c":      []byte("2"),
		"disk10/no":    []byte("none of it"),
		"lists/here/x": []byte("beside"), "lists/here/data/y": []byte("3"),
		"@odd": []byte("itself"),
	}
	tree := store.Roots(store.NewMemory(files))
	if store.Roots(tree) != tree {
		t.Error("Roots wraps a tree that it has wrapped before")
	}
	got := strings.Join(walked(t, tree, "@lists/r"), " ")
	if want := "@lists/r/disk1/a/b=1 @lists/r/lists/here/data/y=3 @lists/r/disk2/c=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := strings.Join(walked(t, tree, "@lists/r/disk1/"), " "); got != "@lists/r/disk1/a/b=1" {
		t.Error(got)
	}
	if name := store.Below(store.NewCounter(tree), "@lists/r/disk1/a"); name != "/disk1/a" {
		t.Error(name)
	}
	if names, err := store.RootsOf(context.Background(), store.NewCounter(tree), "@lists/r"); err != nil ||
		strings.Join(names, " ") != "/disk1 lists/here/data disk2" {
		t.Error(names, err)
	}
	for _, name := range []string{"@lists/r/nothing", "@lists/r/disk10/no", "@lists/none", "@"} {
		if _, err := tree.Stat(context.Background(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := tree.Stat(context.Background(), "@odd"); err != nil || info.Dir {
		t.Error(info, err)
	}
}

// TestRootsRefused: a file that is not a list of roots, a list in which something would appear twice, and one with a
// missing root are refused.
func TestRootsRefused(t *testing.T) {
	for list, want := range map[string]string{
		"":                "names no place",
		"# nothing\n":     "names no place",
		"/a\n/a/\n":       "twice",
		"/a\n/b\n/a/b/c/": "lies in the other",
		"/\n/a":           "lies in the other",
		"\x00\x01\x02":    "no list of places",
		"/a\n/missing":    "missing",
		"/x/a\nx/a":       "told apart",
	} {
		tree := store.Roots(store.NewMemory(map[string][]byte{"r": []byte(list), "/a/f": {1}, "/b/f": {1}}))
		var err error
		for _, e := range tree.List(context.Background(), "@r") {
			err = errors.Join(err, e)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", list, err, want)
		}
	}
}

// TestRootsLocal: in the local file system relative names are relative to the list's directory.
func TestRootsLocal(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string]string{"one/a": "1", "two/b": "2", "list": "one\n" + filepath.Join(dir, "two")} {
		name = filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(b), 0o666))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("gone", filepath.Join(dir, "one", "link")); err != nil {
		t.Fatal(err)
	}
	tree := store.Roots(store.Local{})
	at := "@" + filepath.Join(dir, "list") + dir
	want := at + "/one/a=1 " + at + "/two/b=2"
	if got := strings.Join(walked(t, tree, "@"+filepath.Join(dir, "list")), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	n := 0
	for odd := range store.IrregularIn(context.Background(), tree, at+"/one") {
		if n++; odd.Name != at+"/one/link" {
			t.Error(odd)
		}
	}
	if n != 1 {
		t.Errorf("%d irregular entries, want 1", n)
	}
}
