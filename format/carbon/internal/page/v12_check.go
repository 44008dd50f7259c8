package page

import (
	"bytes"
	"encoding/binary"
	"math"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// Formats 1 and 2 have no checksums. What they say twice is compared instead: the values after row ids are
// sorted, all lie between the smallest and the largest that the footer names, and those of a measure between the
// bounds from which they were made small.

// check12 looks at the values of a dimension before they are brought into the order of the rows.
func (c *Content) check12() error {
	p := c.P
	if p.Version == 3 || c.T.NoVerify || !p.Col.Dimension || p.Col.Typ.Complex() || c.N <= 0 {
		return nil
	}
	lo, hi, bounded := p.MinMax.At(0)
	if !p.Encoders.Has(layout.EncDictionary) {
		return c.checkTexts(lo, hi, bounded)
	}
	if len(c.Raw)%c.N != 0 || len(c.Raw)/c.N > 8 || len(c.Raw) == 0 {
		return nil // the decoder reports
	}
	w := len(c.Raw) / c.N
	lowest, highest := uint64(0), uint64(math.MaxUint64)
	if bounded {
		if len(lo) != w || len(hi) != w {
			return fault.Rel(0, 0, "", "codes of %d bytes, the bounds in the footer have %d and %d", w, len(lo),
				len(hi))
		}
		lowest, highest = wideBE(lo), wideBE(hi)
	}
	last := uint64(0)
	for i := range c.N {
		v := wideBE(c.Raw[i*w : (i+1)*w])
		if v < lowest || v > highest {
			return fault.Rel(i*w, w, "", "code %d is not between %d and %d, as the footer says", v, lowest, highest)
		}
		// what is in lists and structs keeps its order, also with row ids
		if v < last && c.rowids != nil && p.Col.Parent == nil {
			return fault.Rel(i*w, w, "", "code %d follows %d, but the codes are sorted", v, last)
		}
		last = v
	}
	return nil
}

// wideBE is a big-endian number of at most eight bytes.
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

// checkTexts looks at the values of a column without a dictionary.
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
			return fault.Rel(pos+2, n, "", "%.40q is not between %.40q and %.40q, as the footer says", v, lo, hi)
		}
		if c.rowids != nil && i > 0 && c.P.Col.Parent == nil && bytes.Compare(v, last) < 0 {
			return fault.Rel(pos+2, n, "", "%.40q follows %.40q, but the values are sorted", v, last)
		}
		last = v
		pos += 2 + n
	}
	return nil
}

// checkWhole looks at the whole numbers of a measure; what stands for a null is not among the bounds.
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
			return fault.Rel(0, 0, "", "entry %d, %d, is not between %d and %d, as the page's metadata says", i, x,
				min, max)
		}
	}
	return nil
}

// checkNulls compares the bits of the nulls with the page: all entries that are null hold the same bytes, those
// of a made-small 0.
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
			return fault.Rel(i*w, w, "presence", "entry %d is null, but has another value than the first null", i)
		}
	}
	return nil
}

// checkFloats is checkWhole for floating numbers. Rounding may have moved the last digit; NaN has no place
// among bounds, and numbers after one may be beyond those that the writer kept.
func (c *Content) checkFloats(dst []float64, m *layout.MeasureMeta) error {
	max, ok1 := m.Max.(float64)
	min, ok2 := m.Min.(float64)
	if c.T.NoVerify || !ok1 || !ok2 || math.IsNaN(max) || math.IsNaN(min) {
		return nil
	}
	if err := c.checkNulls(); err != nil {
		return err
	}
	room := math.Nextafter(math.Abs(max), math.Inf(1)) - math.Abs(max)
	if m.Digits > 0 {
		room += math.Pow(10, -float64(m.Digits))
	}
	bad := -1
	for i, v := range dst {
		if v != v {
			return nil
		}
		if (v < min-room || v > max+room) && bad < 0 && !c.isNull(i) {
			bad = i
		}
	}
	if bad >= 0 {
		return fault.Rel(0, 0, "", "entry %d, %v, is not between %v and %v, as the page's metadata says", bad,
			dst[bad], min, max)
	}
	return nil
}

// Kinds of values that are kept in different ways. A page says of which its values are, and so does the header.
const (
	anyKind = iota
	kindTruth
	kindWhole
	kindMoment
	kindFloat
	kindDay
)

func kindOfColumn(t layout.DataType) int {
	switch t {
	case layout.TypeBoolean:
		return kindTruth
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		return kindWhole
	case layout.TypeTimestamp:
		return kindMoment
	case layout.TypeFloat, layout.TypeDouble:
		return kindFloat
	case layout.TypeDate:
		return kindDay
	}
	return anyKind
}

func kindOfPage(t layout.StoreType) int {
	switch t {
	case layout.StoreBoolean:
		return kindTruth
	case layout.StoreByte, layout.StoreShort, layout.StoreInt, layout.StoreLong:
		return kindWhole
	case layout.StoreTimestamp:
		return kindMoment
	case layout.StoreFloat, layout.StoreDouble:
		return kindFloat
	}
	return anyKind // of dates there is none: they are codes, or bytes
}

// kinds compares the kind of a page's values with that of its column: the same numbers are other values as dates.
func (c *Content) kinds() error {
	col, own := kindOfColumn(c.P.Col.Typ), kindOfPage(c.meta.Schema)
	if col == own || col == anyKind || own == anyKind {
		return nil
	}
	return fault.Rel(0, 0, "encoder_meta", "values of type %s, the column has %s", c.meta.Schema, c.P.Col.Typ)
}
