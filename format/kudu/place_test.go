package kudu_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// A cluster on several disks, named by a list of roots: WAL and metadata on one, data on another, the master deep below
// a third. Each table is found once, with all its data, even if a disk was copied.
func TestCorpusRoots(t *testing.T) {
	dir := corpus(t)
	server, _, tablets := archive(t, "fs_file")
	files := map[string][]byte{}
	for name, b := range server {
		switch {
		case strings.HasPrefix(name, "tserver/data/"):
			files["/disk2/old/lost+found/x/"+strings.TrimPrefix(name, "tserver/")] = b
		case strings.HasPrefix(name, "tserver/"):
			files["/disk1/"+strings.TrimPrefix(name, "tserver/")] = b
		default: // the master
			files["/disk3/a/b/c/d/e/f/g/"+name] = b
		}
	}
	want := expected(t, dir, "d_wal", "final")
	read := func(list string, files map[string][]byte) {
		t.Helper()
		files["roots"] = []byte(list)
		rows, lost, err := readAll(t, store.NewMemory(files), "@roots#d_wal", nil, stoa.ScanSpec{})
		if err != nil || len(lost) > 0 {
			t.Fatal(err, lost)
		}
		compare(t, rows, want)
	}
	read("/disk1\n/disk2\n/disk3\n", files)
	// one disk is not in the list
	files["roots"] = []byte("/disk1\n/disk3\n")
	if _, _, err := readAll(t, store.NewMemory(files), "@roots#d_wal", nil, stoa.ScanSpec{}); err == nil {
		t.Error("read without its blocks")
	}
	// copies of both disks, under names that sort before and after; a block is damaged in each
	twice := maps.Clone(files)
	for name, b := range files {
		if rest, ok := strings.CutPrefix(name, "/disk1/"); ok {
			twice["/disk0/"+rest] = b
		} else if rest, ok := strings.CutPrefix(name, "/disk2/"); ok {
			twice["/mnt/backup/"+rest] = b
		}
	}
	read("/disk0\n/disk1\n/disk2\n/disk3\n/mnt/backup\n", twice)
	var names []string
	for e, err := range stoa.List(context.Background(), "@roots", stoa.OpenOptions{Tree: store.NewMemory(twice)}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Table)
		for _, x := range e.Findings {
			if x.Severity >= region.Error {
				t.Errorf("%s: %+v", e.Table, x)
			}
		}
	}
	if slices.Sort(names); len(names) != len(tablets) || len(slices.Compact(names)) != len(tablets) {
		t.Errorf("%d tables, want %d: %v", len(names), len(tablets), names)
	}
}
