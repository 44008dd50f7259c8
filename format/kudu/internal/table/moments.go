package table

import (
	"context"

	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
)

// Moments are the hybrid times of the first and the last operation that changed a tablet's rows: latest, or 0,
// if they are not known.
func (t *Table) Moments(ctx context.Context, tb *Tablet) (first, last uint64, err error) {
	first = Latest
	unsure := false
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb}
		for _, list := range [][]meta.BlockRef{s.Undo, s.Redo} {
			for _, b := range list {
				stats, ok, err := t.deltaStats(ctx, s, b)
				if err != nil {
					return 0, 0, err
				}
				if unsure = unsure || !ok; ok {
					first, last = min(first, stats.MinTimestamp), max(last, stats.MaxTimestamp)
				}
			}
		}
	}
	if !t.Opts.NoWAL {
		log, err := wal.Replay(ctx, tb.FS, tb.Tablet, wal.Nowhere)
		if err != nil {
			return 0, 0, err
		}
		for i := range log.Rows {
			first = min(first, log.Rows[i].Time)
		}
		unsure = unsure || log.Lost
		last = max(last, log.LastWrite)
	}
	if unsure {
		first = Latest
	}
	return first, last, nil
}
