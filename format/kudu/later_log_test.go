package kudu_test

import (
	"testing"

	"stoa/format/kudu/internal/wal"
)

// TestCorpusLaterLog: a log is known to be of a later state of its tablet than a superblock that knows fewer of its
// MemRowSets as flushed, as if they were of copies of the server that were made at different times, and then none of
// its rows and changes is used. No log is that beside the superblock that it was found with.
func TestCorpusLaterLog(t *testing.T) {
	own, earlier := 0, 0
	for _, run := range []string{"fs_file", "fs_log"} {
		_, f, tablets := archive(t, run)
		for _, tb := range tablets {
			log, err := wal.Replay(t.Context(), f, tb, wal.Nowhere)
			if err != nil {
				t.Fatal(err)
			}
			if own++; log.Later {
				t.Errorf("%s %s: later than its own superblock: %+v", run, tb.Table, log.Findings)
			}
			if tb.LastDurableMRS < 2 || log.Missing || log.Empty {
				continue
			}
			old := *tb
			old.LastDurableMRS, old.RowSets = -1, nil
			if log, err = wal.Replay(t.Context(), f, &old, wal.Nowhere); err != nil {
				t.Fatal(err)
			}
			quick, err := wal.QuickCheck(t.Context(), f, &old)
			if err != nil {
				t.Fatal(err)
			}
			if earlier++; !log.Later || !quick.Later || len(log.Rows)+len(log.Changes) > 0 || log.LastTime > 0 ||
				!reported(log.Findings, "kudu.wal.gap", "") {
				t.Errorf("%s %s: not later than an earlier superblock: %d rows, %+v", run, tb.Table, len(log.Rows),
					log.Findings)
			}
		}
	}
	t.Logf("%d logs, %d of them beside an earlier superblock", own, earlier)
	if own < 20 || earlier < 2 {
		t.Error("this proves nothing")
	}
}
