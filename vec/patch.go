package vec

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// Patch is the changes to the rows [First, First+N) of a row group after decoding: rows that are removed, and cells
// that get another value.
type Patch struct {
	First   int64
	N       int
	Drop    *Sel // rows to remove; nil = none
	Cols    []ColPatch
	Suspect []Suspect // rows and cells that must not be returned as they are
}

// Suspect is rows whose changes are lost to damage.
type Suspect struct {
	Rows Range // of the row group; cut to those of the patch
	Col  int   // the physical column whose cells may be outdated; -1: the rows may have been deleted
	Err  error // why, with the place
}

// ColPatch is new values in one physical column.
type ColPatch struct {
	Col  int
	Rows []int32 // ascending, relative to the patch's First
	Vals *Vector // one entry per row
}

// Not returns the set of the entries that are not in s.
func (s *Sel) Not() *Sel {
	b := make([]byte, (s.N+7)/8)
	if s.Bits == nil {
		return NewSel(b, s.N)
	}
	for i := range b {
		b[i] = ^s.Bits[i]
	}
	return NewSel(b, s.N)
}

// Overwrite replaces the entries rows (ascending) by those of vals, one each. Both vectors have the same type.
func (v *Vector) Overwrite(rows []int32, vals *Vector) error {
	if len(rows) != vals.n {
		return fmt.Errorf("%d values for %d rows", vals.n, len(rows))
	}
	if len(rows) == 0 {
		return nil
	}
	if v.kind == strs || v.kind == list {
		return v.rebuild(rows, vals)
	}
	if vals.nulls > 0 || v.valid != nil {
		b := v.Validity()
		for k, r := range rows {
			was, is := bitutil.BitIsSet(b, int(r)), vals.Valid(k)
			switch {
			case was && !is:
				v.nulls++
			case !was && is:
				v.nulls--
			}
			bitutil.SetBitTo(b, int(r), is)
		}
	}
	if v.kind == boolean {
		b, s := v.Bits(), vals.Bits()
		for k, r := range rows {
			bitutil.SetBitTo(b, int(r), bitutil.BitIsSet(s, k))
		}
		return nil
	}
	d, s, w := v.Data(0), vals.Data(0), v.width
	for k, r := range rows {
		copy(d[int(r)*w:][:w], s[k*w:])
	}
	return nil
}

// rebuild is Overwrite for types of variable length: it copies all entries to a new vector.
func (v *Vector) rebuild(rows []int32, vals *Vector) error {
	out, err := New(v.Type, v.mem)
	if err != nil {
		return err
	}
	at := 0
	for k, r := range rows {
		if err := out.appendRun(v, at, int(r)); err != nil {
			out.Release()
			return err
		}
		if err := out.appendRun(vals, k, k+1); err != nil {
			out.Release()
			return err
		}
		at = int(r) + 1
	}
	if err := out.appendRun(v, at, v.n); err != nil {
		out.Release()
		return err
	}
	v.Release()
	*v = *out
	return nil
}
