package table

import (
	"context"
	"fmt"
	"path"
	"slices"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
)

// readLog reads a tablet's log, and compares its end with what was flushed, of which the latest operation was
// at flushed. Kudu writes operations and their commits to the log before it flushes what they did, and removes
// only the log's beginning.
func (t *Table) readLog(ctx context.Context, tb *Tablet, lookup wal.KeyLookup) (log *wal.Logged, flushed uint64,
	err error) {
	if log, err = wal.Replay(ctx, tb.FS, tb.Tablet, lookup); err != nil {
		return nil, 0, err
	}
	if log.Missing && t.Opts.At == Latest {
		return log, 0, nil // nothing asks for it
	}
	if flushed, err = t.Flushed(ctx, tb, tb.RowSets); err != nil {
		return nil, 0, err
	}
	if x := tb.Short(log, flushed); x != nil {
		log.Lost = true
		log.Findings = append(log.Findings, *x)
	}
	return log, flushed, nil
}

// Short is a finding if a log does not reach as far as what was flushed, or has nothing of a tablet that had a
// leader: the first thing that one does is an operation in the log.
func (tb *Tablet) Short(log *wal.Logged, flushed uint64) *region.Finding {
	why := ""
	switch {
	case log.Missing:
	case log.Empty && (flushed > 0 || tb.Consensus != nil && tb.Consensus.Term > 0):
		why = "no operation is in the log"
	case flushed > log.LastTime:
		why = fmt.Sprintf("the log ends at %s, before what was flushed: that is of %s", TimeText(log.LastTime),
			TimeText(flushed))
	}
	if why == "" {
		return nil
	}
	x := tb.Note("kudu.wal.short", fault.Span{Object: path.Join(tb.FS.WALDir, fs.WalsDir, tb.ID)}, why)
	return &x
}

// Flushed is the hybrid time of the latest operation in the deltas of a tablet's rowsets, as far as they can be
// read; 0 if nothing says. UNDO deltas mention insertions. The newest ones are the first UNDO and the last
// REDO file.
func (t *Table) Flushed(ctx context.Context, tb *Tablet, sets []meta.RowSet) (last uint64, err error) {
	for i := range sets {
		s := &RowSet{RowSet: &sets[i], Tablet: tb}
		redo := slices.Clone(s.Redo)
		slices.Reverse(redo)
		for _, newest := range [][]meta.BlockRef{s.Undo, redo} {
			for _, b := range newest {
				stats, ok, err := t.deltaStats(ctx, s, b)
				if err != nil {
					return 0, err
				}
				if ok {
					last = max(last, stats.MaxTimestamp)
					break
				}
			}
		}
	}
	return last, nil
}
