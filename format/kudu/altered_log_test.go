package kudu_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa/store"
)

// TestCorpusAlteredTablesFromTheirLogs: a table whose schema was changed, so that its log's operations have several
// schemas, is rebuilt from the log, whatever else is gone: the superblock, all blocks, the master, or all of these.
func TestCorpusAlteredTablesFromTheirLogs(t *testing.T) {
	want := expected(t, corpus(t), "d_alter", "final")
	for _, run := range []string{"fs_file", "fs_log"} {
		whole, _, _ := archive(t, run)
		_, all := layout(t, store.NewMemory(whole))
		var ids []string
		for _, tb := range all {
			if tb.Table == "d_alter" {
				ids = append(ids, tb.ID)
			}
		}
		if len(ids) != 1 || len(want) == 0 {
			t.Fatal(ids, len(want))
		}
		for gone := 1; gone < 8; gone++ {
			if gone == 4 {
				continue // only the master: the table is whole
			}
			files := maps.Clone(whole)
			for name := range whole {
				if gone&1 != 0 && strings.HasSuffix(name, "tablet-meta/"+ids[0]) ||
					gone&2 != 0 && strings.HasPrefix(name, "tserver/data/data/") &&
						!strings.HasSuffix(name, "block_manager_instance") ||
					gone&4 != 0 && strings.HasPrefix(name, "master/") {
					delete(files, name)
				}
			}
			if got := savedOf(t, files, "d_alter"); !slices.Equal(got, want) {
				t.Errorf("%s, %03b gone: got %d rows, want %d", run, gone, len(got), len(want))
			}
		}
	}
}
