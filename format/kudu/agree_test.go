package kudu_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// blockFile is the name of a block of the file block manager in files.
func blockFile(t testing.TB, files map[string][]byte, id string) string {
	t.Helper()
	for n := range files {
		if strings.HasSuffix(n, "/00"+id) {
			return n
		}
	}
	t.Fatalf("there is no block %s", id)
	return ""
}

// reportedAt are the errors that reading a table at a time mentions.
func reportedAt(t testing.TB, tree store.Tree, place, at string) (out string) {
	t.Helper()
	tb, err := stoa.Open(context.Background(), place,
		stoa.OpenOptions{Tree: tree, Opts: map[string]string{"at": at, "wal": "false", "partial": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	rowsOf(t, tb, stoa.ScanSpec{Damaged: stoa.SkipRows})
	for _, f := range tb.Findings() {
		if f.Severity >= region.Error {
			out += f.Code + ": " + f.Message + "\n"
		}
	}
	return out
}

// Each delta file of d_major in the place of autoinc's only UNDO file is shown by its number of deletions, its
// rows, or its columns; but one, which has updates of autoinc's columns and rows only: with it the insertions
// are gone, and that is reported.
func TestForeignDelta(t *testing.T) {
	files, other := load(t, "testdata/file"), load(t, "testdata/history")
	_, tablets := layout(t, store.NewMemory(files))
	_, others := layout(t, store.NewMemory(other))
	undo := blockFile(t, files, fmt.Sprint(tablets[0].RowSets[0].Undo[0].ID))
	if s := reportedAt(t, store.NewMemory(files), "", "1"); s != "" {
		t.Errorf("whole: %s", s)
	}
	n := 0
	var unknown []uint64
	for _, tb := range others {
		for _, set := range tb.RowSets {
			for _, b := range slices.Concat(set.Redo, set.Undo) {
				tree := with(files, undo, other[blockFile(t, other, fmt.Sprint(b.ID))])
				reported := reportedAt(t, tree, "", "1")
				if reported == "" {
					t.Errorf("block %d: nothing is told", b.ID)
				}
				bad, _ := findings(t, tree, "", "")
				damaged := slices.ContainsFunc(bad,
					func(x region.Finding) bool { return x.Code == "kudu.delta.damaged" })
				if damaged != strings.Contains(reported, "kudu.delta.damaged") {
					t.Errorf("block %d: %q, and verify: %+v", b.ID, reported, bad)
				}
				if !damaged {
					unknown = append(unknown, b.ID)
				}
				n++
			}
		}
	}
	if n < 3 || !slices.Equal(unknown, []uint64{72791677272240}) {
		t.Errorf("%d delta files, of which %v are not known for another's", n, unknown)
	}
}

// An UNDO file that is another rowset's, whole in itself, is reported when a snapshot asks for it. What nothing in
// the file says is not here: an UNDO file that has fewer rows than its rowset, and only insertions.
func TestForeignUndo(t *testing.T) {
	files := kudu.Unpack(t, filepath.Join(corpus(t), "fs_file", "full_with_wal.tar.zst"))
	for _, x := range []struct {
		table, undo, other, why string // other's bytes in the place of undo
	}{
		{"d_raw", "72791677272270", "72791677272020", "undo 6000 insertions"}, // of ck, 6,000 rows
		{"d_wal", "72791677272225", "72791677272205", "but the rowset has"},   // a REDO file of d_raw
		{"d_wal", "72791677272225", "72791677272211", "but the rowset has"},   // a REDO file of its own table
	} {
		name := blockFile(t, files, x.undo)
		tree := with(files, name, bytes.Clone(files[blockFile(t, files, x.other)]))
		if s := reportedAt(t, store.NewMemory(files), "tserver#"+x.table, moments["p2"]); s != "" {
			t.Errorf("%s, whole: %s", x.table, s)
		}
		if s := reportedAt(t, tree, "tserver#"+x.table, moments["p2"]); !strings.Contains(s, "kudu.delta.damaged") ||
			!strings.Contains(s, x.why) {
			t.Errorf("%+v: %q", x, s)
		}
	}
}

// Each other block in the place of the only REDO file costs the rows of its rowset, whatever its own statistics
// say that it changes: what the right file changes, nobody knows then. Of delta files of as many rows or less
// only the number of live rows says that one is not the right one, and costs them, too.
func TestForeignRedo(t *testing.T) {
	files := load(t, "testdata/history")
	want := slices.Sorted(maps.Keys(lineSet(expectedLines(t, "testdata", "d_major", "final"))))
	fs, tablets := layout(t, store.NewMemory(files))
	var redo string
	deltas := map[string]bool{}
	for kind, places := range blocksOf(t, fs, tablets, "d_major") {
		for _, at := range places {
			if deltas[at.Object] = kind == "redo" || kind == "undo"; kind == "redo" {
				redo = at.Object
			}
		}
	}
	others, live := 0, 0
	for _, name := range blockFiles(files) {
		if name == redo {
			continue
		}
		tree := with(files, redo, files[name])
		for _, again := range []bool{false, true} {
			got, err := recovered(t, tree, again, stoa.ScanSpec{Damaged: stoa.SkipRows})
			if err != nil {
				t.Errorf("%s, recover %t: %v", name, again, err)
				continue
			}
			others++
			wrong, told := len(missingOf(want, got.lines())), codes(got.findings, region.Error)
			if deltas[name] && strings.Contains(told, "kudu.rowset.live") {
				live++
			}
			if wrong != 0 || len(got.lost) == 0 {
				t.Errorf("%s, recover %t: %d rows are wrong, %d losses, %q", name, again, wrong, len(got.lost), told)
			}
		}
	}
	if others != 60 || live != 8 {
		t.Errorf("%d attempts, of %d only the number of live rows tells", others, live)
	}
}
