package kudu_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
)

// otherServer returns the files of a place with a second server, below root, that is like its tablet server.
func otherServer(t *testing.T, files map[string][]byte, f *kudu.FS, root string) map[string][]byte {
	t.Helper()
	out := maps.Clone(files)
	n := 0
	for name, b := range files {
		rest, ok := strings.CutPrefix(name, "tserver/")
		if !ok {
			continue
		}
		if strings.HasSuffix(name, "/instance") {
			b = kudu.Renamed(b, map[string]string{f.UUID: strings.Repeat("7", 32)})
			n++
		}
		out[root+"/"+rest] = b
	}
	if n == 0 {
		t.Fatal("no instance file")
	}
	return out
}

// TestCorpusUnlikeReplicas: two servers have a tablet with the same last operation, all of it flushed, and one lacks
// rows. That is told, whichever server comes first; the one with more rows is read. If one is not in the tablet's Raft
// configuration, the other is read, and its rows are right.
func TestCorpusUnlikeReplicas(t *testing.T) {
	whole, f, tablets := archive(t, "fs_file")
	tb := tablets["d_raw"]
	want := expected(t, corpus(t), "d_raw", "final")
	fewer := *tb
	fewer.RowSets = fewer.RowSets[1:]
	less := pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", fewer.Append(nil))
	for _, root := range []string{"a", "z"} {
		both := otherServer(t, whole, f, root)
		there := root + "/" + strings.TrimPrefix(tb.Object, "tserver/")
		read := func(files map[string][]byte) (scanned, *store.Memory) {
			tree := store.NewMemory(files)
			got, err := scan(t, tree, "#d_raw", nil, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			return got, tree
		}
		for _, object := range []string{tb.Object, there} {
			files := maps.Clone(both)
			files[object] = less
			maps.DeleteFunc(files, func(name string, _ []byte) bool {
				return strings.HasSuffix(name, "/consensus-meta/"+tb.ID)
			})
			got, tree := read(files)
			bad, _ := findings(t, tree, "", "d_raw")
			if !reported(got.findings, "kudu.replica.differs", "") || !reported(bad, "kudu.replica.differs", "") {
				t.Errorf("%s: not told: %+v, %+v", object, got.findings, bad)
			}
			if !slices.Equal(got.lines(), want) {
				t.Errorf("%s: %d rows, want %d", object, len(got.cells), len(want))
			}
		}
		files := maps.Clone(both)
		files[there] = less
		got, _ := read(files)
		if !slices.Equal(got.lines(), want) || codes(got.findings, region.Error) != "" {
			t.Errorf("%s is a stranger with fewer rows: %d rows, %+v", root, len(got.cells), got.findings)
		}
		files = maps.Clone(both)
		files[tb.Object] = less
		if got, _ := read(files); len(got.cells) == 0 || len(got.cells) >= len(want) {
			t.Errorf("%s is a stranger with more rows: %d rows, want fewer than %d", root, len(got.cells), len(want))
		}
		if got, _ := read(both); !slices.Equal(got.lines(), want) || codes(got.findings, region.Error) != "" {
			t.Errorf("%s: %d rows, %+v", root, len(got.cells), got.findings)
		}
	}
}

// TestCorpusEvictedReplicas: a replica that is read because it has later operations than the others, and whose server
// was evicted from the tablet, is told by reading and by verify; one that has none is told by neither.
func TestCorpusEvictedReplicas(t *testing.T) {
	whole, f, tablets := archive(t, "fs_file")
	tb := tablets["d_wal"]
	log := "tserver/wal/wals/" + tb.ID + "/wal-000000001"
	for _, root := range []string{"a", "z"} {
		both := otherServer(t, whole, f, root)
		for _, x := range []struct {
			log  string // the one that ends earlier
			told bool
		}{{log, true}, {root + strings.TrimPrefix(log, "tserver"), false}, {"", false}} {
			files := maps.Clone(both)
			if x.log != "" {
				files[x.log] = files[x.log][:133905] // before the last operation
			}
			tree := store.NewMemory(files)
			got, err := scan(t, tree, "#d_wal", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
			bad, _ := findings(t, tree, "", "d_wal")
			if told := reported(bad, "kudu.replica.behind", "evicted"); err != nil || told != x.told ||
				reported(got.findings, "kudu.replica.behind", "evicted") != x.told {
				t.Errorf("%s, %q cut: %v; reading: %+v; verify: %+v", root, x.log, err, got.findings, bad)
			}
		}
	}
}
