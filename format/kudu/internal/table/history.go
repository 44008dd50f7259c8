package table

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
)

// Kudu removes UNDO deltas, oldest first, when they are older than it guarantees to keep (--tablet_history_max_age_sec,
// a week unless the server or the table sets a different age). So a rowset's history is complete only from some time
// on; earlier snapshots would show later rows and values. Every row that was ever inserted has an UNDO delta that
// deletes it. If there are fewer of these than rows, history was removed, and the remaining history begins with the
// oldest UNDO or, if there is none, the oldest REDO.

// checkHistory returns an Unsupported error if the snapshot is older than the remaining history of a rowset; with
// option partial it returns a finding instead.
func (t *Table) checkHistory(ctx context.Context, s *RowSet) (*region.Finding, error) {
	if t.Opts.At == Latest || s.Rows < 0 {
		return nil, nil
	}
	whole, begins, err := t.history(ctx, s)
	if err != nil || whole || t.Opts.At >= begins {
		return nil, err
	}
	what := "the history of rowset %d of tablet %s"
	if begins != Latest {
		what += " before " + TimeText(begins)
	}
	what = fmt.Sprintf(what+" was removed, so its rows at %s are unknown", s.ID, s.Tablet.ID, TimeText(t.Opts.At))
	at := fault.Span{Object: s.Tablet.Object}
	if !t.Opts.Partial {
		from := "they are known from then on"
		if begins == Latest {
			from = "only the latest state is known"
		}
		return nil, fault.New(fault.Unsupported, at, "", "%s; %s, and partial=true reads the oldest known state",
			what, from)
	}
	x := s.Tablet.Note("kudu.history.removed", at, what+": later rows and values are shown")
	return &x, nil
}

// MaxAge is Kudu's default of --tablet_history_max_age_sec, in seconds.
const MaxAge = 7 * 24 * 3600

// TooOld returns a finding if the snapshot at is older than the history that Kudu guarantees to keep, counted back from
// newest, the tablet's latest operation; else nil. Rows deleted before that may have left no trace, and rows deleted
// and reinserted may have lost their earlier values. at and newest are hybrid times.
func (tb *Tablet) TooOld(at, newest uint64) *region.Finding {
	mark := tb.mark(newest)
	if at == Latest || at >= mark {
		return nil
	}
	x := tb.Note("kudu.history.old", fault.Span{Object: tb.Object}, fmt.Sprintf("the snapshot at %s is older "+
		"than the history that is kept, which begins at %s: rows that were deleted before may be missing",
		TimeText(at), TimeText(mark)))
	return &x
}

// mark returns the time up to which Kudu may have removed history by the time the tablet's newest operation was
// written.
func (tb *Tablet) mark(newest uint64) uint64 {
	age := uint64(MaxAge)
	if tb.Extra.HistoryMaxAge >= 0 {
		age = uint64(tb.Extra.HistoryMaxAge)
	}
	age = age * 1e6 << hybridShift
	return newest - min(newest, age)
}

// history reports whether the history of a rowset is complete and, if not, the hybrid time from which on it is; Latest
// means that only the latest state is left.
func (t *Table) history(ctx context.Context, s *RowSet) (whole bool, begins uint64, err error) {
	var inserts int64
	begins = Latest
	for _, b := range s.Undo {
		stats, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return false, 0, err
		}
		if !ok { // damage, which is reported when the deltas are read
			return true, 0, nil
		}
		inserts += stats.Deletes - stats.Reinserts // a reinserted row has two insertions
		begins = min(begins, stats.MinTimestamp)
	}
	if inserts >= s.Rows {
		return true, 0, nil
	}
	if begins == Latest {
		for _, b := range s.Redo {
			if stats, ok, err := t.deltaStats(ctx, s, b); err != nil {
				return false, 0, err
			} else if ok {
				begins = min(begins, stats.MinTimestamp)
			}
		}
	}
	return false, begins, nil
}

// deltaStats returns the statistics of a delta file; ok is false if it has none or is damaged.
func (t *Table) deltaStats(ctx context.Context, s *RowSet, b meta.BlockRef) (cfile.DeltaStats, bool, error) {
	d, _, err := t.OpenDelta(ctx, s, b)
	if err != nil {
		if Damaged(err) {
			err = nil
		}
		return cfile.DeltaStats{}, false, err
	}
	stats, ok := d.Stats()
	return stats, ok, nil
}

// OpenDelta opens a delta file. places are its location and those of its copies. A file without statistics is Corrupt:
// it must be of another kind (a bloom file's index looks like a delta file's), and Kudu refuses it, too.
func (t *Table) OpenDelta(ctx context.Context, s *RowSet, b meta.BlockRef) (d *cfile.DeltaFile, places []fs.Place,
	err error) {
	return opened(ctx, t, s, b, func(ctx context.Context, src Source, at fault.Span,
		o format.OpenOptions) (*cfile.DeltaFile, error) {
		d, err := cfile.OpenDeltaAt(ctx, src, at, o)
		if err != nil {
			return nil, err
		}
		if _, ok := d.Stats(); !ok {
			return nil, fault.Corruptf(at, "footer.metadata", "no %s: the block is not a delta file",
				meta.KeyDeltaStats)
		}
		return d, nil
	})
}
