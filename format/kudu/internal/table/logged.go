package table

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
	"stoa/vec"
)

// logRows are the rows that only a tablet's log has, as they were at the snapshot, column by column.
type logRows struct {
	keys     [][]byte // encoded, ascending
	cells    []*vec.Vector
	findings []region.Finding
	lost     bool   // it need not have all that the tablet saw
	last     uint64 // no operation of the tablet is later; 0: not known
}

// replay reads a tablet's log: its changes go to the rowsets, its rows become vectors. newest is the time of the tablet's latest operation.
func (t *Table) replay(ctx context.Context, tb *Tablet) (newest uint64, err error) {
	log, flushed, err := t.readLog(ctx, tb, t.lookup(tb))
	if err != nil {
		return 0, err
	}
	for _, s := range tb.Sets {
		s.Changes, s.unplaced = log.Changes[s.ID], log.Unplaced[s.ID]
	}
	if tb.logged, err = t.materialize(tb, log); err != nil {
		return 0, err
	}
	newest = max(flushed, log.LastTime)
	if !log.Missing && !log.Lost && log.LastTime > 0 { // what the log no longer has was before what it has
		tb.logged.last = newest
	}
	return newest, nil
}

// readLog reads a tablet's log, and holds its end against what was flushed, of which the latest operation was at flushed. Kudu writes
// operations and their commits to the log before it flushes what they did, and removes only the log's beginning.
func (t *Table) readLog(ctx context.Context, tb *Tablet, lookup wal.KeyLookup) (log *wal.Logged, flushed uint64, err error) {
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

// Short is a finding if a log does not reach as far as what was flushed, or has nothing of a tablet that had a leader: the first thing
// that one does is an operation in the log.
func (tb *Tablet) Short(log *wal.Logged, flushed uint64) *region.Finding {
	why := ""
	switch {
	case log.Missing:
	case log.Empty && (flushed > 0 || tb.Consensus != nil && tb.Consensus.Term > 0):
		why = "no operation is in the log"
	case flushed > log.LastTime:
		why = fmt.Sprintf("the log ends at %s, before what was flushed: that is of %s", TimeText(log.LastTime), TimeText(flushed))
	}
	if why == "" {
		return nil
	}
	x := tb.Note("kudu.wal.short", fault.Span{Object: path.Join(tb.FS.WALDir, fs.WalsDir, tb.ID)}, why)
	return &x
}

// Flushed is the hybrid time of the latest operation in the deltas of a tablet's rowsets, as far as they can be read; 0 if nothing tells.
// UNDO deltas tell of insertions. The newest ones are the first UNDO and the last REDO file.
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

// Note is a finding about a tablet.
func (tb *Tablet) Note(code string, at fault.Span, message string) region.Finding {
	x := region.Finding{Code: code, Severity: codes.Severity(code), At: at, Part: tb.ID, Message: message, Rows: [2]int64{-1, -1}, Lost: -1}
	if x.Severity < region.Error {
		x.Lost = 0
	}
	return x
}

// lookup finds keys in the rowsets of a tablet. The files are opened once for the whole log.
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
		for c := range row { // of columns that are younger than the row
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

// stale is an error if a tablet's log lacks operations, or another replica saw more: rows may then be older than the tablet's, or be deleted ones.
func (tb *Tablet) stale() error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(tb.Told), func(x region.Finding) bool { return x.Code != "kudu.replica.behind" })
	if tb.logged != nil {
		found = append(found, tb.logged.findings...)
	}
	for _, x := range found {
		if x.Severity >= region.Error {
			return fault.Corruptf(x.At, x.Path, "tablet %s: %s: rows may be old (%s)", tb.ID, x.Message, x.Code)
		}
	}
	return nil
}

// Damaged reports whether err says that bytes are damaged, rather than that they could not be read.
func Damaged(err error) bool { return errors.Is(err, fault.Corrupt) }
