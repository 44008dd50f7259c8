package datafile

import (
	"encoding/binary"
	"math"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
)

// SurrogateBounds returns the bounds of the values whose codes in a direct dictionary are lo to hi (four bytes each,
// big-endian); nil if lo and hi cannot be bounds.
func SurrogateBounds(c *schema.Column, d page.DateRule, lo, hi []byte) *pred.Bounds {
	if len(lo) != 4 || len(hi) != 4 {
		return nil
	}
	a, z := int64(binary.BigEndian.Uint32(lo)), int64(binary.BigEndian.Uint32(hi))
	b := &pred.Bounds{Nulls: -1, Rows: -1}
	if a > schema.NullCode {
		b.Nulls = 0
	} else if a == schema.NullCode { // the smallest code is that of null: values begin at the next code
		a++
	}
	if a > z || z > math.MaxInt32 {
		return nil
	}
	var lowest, highest pred.Value
	switch c.Type {
	case layout.TypeDate:
		lowest, highest = pred.Date(a-schema.DateOffset), pred.Date(z-schema.DateOffset)
	case layout.TypeTimestamp:
		lowest, highest = schema.TimestampValue((a-2)*d.Unit+d.Cutoff), schema.TimestampValue((z-2)*d.Unit+d.Cutoff)
	default:
		return nil
	}
	b.Min, b.Max = &lowest, &highest
	return b
}
