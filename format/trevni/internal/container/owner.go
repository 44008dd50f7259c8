package container

import (
	"context"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
)

// maxOwnerReads is the number of starts that are tried in a file: all those of 256 columns.
const maxOwnerReads = 1 << 16

// CheckOwner returns an error if the blocks of column i are another column's. Blocks do not name their column, and a
// checksum covers them wherever they lie: if bytes were inserted or removed, all blocks of one column may be where the
// header has another. Then every column behind that place is off by the distance between the two starts, the last one
// too; and with that one the file ends.
//
// Files with foreign bytes after their last column are valid. In such a file of very many columns only some columns are
// checked: at most maxOwnerReads starts are tried.
func (f *File) CheckOwner(ctx context.Context, i int, cb *ColumnBlocks) error {
	last := 0
	for k := range f.Header.Columns {
		if f.statedStart(k) > f.statedStart(last) {
			last = k
		}
	}
	own := f.statedStart(last)
	columns := f.sharing(i, cb)
	if f.Header.Columns[i].Start != f.statedStart(i) || columns == 1 {
		return nil // it was searched for, or its descriptors are no other column's
	}
	if ends, err := f.endsFile(ctx, last, own); err != nil || ends {
		return err
	}
	for k := range f.Header.Columns {
		off := f.statedStart(i) - f.statedStart(k)
		if k == last && columns > 0 && f.sumOf(k) != f.sumOf(i) {
			continue // these descriptors are not the last column's
		}
		if off == 0 || own+off < f.Header.Size || own+off > f.At.Len-4 || f.ownerReads >= maxOwnerReads {
			continue
		}
		f.ownerReads++
		moved, err := f.endsFile(ctx, last, own+off)
		if err != nil {
			return err
		}
		if moved {
			return fault.Corruptf(cb.Desc, f.PathOf(i), "the last column is found at %d instead of %d: so these are "+
				"the blocks of column %q", own+off, own, f.Header.Columns[k].Name)
		}
	}
	return nil
}

// sharing returns how many columns have descriptors with the checksum that these have; 0 if these are not those of
// column i by its checksum, or it has none.
func (f *File) sharing(i int, cb *ColumnBlocks) int {
	if f.sums == nil {
		f.sums = map[string]int{}
		for k := range f.Header.Columns {
			f.sums[f.sumOf(k)]++
		}
	}
	if sum := f.sumOf(i); sum != "" && cb.Odd == nil && !f.NoVerify {
		return f.sums[sum]
	}
	return 0
}

// sumOf returns the checksum of a column's descriptors in its metadata; "" if it has none.
func (f *File) sumOf(i int) string {
	sum, _ := layout.Get(f.Header.Columns[i].Meta, layout.DescKey)
	return string(sum)
}

// statedStart returns where the header says that column i begins.
func (f *File) statedStart(i int) int64 {
	if f.stated != nil {
		return f.stated[i]
	}
	return f.Header.Columns[i].Start
}

// endsFile reports whether column i has all rows, and ends with the file, if it begins at start.
func (f *File) endsFile(ctx context.Context, i int, start int64) (bool, error) {
	if start < f.Header.Size || start > f.At.Len-4 {
		return false, nil
	}
	was, had, budget := f.Header.Columns[i].Start, f.columns[i], f.Budget
	f.Header.Columns[i].Start, f.columns[i] = start, descriptorsOf{}
	cb, err := f.descriptors(ctx, i)
	f.Header.Columns[i].Start, f.columns[i], f.Budget = was, had, budget
	if err != nil {
		if IsFault(err) {
			err = nil
		}
		return false, err
	}
	if rows := f.Header.Rows; cb.Rows != rows && (f.Header.Columns[i].MaxRep == 0 || cb.Rows < rows) {
		return false, nil
	}
	if cb.End >= f.At.Len {
		return cb.End == f.At.Len, nil
	}
	return f.Zeros(ctx, f.At.Sub(cb.End, f.At.Len-cb.End))
}
