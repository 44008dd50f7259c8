package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
)

// Blocks may be intact and yet not belong where a superblock names them: files may have been restored under another
// name, or the superblock may be from another time. When a rowset is opened, footers and indexes are checked for this.

// Agree reports delta files of a rowset whose statistics contradict the superblock or each other. It may set s.strange.
func (t *Table) Agree(ctx context.Context, s *RowSet) (out []region.Finding, err error) {
	if len(s.Redo) == 0 && t.Opts.At == Latest && (!s.Tablet.CountsLive || s.LiveRows < 0 || s.Rows < 0) {
		return nil, nil
	}
	if out, err = t.Foreigners(ctx, s, t.Opts.At != Latest, false); err != nil {
		return nil, err
	}
	live := s.Rows
	known := s.Tablet.CountsLive && s.LiveRows >= 0 && s.Rows >= 0
	var redo []cfile.DeltaStats
	for _, b := range s.Redo {
		x, ok, err := t.deltaStats(ctx, s, b)
		if err != nil {
			return nil, err
		}
		if !ok { // damage is reported when the file is read
			known = false
			continue
		}
		live -= x.Deletes - x.Reinserts
		redo = append(redo, x)
	}
	if known && live != s.LiveRows {
		why := fmt.Sprintf("rowset %d has %d live rows by its superblock; its REDO files delete %d of %d", s.ID,
			s.LiveRows, s.Rows-live, s.Rows)
		out = append(out, s.Tablet.Note("kudu.rowset.live", s.Tablet.At, why))
		if len(s.Redo) > 0 { // one may be another rowset's, and then the changes in the right one are unknown
			s.contradiction = fault.Corruptf(s.Tablet.At, "rowsets.live_row_count", "%s", why)
		}
	}
	inserted := int64(0)
	for i := 0; i < len(s.Undo) && (len(redo) > 0 || t.Opts.At != Latest); i++ {
		undo, ok, err := t.deltaStats(ctx, s, s.Undo[i])
		if err != nil {
			return nil, err
		}
		if inserted += undo.Deletes - undo.Reinserts; s.Rows >= 0 && inserted > s.Rows {
			out = append(out, s.Tablet.Note("kudu.delta.damaged", s.Tablet.At,
				fmt.Sprintf("rowset %d: its UNDO files undo %d insertions, but it has %s: one is not its own",
					s.ID, inserted, fault.Count(s.Rows, "row"))))
			return out, nil
		}
		for k := range redo {
			if ok && redo[k].MaxTimestamp < undo.MaxTimestamp && shareColumn(&redo[k], &undo) {
				out = append(out, s.Tablet.Note("kudu.delta.order", s.Tablet.At,
					fmt.Sprintf("rowset %d: the changes in a REDO file end at %s, those of the same column in "+
						"an UNDO file at %s",
						s.ID, TimeText(redo[k].MaxTimestamp), TimeText(undo.MaxTimestamp))))
				return out, nil
			}
		}
	}
	return out, nil
}

// QuickAgree is Agree for some rowsets; it reads nothing but footers.
func (t *Table) QuickAgree(ctx context.Context, tb *Tablet, sets []meta.RowSet) (out []region.Finding, err error) {
	for i := range sets {
		s := &RowSet{RowSet: &sets[i], Tablet: tb, Rows: -1}
		if len(s.Redo) == 0 {
			continue
		}
		if err := t.measure(ctx, s); err != nil {
			return nil, err
		}
		found, err := t.Agree(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// Foreigners reports delta files that cannot belong to their rowset. REDO files are judged by their statistics and,
// with redoRows, by their rows; UNDO files are judged by both if undo is true.
func (t *Table) Foreigners(ctx context.Context, s *RowSet, undo, redoRows bool) (out []region.Finding, err error) {
	for i, b := range slices.Concat(s.Redo, s.Undo) {
		if i >= len(s.Redo) && !undo {
			break
		}
		why, at, err := t.foreign(ctx, s, b, redoRows || i >= len(s.Redo))
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, s.Tablet.Note("kudu.delta.damaged", at,
				fmt.Sprintf("rowset %d: this delta file, block %d, is not its own: %s", s.ID, b.ID, why)))
		}
	}
	return out, nil
}

// foreign returns the reason why a delta file cannot be the rowset's; "" if it can be. A foreign file changes key
// columns, which never change, or, in a table that was never altered, columns that the table does not have. With rows,
// which costs reading a block, it also looks for changes of rows beyond the rowset's last; in REDO files these are
// otherwise found when the changes are applied. Damage is reported when the file is read.
func (t *Table) foreign(ctx context.Context, s *RowSet, b meta.BlockRef, rows bool) (why string, at fault.Span,
	err error) {
	d, places, err := t.OpenDelta(ctx, s, b)
	if err != nil {
		return "", at, unlessDamaged(err)
	}
	if why = s.otherColumn(d); why == "" && rows {
		why, err = s.otherRows(ctx, d)
	}
	return why, places[0].At, unlessDamaged(err)
}

// otherRows names a row beyond the rowset's last that a delta file changes; "" if there is none.
func (s *RowSet) otherRows(ctx context.Context, d *cfile.DeltaFile) (string, error) {
	if s.Rows < 0 {
		return "", nil
	}
	rest, err := d.SeekRow(ctx, s.Rows)
	if err != nil {
		return "", err
	}
	x, err := rest.Next(ctx)
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("it changes row %d, but the rowset has %s", x.Row, fault.Count(s.Rows, "row")), nil
}

// otherColumn names a column that d changes but that no delta file of the rowset can change; "" if there is none.
func (s *RowSet) otherColumn(d *cfile.DeltaFile) string {
	columns := s.Tablet.Schema.Columns
	never := s.Tablet.SchemaVersion == 0 && !slices.ContainsFunc(columns, func(c meta.Column) bool { return c.ID < 0 })
	stats, _ := d.Stats()
	for _, id := range slices.Sorted(maps.Keys(stats.Updates)) {
		i := slices.IndexFunc(columns, func(c meta.Column) bool { return uint32(c.ID) == id })
		switch {
		case stats.Updates[id] == 0:
		case i >= 0 && columns[i].Key:
			return fmt.Sprintf("it changes column %d, a key column", id)
		case i < 0 && never:
			return fmt.Sprintf("it changes column %d, which the table never had", id)
		}
	}
	return ""
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

// CheckBloom returns an error if a bloom filter cannot be the rowset's because it lacks the first or the last key.
// Another rowset's filter has both by chance with a probability of 1e-8, since its false-positive rate is 1e-4.
func (t *Table) CheckBloom(ctx context.Context, s *RowSet, b *cfile.Bloom) error {
	for _, key := range [][]byte{s.Low, s.High} {
		if key == nil {
			continue
		}
		may, err := b.MayContain(ctx, key)
		if err != nil {
			return err
		}
		if !may {
			return fault.Corruptf(fault.Span{Object: s.Tablet.Object}, "rowsets.bloom_block",
				"rowset %d: its bloom filter lacks the rowset's first or last key", s.ID)
		}
	}
	return nil
}
