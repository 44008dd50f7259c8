package kudu

import "context"

// moments are the hybrid times of the first and the last operation that changed a tablet's rows: latest, or 0, if they are not known.
func (t *table) moments(ctx context.Context, tb *tablet) (first, last uint64, err error) {
	first = latest
	unsure := false
	for i := range tb.RowSets {
		s := &rowSet{RowSet: &tb.RowSets[i], tablet: tb}
		for _, list := range [][]BlockRef{s.Undo, s.Redo} {
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
	if !t.o.noWAL {
		log, err := Replay(ctx, tb.fs, tb.Tablet, nowhere)
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
		first = latest
	}
	return first, last, nil
}
