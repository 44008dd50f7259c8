package table

import (
	"context"
	"fmt"
	"io"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
)

// CheckUndo reads the UNDO deltas of a tablet, from which its earlier states follow, and returns a finding for each
// file that cannot be read. Snapshots from exact on need none of these; 0: all can be read.
func (t *Table) CheckUndo(ctx context.Context, tb *Tablet, newest uint64) (exact uint64, found []region.Finding,
	err error) {
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb, index: i, Rows: -1}
		if err := t.findTwins(ctx, s); err != nil {
			return 0, nil, err
		}
		for _, b := range s.Undo {
			at, after, err := t.readDelta(ctx, s, b)
			if err == nil {
				continue
			}
			if !Damaged(err) {
				return 0, nil, err
			}
			if after == 0 {
				after = newest + 1 // of what time its changes are is not known
			}
			exact = max(exact, after)
			found = append(found, tb.Note("kudu.delta.damaged", at, fmt.Sprintf("rowset %d: of UNDO file %d, without "+
				"which no snapshot before %s is exact: %v", s.ID, b.ID, TimeText(after), err)))
		}
	}
	return exact, found, nil
}

// readDelta reads all deltas of a file. after is the first time at which a snapshot needs none of them, if the file
// still says it, else 0.
func (t *Table) readDelta(ctx context.Context, s *RowSet, b meta.BlockRef) (at fault.Span, after uint64, err error) {
	d, places, err := t.OpenDelta(ctx, s, b)
	if err != nil {
		return s.Tablet.At, 0, err
	}
	if stats, ok := d.Stats(); ok {
		after = stats.MaxTimestamp + 1 // a snapshot has the operations before its time
	}
	all, err := d.All(ctx)
	for err == nil {
		_, err = all.Next(ctx)
	}
	if err == io.EOF {
		err = nil
	}
	return places[0].At, after, err
}
