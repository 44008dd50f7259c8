package kudu

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/region"
)

// Blocks may be whole, each by itself, and not belong where a superblock names them: files that were put back under another name, or a
// superblock of another time. What footers and indexes tell of that is looked at when a rowset is opened.

// agree tells where a rowset's delta files contradict its superblock, or each other, by their statistics.
func (t *table) agree(ctx context.Context, s *rowSet) (out []region.Finding, err error) {
	if len(s.Redo) == 0 && t.o.at == latest && (!s.tablet.CountsLive || s.LiveRows < 0 || s.rows < 0) {
		return nil, nil
	}
	live := s.rows
	known := s.tablet.CountsLive && s.LiveRows >= 0 && s.rows >= 0
	var redo []cfile.DeltaStats
	for _, b := range s.Redo {
		x, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return nil, err
		}
		if !ok { // damage is told by who reads the file
			known = false
			continue
		}
		live -= x.Deletes - x.Reinserts
		redo = append(redo, x)
	}
	if known && live != s.LiveRows {
		out = append(out, s.tablet.note("kudu.rowset.live", s.tablet.At, fmt.Sprintf("rowset %d has %d live rows, its superblock says; its REDO files delete %d of %d", s.ID, s.LiveRows, s.rows-live, s.rows)))
	}
	inserted := int64(0)
	for i := 0; i < len(s.Undo) && (len(redo) > 0 || t.o.at != latest); i++ {
		undo, ok, err := t.deltaStats(ctx, s, s.Undo[i])
		if err != nil {
			return nil, err
		}
		if inserted += undo.Deletes - undo.Reinserts; s.rows >= 0 && inserted > s.rows {
			out = append(out, s.tablet.note("kudu.delta.damaged", s.tablet.At, fmt.Sprintf("rowset %d: its UNDO files take back %d insertions, and it has %d rows: one is not its own", s.ID, inserted, s.rows)))
			return out, nil
		}
		for k := range redo {
			if ok && redo[k].MaxTimestamp < undo.MaxTimestamp && shareColumn(&redo[k], &undo) {
				out = append(out, s.tablet.note("kudu.delta.order", s.tablet.At, fmt.Sprintf("rowset %d: the changes of a REDO file end at %s, those of the same column in an UNDO file at %s",
					s.ID, timeText(redo[k].MaxTimestamp), timeText(undo.MaxTimestamp))))
				return out, nil
			}
		}
	}
	return out, nil
}

// shareColumn reports whether two delta files have changes of the same column.
func shareColumn(a, b *cfile.DeltaStats) bool {
	for id, n := range a.Updates {
		if n > 0 && b.Updates[id] > 0 {
			return true
		}
	}
	return false
}

// checkBloom says why a bloom file cannot be that of its rowset: it lacks the first or the last key. By chance another one has both once in
// a hundred million times.
func (t *table) checkBloom(ctx context.Context, s *rowSet, b *cfile.Bloom) error {
	for _, key := range [][]byte{s.low, s.high} {
		if key == nil {
			continue
		}
		may, err := b.MayContain(ctx, key)
		if err != nil {
			return err
		}
		if !may {
			return fault.Corruptf(fault.Span{Object: s.tablet.Object}, "rowsets.bloom_block", "rowset %d: its bloom file does not have the rowset's first or last key", s.ID)
		}
	}
	return nil
}
