package page

import (
	"bytes"
	"encoding/binary"
	"math"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// Formats 1 and 2 have no checksums. Redundant information is compared instead: the values of a page with row ids are
// sorted, those of a dimension lie between min and max in the footer, and those of a measure lie between min and max in
// the page's metadata.

// checkV12 checks the values of a dimension before they are reordered by row.
func (c *Content) checkV12() error {
	p := c.P
	if p.Version == 3 || c.T.NoVerify || !p.Col.Dimension || p.Col.Type.Complex() || c.N <= 0 {
		return nil
	}
	lo, hi, bounded := p.MinMax.At(0)
	if !p.Encoders.Has(layout.EncDictionary) {
		return c.checkTexts(lo, hi, bounded)
	}
	if len(c.Raw)%c.N != 0 || len(c.Raw)/c.N > 8 || len(c.Raw) == 0 {
		return nil // the decoder reports it
	}
	w := len(c.Raw) / c.N
	lowest, highest := uint64(0), uint64(math.MaxUint64)
	if bounded {
		if len(lo) != w || len(hi) != w {
			return fault.Rel(0, 0, "", "expected bounds of %d bytes, as the codes, found %d and %d", w, len(lo),
				len(hi))
		}
		lowest, highest = wideBE(lo), wideBE(hi)
	}
	last := uint64(0)
	for i := range c.N {
		v := wideBE(c.Raw[i*w : (i+1)*w])
		if v < lowest || v > highest {
			return fault.Rel(i*w, w, "", "expected a code from %d to %d by the footer, found %d", lowest, highest, v)
		}
		// children of lists and structs are not sorted, even if there are row ids
		if v < last && c.rowids != nil && p.Col.Parent == nil {
			return fault.Rel(i*w, w, "", "expected a code of at least %d, as codes are sorted, found %d", last, v)
		}
		last = v
	}
	return nil
}

// wideBE reads a big-endian number of at most eight bytes.
func wideBE(b []byte) (v uint64) {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// checkTexts is checkV12 for a column without a dictionary.
func (c *Content) checkTexts(lo, hi []byte, bounded bool) error {
	var last []byte
	pos := 0
	for i := range c.N {
		n, err := c.length(pos, 2)
		if err != nil {
			return err
		}
		v := c.Raw[pos+2 : pos+2+n]
		if bounded && (bytes.Compare(v, lo) < 0 || bytes.Compare(v, hi) > 0) {
			return fault.Rel(pos+2, n, "", "expected a value from %.40q to %.40q by the footer, found %.40q", lo, hi, v)
		}
		if c.rowids != nil && i > 0 && c.P.Col.Parent == nil && bytes.Compare(v, last) < 0 {
			return fault.Rel(pos+2, n, "", "expected at least %.40q, as values are sorted, found %.40q", last, v)
		}
		last = v
		pos += 2 + n
	}
	return nil
}

// checkWhole checks the whole numbers of a measure against min and max, which do not cover the values stored for nulls.
func checkWhole[T integer](c *Content, dst []T, m *layout.MeasureMeta) error {
	max, ok1 := m.Max.(int64)
	min, ok2 := m.Min.(int64)
	if c.T.NoVerify || !ok1 || !ok2 {
		return nil
	}
	if err := c.checkNulls(); err != nil {
		return err
	}
	for i, v := range dst {
		if x := int64(v); (x < min || x > max) && !c.isNull(i) {
			return fault.Rel(0, 0, "", "entry %d: expected %d to %d by encoder_meta, found %d", i, min, max, x)
		}
	}
	return nil
}

// checkNulls compares the bits of the nulls with the values: all nulls must have the same bytes, which are those of an
// encoded 0.
func (c *Content) checkNulls() error {
	if c.T.NoVerify || c.N == 0 {
		return nil
	}
	w := len(c.Raw) / c.N
	var first []byte
	for i := range c.N {
		if !c.isNull(i) {
			continue
		}
		v := c.Raw[i*w : (i+1)*w]
		if first == nil {
			first = v
		}
		if !bytes.Equal(v, first) {
			return fault.Rel(i*w, w, "presence",
				"entry %d is null: expected the bytes of the first null, %x, found %x", i,
				first, v)
		}
	}
	return nil
}

// checkFloats is checkWhole for floating-point numbers. Rounding may have changed the last digit. If the page has a NaN
// nothing is checked, because the writer's min and max may not cover the values after it.
func (c *Content) checkFloats(dst []float64, m *layout.MeasureMeta) error {
	max, ok1 := m.Max.(float64)
	min, ok2 := m.Min.(float64)
	if c.T.NoVerify || !ok1 || !ok2 || math.IsNaN(max) || math.IsNaN(min) {
		return nil
	}
	if err := c.checkNulls(); err != nil {
		return err
	}
	tolerance := math.Nextafter(math.Abs(max), math.Inf(1)) - math.Abs(max)
	if m.Digits > 0 {
		tolerance += math.Pow(10, -float64(m.Digits))
	}
	bad := -1
	for i, v := range dst {
		if v != v {
			return nil
		}
		if (v < min-tolerance || v > max+tolerance) && bad < 0 && !c.isNull(i) {
			bad = i
		}
	}
	if bad >= 0 {
		return fault.Rel(0, 0, "", "entry %d: expected %v to %v by encoder_meta, found %v", bad, min, max, dst[bad])
	}
	return nil
}

// Kinds of values, by the way they are stored. The page and the schema each name a type, and the kinds of both must be
// equal.
const (
	anyKind = iota
	kindBool
	kindWhole
	kindTimestamp
	kindFloat
	kindDate
)

func kindOfColumn(t layout.DataType) int {
	switch t {
	case layout.TypeBoolean:
		return kindBool
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		return kindWhole
	case layout.TypeTimestamp:
		return kindTimestamp
	case layout.TypeFloat, layout.TypeDouble:
		return kindFloat
	case layout.TypeDate:
		return kindDate
	}
	return anyKind
}

func kindOfPage(t layout.StoreType) int {
	switch t {
	case layout.StoreBoolean:
		return kindBool
	case layout.StoreByte, layout.StoreShort, layout.StoreInt, layout.StoreLong:
		return kindWhole
	case layout.StoreTimestamp:
		return kindTimestamp
	case layout.StoreFloat, layout.StoreDouble:
		return kindFloat
	}
	return anyKind // pages have no dates as such: they are stored as codes or bytes
}

// checkKind compares the kind of a page's values with that of its column: otherwise numbers could be read as dates,
// with wrong values.
func (c *Content) checkKind() error {
	col, own := kindOfColumn(c.P.Col.Type), kindOfPage(c.meta.Schema)
	if col == own || col == anyKind || own == anyKind {
		return nil
	}
	return fault.Rel(0, 0, "encoder_meta", "expected values for a column of type %s, found type %s", c.P.Col.Type,
		c.meta.Schema)
}
