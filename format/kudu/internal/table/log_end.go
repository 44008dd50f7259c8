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

// readLog reads a tablet's log, and compares its end with flushed, the hybrid time of the latest flushed operation.
// Kudu writes operations and their commits to the log before it flushes them, and removes segments only from its
// beginning.
func (t *Table) readLog(ctx context.Context, tb *Tablet, lookup wal.KeyLookup) (log *wal.Logged, flushed uint64,
	err error) {
	if log, err = wal.Replay(ctx, tb.FS, tb.Tablet, lookup); err != nil {
		return nil, 0, err
	}
	if log.Missing && t.Opts.At == Latest {
		return log, 0, nil // flushed is not needed
	}
	if flushed, err = t.Flushed(ctx, tb, tb.RowSets); err != nil {
		return nil, 0, err
	}
	log.Flushed(tb.ID, flushed)
	if x := tb.Short(log, flushed); x != nil {
		log.Lost = true
		log.Findings = append(log.Findings, *x)
	}
	return log, flushed, nil
}

// Short returns a finding if a log ends before the latest flushed operation, or is empty although the tablet has had a
// leader, because a leader logs an operation first of all; else nil.
func (tb *Tablet) Short(log *wal.Logged, flushed uint64) *region.Finding {
	why := ""
	switch {
	case log.Missing, log.Later:
	case log.Empty && (flushed > 0 || tb.Consensus != nil && tb.Consensus.Term > 0):
		why = "the log has no operations"
	case flushed > log.LastTime && log.OpenFrom > 0 && log.OpenFrom <= flushed:
		why = fmt.Sprintf("the log ends at %s, before the commits of operations that were flushed, up to %s",
			TimeText(log.LastTime), TimeText(flushed))
	case flushed > log.LastTime:
		why = fmt.Sprintf("the log ends at %s, before the latest flushed operation, at %s", TimeText(log.LastTime),
			TimeText(flushed))
	}
	if why == "" {
		return nil
	}
	x := tb.Note("kudu.wal.short", fault.Span{Object: path.Join(tb.FS.WALDir, fs.WalsDir, tb.ID)}, why)
	return &x
}

// Flushed returns the hybrid time of the latest operation in the deltas of some of a tablet's rowsets, as far as they
// can be read; 0 if unknown. That operation is in the first UNDO file, because UNDO deltas record insertions, or in the
// last REDO file.
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
