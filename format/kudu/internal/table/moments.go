package table

import (
	"cmp"
	"context"
	"time"

	"stoa/format"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
)

// TabletMoments is the known part of a tablet's history.
type TabletMoments struct {
	// Hybrid times of the first and the last operation that changed rows; Latest and 0 if unknown.
	First, Last uint64
	// Snapshots from this hybrid time on are exact; 0: all are. History before it has, or may have, been removed.
	Exact   uint64
	Damaged bool        // it was not removed: deltas of it are damaged, see CheckUndo
	Log     *wal.Logged // nil: the log is not read
}

// Moments returns the hybrid times of the first and the last operation that changed a tablet's rows; Latest and 0 if
// they are unknown.
func (t *Table) Moments(ctx context.Context, tb *Tablet) (first, last uint64, err error) {
	l, err := t.TabletMoments(ctx, tb)
	return l.First, l.Last, err
}

// moments finds the first and the last operation in the remaining deltas and the log.
func (t *Table) moments(ctx context.Context, tb *Tablet) (l TabletMoments, err error) {
	l.First = Latest
	unsure := false
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb}
		for _, list := range [][]meta.BlockRef{s.Undo, s.Redo} {
			for _, b := range list {
				stats, ok, err := t.deltaStats(ctx, s, b)
				if err != nil {
					return l, err
				}
				if unsure = unsure || !ok; ok {
					l.First, l.Last = min(l.First, stats.MinTimestamp), max(l.Last, stats.MaxTimestamp)
				}
			}
		}
	}
	if !t.Opts.NoWAL {
		if l.Log, err = wal.Count(ctx, tb.FS, tb.Tablet, wal.Nowhere, cmp.Or(t.Opts.Until, Latest)); err != nil {
			return l, err
		}
		for i := range l.Log.Rows {
			l.First = min(l.First, l.Log.Rows[i].Time)
		}
		unsure = unsure || l.Log.Lost
		l.Last = max(l.Last, l.Log.LastWrite)
	}
	if unsure {
		l.First = Latest
	}
	return l, nil
}

// TabletMoments returns the history of a tablet. The history of unreadable rowsets is assumed to be complete; their
// damage is reported when they are read.
func (t *Table) TabletMoments(ctx context.Context, tb *Tablet) (TabletMoments, error) {
	l, err := t.moments(ctx, tb)
	if err != nil {
		return l, err
	}
	newest := l.Last
	if l.Log != nil {
		newest = max(newest, l.Log.LastTime)
	}
	if mark := tb.mark(newest); mark > l.First || l.First == Latest {
		l.Exact = mark
	}
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb, index: i, Rows: -1}
		if err := t.findTwins(ctx, s); err != nil {
			return l, err
		}
		if err := t.measure(ctx, s); err != nil {
			return l, err
		}
		if s.Rows < 0 {
			continue
		}
		whole, begins, err := t.history(ctx, s)
		switch {
		case err != nil:
			return l, err
		case whole:
			continue
		case begins == Latest:
			begins = newest + 1
		}
		l.First, l.Exact = Latest, max(l.Exact, begins) // the earliest history was removed
	}
	return l, nil
}

// Reached implements format.Reacher, in hybrid times: a tablet was read up to the last committed operation of its log,
// or the latest one of its deltas.
func (t *Table) Reached(ctx context.Context) (map[string]format.Reach, error) {
	out := map[string]format.Reach{}
	for _, tb := range t.Tablets {
		if !tb.HasData() {
			continue
		}
		if err := t.Load(ctx, tb); err != nil {
			if !Damaged(err) {
				return nil, err
			}
			continue
		}
		x := tb.reached
		if x.Known == 0 { // there is no log, or it is not read
			flushed, err := t.Flushed(ctx, tb, tb.RowSets)
			if err != nil {
				return nil, err
			}
			x.Changed, x.Known = flushed, flushed
		}
		x.Changed, x.Known = min(x.Changed, t.Opts.At), min(x.Known, t.Opts.At)
		for _, s := range tb.Sets {
			x.Rows += max(0, s.Rows)
		}
		if tb.logged != nil {
			x.Rows += int64(len(tb.logged.keys))
		}
		if x.Known > 0 {
			x.Time = Calendar(x.Known).Format(time.RFC3339Nano)
		}
		out[tb.ID] = x
	}
	return out, nil
}

// reach is how far a tablet is read whose log this is.
func reach(log *wal.Logged, flushed uint64) format.Reach {
	return format.Reach{Changed: max(flushed, log.LastWrite), Known: max(flushed, log.LastTime)}
}
