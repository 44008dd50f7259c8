package kudu

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
)

// Kudu removes UNDO deltas, the oldest first, when they are older than it promises to keep (--tablet_history_max_age_sec, a week unless
// a server or a table says otherwise). What is left of a rowset's history is whole from some moment on; before it, a snapshot would show
// rows and values that came later. Every row that was ever inserted has an UNDO that deletes it; so if there are fewer of these than
// rows, history was removed, and what is left begins with the oldest UNDO, or, without any, with the oldest REDO.

// checkHistory refuses a snapshot that is older than what is left of a rowset's history.
func (t *table) checkHistory(ctx context.Context, s *rowSet) error {
	if t.o.at == latest || t.o.partial || s.rows < 0 {
		return nil
	}
	whole, begins, err := t.history(ctx, s)
	if err != nil || whole || t.o.at >= begins {
		return err
	}
	at := fault.Span{Object: s.tablet.Object}
	if begins == latest {
		return fault.New(fault.Unsupported, at, "", "the history of rowset %d of tablet %s is gone, so what it held at %s is not known; partial=true shows its oldest state",
			s.ID, s.tablet.ID, timeText(t.o.at))
	}
	return fault.New(fault.Unsupported, at, "", "the history of rowset %d of tablet %s before %s is gone, so what it held at %s is not known; partial=true shows its oldest state",
		s.ID, s.tablet.ID, timeText(begins), timeText(t.o.at))
}

// history says whether the whole history of a rowset is there, and if not, from when on; latest: none of it.
func (t *table) history(ctx context.Context, s *rowSet) (whole bool, begins uint64, err error) {
	var inserts int64
	begins = latest
	for _, b := range s.Undo {
		stats, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return false, 0, err
		}
		if !ok { // damage, or no statistics: reading the deltas will tell
			return true, 0, nil
		}
		inserts += stats.Deletes - stats.Reinserts // a row that came back has two insertions
		begins = min(begins, stats.MinTimestamp)
	}
	if inserts >= s.rows {
		return true, 0, nil
	}
	if begins == latest {
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
func (t *table) deltaStats(ctx context.Context, s *rowSet, b BlockRef) (cfile.DeltaStats, bool, error) {
	d, _, err := t.openDelta(ctx, s, b)
	if err != nil {
		if damaged(err) {
			err = nil
		}
		return cfile.DeltaStats{}, false, err
	}
	stats, ok := d.Stats()
	return stats, ok, nil
}

// openDelta opens a delta file. places are where it lies, and its twins.
func (t *table) openDelta(ctx context.Context, s *rowSet, b BlockRef) (d *cfile.DeltaFile, places []Place, err error) {
	return opened(ctx, t, s, b, func(ctx context.Context, src source, at fault.Span, o format.OpenOptions) (*cfile.DeltaFile, error) {
		return cfile.OpenDeltaAt(ctx, src, at, o)
	})
}
