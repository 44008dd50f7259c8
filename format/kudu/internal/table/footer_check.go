package table

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
)

// A superblock names blocks by id, and a block does not record which tablet or column it belongs to. But its footer
// must agree with the superblock and the rowset in kind, type, nullability, encoding, compression, the keys of the
// first and last row, and the number of rows. Blocks of columns that agree in all of these are indistinguishable.

// opener returns a function that opens the block b of a rowset. A block that cannot be the right one is Corrupt.
func (t *Table) opener(s *RowSet, b meta.BlockRef) func(context.Context, Source, fault.Span,
	format.OpenOptions) (*cfile.Reader, error) {
	return func(ctx context.Context, src Source, at fault.Span, o format.OpenOptions) (*cfile.Reader, error) {
		r, err := cfile.OpenAt(ctx, src, at, o)
		if err != nil {
			return nil, err
		}
		f := r.Footer()
		if field, why := t.footerCheck(s, b, r.Kind(), &f); why != "" {
			return nil, fault.Corruptf(r.FooterAt(), field, "%s", why)
		}
		return r, nil
	}
}

// footerCheck returns the reason why a CFile cannot be the block b of a rowset, and the field of its footer that shows
// it; "" if it can be.
func (t *Table) footerCheck(s *RowSet, b meta.BlockRef, kind cfile.Kind, f *cfile.Footer) (field, why string) {
	if s.Rows >= 0 && f.NumValues != s.Rows && kind != cfile.KindBloom && kind != cfile.KindDelta {
		field, why = "footer.num_values", fmt.Sprintf("expected %d, the rows of the rowset, found %d", s.Rows,
			f.NumValues)
	}
	if b.ID == s.Adhoc.ID {
		if f.Type != cfile.Binary || f.ValIdx == nil || f.Nullable || f.Array() || kind == cfile.KindDelta ||
			kind == cfile.KindBloom {
			return "footer", fmt.Sprintf("the block is a %s of %s values, not an ad-hoc index of keys", kind,
				meta.TypeName(f.Type))
		}
		return field, why
	}
	if kind != cfile.KindColumn {
		return "footer", fmt.Sprintf("the block is a %s, not a column file", kind)
	}
	for _, x := range s.Columns {
		if i := t.Stored.Find(x.Column); x.ID == b.ID && i >= 0 { // nothing is known about dropped columns
			if f, w := s.footerCheckColumn(&t.Stored.Columns[i], t.Stored.NumKeys, f); w != "" {
				return f, w
			}
		}
	}
	return field, why
}

// footerCheckColumn is footerCheck for the block of column c. keys is the number of the table's key columns.
func (s *RowSet) footerCheckColumn(c *meta.Column, keys int, f *cfile.Footer) (field, why string) {
	switch {
	case f.Type != c.Type || f.Array() != c.Array:
		return "footer.data_type", fmt.Sprintf("the block holds %s values, column %q has type %s",
			meta.TypeName(f.Type), c.Name, c.TypeText())
	case f.Nullable != c.Nullable && !c.Array:
		return "footer.is_type_nullable", fmt.Sprintf("%t, for column %q it must be %t", f.Nullable, c.Name, c.Nullable)
	}
	low, hasLow := f.Get(meta.KeyMin)
	high, hasHigh := f.Get(meta.KeyMax)
	if alone := c.Key && keys == 1; !alone && (hasLow || hasHigh) {
		return "footer.metadata", fmt.Sprintf("the block holds whole keys, but column %q is not the whole key", c.Name)
	} else if alone && (s.MinKey != nil && hasLow && string(low) != string(s.MinKey) || s.MaxKey != nil &&
		hasHigh && string(high) != string(s.MaxKey)) {
		return "footer.metadata", fmt.Sprintf(
			"the block's keys go from %x to %x, those of the rowset from %x to %x", low, high, s.MinKey, s.MaxKey)
	} else if alone && !hasLow && f.PosIdx != nil && f.NumValues > 0 { // the substitute of a lost footer has no index
		return "footer.metadata", fmt.Sprintf("no first and last key, but column %q is the key", c.Name)
	}
	if s.Tablet.SchemaVersion > 0 { // an ALTER may have changed both, but blocks keep those that they were written with
		return "", ""
	}
	switch {
	case c.Encoding != cfile.AutoEncoding && f.Encoding != c.Encoding:
		return "footer.encoding", fmt.Sprintf("%s, for column %q it must be %s", f.Encoding, c.Name, c.Encoding)
	case c.Compression != cfile.DefaultCompression && f.Compression != c.Compression:
		return "footer.compression",
			fmt.Sprintf("%s, for column %q it must be %s", f.Compression, c.Name, c.Compression)
	}
	return "", ""
}
