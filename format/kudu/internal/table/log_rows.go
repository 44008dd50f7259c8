package table

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
)

// replay reads a tablet's log: its changes are assigned to the rowsets, and its rows become vectors. newest is the
// hybrid time of the tablet's latest operation.
func (t *Table) replay(ctx context.Context, tb *Tablet) (newest uint64, err error) {
	log, flushed, err := t.readLog(ctx, tb, t.lookup(tb))
	if err != nil {
		return 0, err
	}
	tb.ended = ended{log.LastTime, log.OpenFrom}
	log.Findings = slices.DeleteFunc(log.Findings, func(x region.Finding) bool { return tb.Later(x, t.Opts.At) })
	for _, s := range tb.Sets {
		s.Changes, s.unplaced = log.Changes[s.ID], log.Unplaced[s.ID]
	}
	if tb.logged, err = t.materialize(tb, log); err != nil {
		return 0, err
	}
	tb.reached = reach(log, flushed)
	newest = max(flushed, log.LastTime)
	if !log.Missing && !log.Lost && log.LastTime > 0 { // segments that Kudu removed are older
		tb.logged.last = newest
	}
	return newest, nil
}

// lookup finds keys in the rowsets of a tablet. It opens each index once.
func (t *Table) lookup(tb *Tablet) wal.KeyLookup {
	open := map[uint64]*keyIndex{}
	return func(ctx context.Context, rowset uint64, key []byte) (int64, bool, error) {
		x, ok := open[rowset]
		if !ok {
			for _, s := range tb.Sets {
				if s.ID == rowset {
					x = t.keyIndex(ctx, s)
				}
			}
			open[rowset] = x
		}
		if x == nil {
			return 0, false, nil
		}
		return x.search(ctx, key)
	}
}

// materialize makes vectors of the rows that were live at the snapshot.
func (t *Table) materialize(tb *Tablet, log *wal.Logged) (*logRows, error) {
	out := &logRows{findings: log.Findings, lost: log.Lost || len(log.Unplaced) > 0}
	n := len(t.Stored.Columns)
	values := make([][][]byte, n)
	row := make([][]byte, n)
	var scratch []cfile.DeltaChange
	for i := range log.Rows {
		r := &log.Rows[i]
		if r.Time >= t.Opts.At {
			continue
		}
		for c := range row { // cells of columns that were added after the row
			row[c] = t.Stored.Columns[c].ReadDefault
		}
		set := func(cells []cfile.DeltaChange) {
			for _, x := range cells {
				if c := t.Stored.Find(int32(x.Column)); c >= 0 {
					row[c] = x.Value
				}
			}
		}
		at := fault.Span{Object: tb.Object}
		var err error
		if scratch, err = cfile.ParseCells(r.Cells, at, "log.row", scratch); err != nil {
			return nil, err
		}
		set(scratch)
		live := true
		for _, x := range r.Changes {
			if x.Time >= t.Opts.At {
				break
			}
			var op cfile.DeltaOp
			if op, scratch, err = cfile.ParseChanges(x.List, at, "log.change", scratch); err != nil {
				return nil, err
			}
			live = op != cfile.DeltaDelete
			set(scratch)
		}
		if !live {
			continue
		}
		out.keys = append(out.keys, r.Key)
		for c := range row {
			values[c] = append(values[c], row[c])
		}
	}
	for c := range values {
		v, err := t.Stored.Columns[c].Vector(values[c])
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: tb.Object}, false, "log.row")
		}
		out.cells = append(out.cells, v)
		values[c] = nil
	}
	return out, nil
}

// stale returns an error if a tablet's log lacks operations, or if another replica has later ones, because rows may
// then be out of date or deleted.
func (tb *Tablet) stale() error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(tb.Findings),
		func(x region.Finding) bool { return x.Code != "kudu.replica.behind" })
	if tb.logged != nil {
		found = append(found, tb.logged.findings...)
	}
	for _, x := range found {
		if x.Severity >= region.Error {
			return fault.Corruptf(x.At, x.Path, "tablet %s: %s: rows may be out of date (%s)", tb.ID, x.Message, x.Code)
		}
	}
	return nil
}
