package table

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
)

// SetStats are the statistics of a rowset. Unknown numbers are -1.
type SetStats struct {
	ID         uint64
	Rows, Live int64 // as written, and without the deleted ones
	// Bytes of the existing blocks: of columns, of the bloom file and the ad-hoc index, of deltas.
	Columns, Keys, Redo, Undo  int64
	RedoFiles, UndoFiles       int
	Updated, Deletes, Reinsert int64 // REDO: cells set, rows deleted, rows inserted again
	// Exact is the hybrid time from which its snapshots are exact; 0: all are; Latest: only the latest state is
	Exact uint64
	Lost  int // blocks that are missing or damaged
}

// SetStats returns the statistics of a tablet's rowsets, from metadata and footers.
func (t *Table) SetStats(ctx context.Context, tb *Tablet) (out []SetStats, err error) {
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb, index: i, Rows: -1}
		if err := t.findTwins(ctx, s); err != nil {
			return nil, err
		}
		if err := t.measure(ctx, s); err != nil {
			return nil, err
		}
		x := SetStats{ID: s.ID, Rows: s.Rows, Live: s.LiveRows, RedoFiles: len(s.RowSet.Redo),
			UndoFiles: len(s.RowSet.Undo)}
		if err := t.sizes(ctx, s, &x); err != nil {
			return nil, err
		}
		if err := t.redone(ctx, s, &x); err != nil {
			return nil, err
		}
		if s.Rows >= 0 {
			whole, begins, err := t.history(ctx, s)
			if err != nil {
				return nil, err
			}
			if !whole {
				x.Exact = begins
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// sizes adds up the bytes of a rowset's blocks.
func (t *Table) sizes(ctx context.Context, s *RowSet, x *SetStats) error {
	for _, b := range s.Blocks() {
		p, err := s.Tablet.FS.PlaceOf(ctx, s.Tablet.Tablet, b.BlockRef)
		if errors.As(err, new(*fault.Error)) {
			x.Lost++
			continue
		}
		if err != nil {
			return err
		}
		switch b.Kind {
		case "column":
			x.Columns += p.At.Len
		case "redo":
			x.Redo += p.At.Len
		case "undo":
			x.Undo += p.At.Len
		default:
			x.Keys += p.At.Len
		}
	}
	return nil
}

// redone counts the changes in the REDO deltas of a rowset; -1 if one of them has no statistics.
func (t *Table) redone(ctx context.Context, s *RowSet, x *SetStats) error {
	for _, b := range s.RowSet.Redo {
		stats, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return err
		}
		if !ok {
			x.Updated, x.Deletes, x.Reinsert = -1, -1, -1
			return nil
		}
		x.Deletes, x.Reinsert = x.Deletes+stats.Deletes, x.Reinsert+stats.Reinserts
		for _, n := range stats.Updates {
			x.Updated += n
		}
	}
	return nil
}

// ChunkFacts returns the encoding and the codec that the footer of a column's block names. The size follows from the
// pages.
func (t *Table) ChunkFacts(ctx context.Context, g format.RowGroup, col int) (format.ChunkFacts, error) {
	f := format.ChunkFacts{Stored: -1, Raw: -1}
	_, s, err := t.set(ctx, g)
	if err != nil || s == nil {
		return f, err
	}
	b, ok := s.Block(t.Stored.Columns[col].ID)
	if !ok { // the column was added later
		return f, nil
	}
	r, err := t.OpenBlock(ctx, s, b)
	if err != nil {
		return f, err
	}
	foot := r.Footer()
	f.Codec = foot.Compression.String()
	f.Encodings = []format.EncodedPages{{Encoding: foot.Encoding.String(), Pages: -1}}
	return f, nil
}
