package kudu_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"stoa"
	"stoa/store"
)

// TestCorpusFewBlocksGone: whichever blocks of a tablet are gone, it is rebuilt from its log if that is complete, from
// the first operation on; if the log has lost its end, what is left of the blocks is read.
func TestCorpusFewBlocksGone(t *testing.T) {
	dir := corpus(t)
	whole, _, tablets := archive(t, "fs_file")
	for _, table := range []string{"d_wal", "d_raw", "d_major", "d_alter"} {
		tb := tablets[table]
		want := expected(t, dir, table, "final")
		var blocks []string
		f, all := layout(t, store.NewMemory(whole))
		for _, places := range blocksOf(t, f, all, table) {
			for _, at := range places {
				blocks = append(blocks, at.Object)
			}
		}
		slices.Sort(blocks)
		if blocks = slices.Compact(blocks); len(blocks) < 10 {
			t.Fatal(table, len(blocks))
		}
		log := "tserver/wal/wals/" + tb.ID + "/wal-000000001"
		for n := 0; n < len(blocks); n += 1 + len(blocks)/5 {
			files := maps.Clone(whole)
			delete(files, blocks[n])
			delete(files, blocks[(n*7+3)%len(blocks)])
			if got := savedOf(t, files, table); !slices.Equal(got, want) {
				t.Errorf("%s without %s: %d rows, want %d", table, filepath.Base(blocks[n]), len(got), len(want))
			}
			files[log] = files[log][:len(files[log])/3] // far before what was flushed
			rest, err := stoa.Open(t.Context(), "#"+table,
				stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			if found := rest.Findings(); reported(found, "kudu.tablet.rebuilt", "") {
				t.Errorf("%s: rebuilt from a log that lacks flushed operations: %+v", table, found)
			}
			rest.Close()
		}
	}
}
