package kudu

import (
	"bytes"
	"io"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// keys compares the keys in the columns with the ad-hoc index and the bloom filter, and checks that they ascend.
func (v *verifier) keys(t *table.Table, s *table.RowSet) error {
	k := &keyCheck{verifier: v, t: t, s: s}
	defer k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer k.reportStrays()
	for row := int64(0); row < s.Rows; row++ {
		if err := k.next(); err != nil {
			return err
		}
		k.countStray(row)
		if fits, err := k.compare(row); err != nil || !fits {
			return err
		}
	}
	if k.absent > 0 {
		v.Report("kudu.bloom.disagrees", fault.Span{Object: s.Tablet.Object}, "",
			"rowset %d: the bloom filter denies %d keys that are there", s.ID, k.absent)
	}
	return nil
}

// keyCheck checks the keys of a rowset, row by row.
type keyCheck struct {
	*verifier
	t *table.Table
	s *table.RowSet

	columns    []*table.Values // of the primary key
	index      *table.Values   // the ad-hoc index; nil: there is none
	filter     *cfile.Bloom    // nil: there is none
	partitions *meta.PartitionFilter

	cells     [][]byte // key cells of the row, from the columns
	key, last []byte   // the encoded key of the row, and of the row before
	absent    int      // keys that the bloom filter lacks

	strays   int64 // rows whose keys are outside of the tablet's partition
	strayRow int64 // the first of them
	strayWhy string
}

// open opens the columns of the key, the ad-hoc index and the bloom filter. close must be called even after an error.
func (k *keyCheck) open() (err error) {
	for i := range k.t.Stored.NumKeys {
		b, ok := k.s.Block(k.t.Stored.Columns[i].ID)
		if !ok {
			return fault.Corruptf(fault.Span{Object: k.s.Tablet.Object}, "rowsets.columns",
				"rowset %d has no block for column %q of the primary key", k.s.ID, k.t.Stored.Columns[i].Name)
		}
		x, err := k.t.Values(k.ctx, k.s, b)
		if err != nil {
			return err
		}
		k.columns = append(k.columns, x)
	}
	if !k.s.Adhoc.IsNull() && !k.idle[k.s.Adhoc.ID] {
		if k.index, err = k.t.Values(k.ctx, k.s, k.s.Adhoc); err != nil {
			return err
		}
	}
	if !k.s.Bloom.IsNull() && !k.idle[k.s.Bloom.ID] {
		if k.filter, err = k.t.Bloom(k.ctx, k.s); err != nil {
			return err
		}
	}
	k.partitions = meta.NewPartitionFilter(k.s.Tablet.Tablet)
	k.cells = make([][]byte, len(k.columns))
	return nil
}

func (k *keyCheck) close() {
	if k.index != nil {
		k.index.It.Close()
	}
	for _, x := range k.columns {
		x.It.Close()
	}
}

// next reads the next row's cells and encodes its key.
func (k *keyCheck) next() error {
	k.last, k.key = k.key, k.last[:0]
	for i, x := range k.columns {
		cell, err := x.Next(k.ctx)
		if err == nil {
			k.key, err = cfile.AppendKey(k.key, k.t.Stored.Columns[i].Type, cell, i == len(k.columns)-1)
		}
		if err != nil {
			return err
		}
		k.cells[i] = cell
	}
	return nil
}

// countStray counts the row if its key is outside of the tablet's partition.
func (k *keyCheck) countStray(row int64) {
	why := k.partitions.Outside(k.cells)
	if why == "" {
		return
	}
	if k.strays++; k.strays == 1 {
		k.strayRow, k.strayWhy = row, why
	}
}

// reportStrays reports the rows that countStray counted.
func (k *keyCheck) reportStrays() {
	if k.strays > 0 {
		k.Report("kudu.keys.partition", k.columns[0].At, "", "rowset %d: the keys of row %d and %d more %s",
			k.s.ID, k.strayRow, k.strays-1, k.strayWhy)
	}
}

// compare compares the key of the row with the previous key, the index, the bloom filter and the bounds of the rowset.
// fits is false if later rows should not be compared: after a key that is not greater than the previous one, or differs
// from the index, all of them may be wrong for the same reason.
func (k *keyCheck) compare(row int64) (fits bool, err error) {
	s := k.s
	if row > 0 && bytes.Compare(k.last, k.key) >= 0 {
		k.Report("kudu.keys.order", k.columns[0].At, "",
			"rowset %d: the key of row %d is not greater than the one before", s.ID, row)
		return false, nil
	}
	if k.index != nil {
		indexed, err := k.index.Next(k.ctx)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(indexed, k.key) {
			k.Report("kudu.index.disagrees", k.index.At, "",
				"rowset %d: the key of row %d in the ad-hoc index differs from the columns", s.ID, row)
			return false, nil
		}
	}
	if k.filter != nil {
		may, err := k.filter.MayContain(k.ctx, k.key)
		if err != nil {
			return false, err
		}
		if !may {
			k.absent++
		}
	}
	if row == 0 && s.Low != nil && !bytes.Equal(s.Low, k.key) || row == s.Rows-1 && s.High != nil &&
		!bytes.Equal(s.High, k.key) {
		k.Report("kudu.keys.range", fault.Span{Object: s.Tablet.Object}, "",
			"rowset %d: its first or last key differs from its metadata", s.ID)
	}
	return true, nil
}

// allRows makes a finding about a column without a footer one about all rows of its rowset, which the footer of another
// column tells.
func (v *verifier) allRows(x *region.Finding, kind string, t *table.Table, tb *table.Tablet, s *meta.RowSet) {
	if kind != "column" || x.Lost >= 0 || x.Code != "cfile.footer.damaged" {
		return
	}
	for _, b := range s.Blocks() {
		if b.Kind != "column" {
			continue
		}
		if f, _, err := t.FooterIn(v.ctx, tb.Replica, b.BlockRef); err == nil && f != nil {
			x.Rows, x.Lost = [2]int64{0, f.NumValues}, f.NumValues
			return
		}
	}
}

// direction checks whether the changes of each row go forward in time in a REDO file, and back in an UNDO file. The
// file itself does not say which it is.
func (v *verifier) direction(t *table.Table, s *table.RowSet, b meta.BlockRef, undo bool) error {
	d, places, err := t.OpenDelta(v.ctx, s, b)
	if err != nil {
		return err
	}
	all, err := d.All(v.ctx)
	if err != nil {
		return err
	}
	row, ts := int64(-1), uint64(0)
	for {
		x, err := all.Next(v.ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if x.Row == row && x.Timestamp != ts && (x.Timestamp < ts) != undo {
			what := map[bool]string{false: "REDO", true: "UNDO"}[undo]
			v.Report("kudu.delta.order", places[0].At, "",
				"rowset %d: this %s file, block %d, has a change of row %d at %s, followed by one at %s", s.ID,
				what, b.ID, row, table.TimeText(ts), table.TimeText(x.Timestamp))
			return nil
		}
		row, ts = x.Row, x.Timestamp
	}
}
