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

// Kudu removes UNDO deltas, the oldest first, when they are older than it promises to keep
// (--tablet_history_max_age_sec, a week unless a server or a table says otherwise). What is left of a rowset's
// history is whole from some moment on; before it, a snapshot would show rows and values that came later. Every
// row that was ever inserted has an UNDO that deletes it; so if there are fewer of these than rows, history was
// removed, and what is left begins with the oldest UNDO, or, without any, with the oldest REDO.

// checkHistory refuses a snapshot that is older than what is left of a rowset's history; partial=true makes
// that a finding.
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
	what = fmt.Sprintf(what+" is gone, so what it held at %s is not known", s.ID, s.Tablet.ID, TimeText(t.Opts.At))
	at := fault.Span{Object: s.Tablet.Object}
	if !t.Opts.Partial {
		from := "it is from then on"
		if begins == Latest {
			from = "only the latest state is"
		}
		return nil, fault.New(fault.Unsupported, at, "", "%s; %s, and partial=true shows the oldest state there is",
			what, from)
	}
	x := s.Tablet.Note("kudu.history.removed", at, what+": rows and values that came later are shown")
	return &x, nil
}

// MaxAge is for how many seconds Kudu keeps history unless a server or a table says otherwise.
const MaxAge = 7 * 24 * 3600

// TooOld is a finding if a snapshot is older, at a tablet's newest operation, than Kudu promises to keep
// history: rows that were deleted before may be gone without a trace, and a row that was deleted and came back
// may have lost what it was before.
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

// mark is up to when Kudu may have removed history by the time of a tablet's newest operation.
func (tb *Tablet) mark(newest uint64) uint64 {
	age := uint64(MaxAge)
	if tb.Extra.HistoryMaxAge >= 0 {
		age = uint64(tb.Extra.HistoryMaxAge)
	}
	age = age * 1e6 << hybridShift
	return newest - min(newest, age)
}

// history says whether the whole history of a rowset is there, and if not, from when on; latest: none of it.
func (t *Table) history(ctx context.Context, s *RowSet) (whole bool, begins uint64, err error) {
	var inserts int64
	begins = Latest
	for _, b := range s.Undo {
		stats, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return false, 0, err
		}
		if !ok { // damage, or no statistics: reading the deltas will say
			return true, 0, nil
		}
		inserts += stats.Deletes - stats.Reinserts // a row that came back has two insertions
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

// deltaStats are the statistics of a delta file; false if it has none, or is damaged.
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

// OpenDelta opens a delta file. places are where it lies, and its twins. A file without statistics is of
// another kind (a bloom file's index reads like a delta file's): Kudu refuses it, too.
func (t *Table) OpenDelta(ctx context.Context, s *RowSet, b meta.BlockRef) (d *cfile.DeltaFile, places []fs.Place,
	err error) {
	return opened(ctx, t, s, b, func(ctx context.Context, src Source, at fault.Span,
		o format.OpenOptions) (*cfile.DeltaFile, error) {
		d, err := cfile.OpenDeltaAt(ctx, src, at, o)
		if err != nil {
			return nil, err
		}
		if _, ok := d.Stats(); !ok {
			return nil, fault.Corruptf(at, "footer.metadata", "no %s: the block is no delta file", meta.KeyDeltaStats)
		}
		return d, nil
	})
}
