package datafile

import (
	"encoding/binary"
	"math"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
)

// SurrogateBounds are the bounds of codes of a direct dictionary.
func SurrogateBounds(c *schema.Column, d page.DateRule, lo, hi []byte) *pred.Bounds {
	if len(lo) != 4 || len(hi) != 4 {
		return nil
	}
	a, z := int64(binary.BigEndian.Uint32(lo)), int64(binary.BigEndian.Uint32(hi))
	b := &pred.Bounds{Nulls: -1, Rows: -1}
	if a > schema.NullCode {
		b.Nulls = 0
	} else if a == schema.NullCode { // null is the smallest code; what follows is at least the next one
		a++
	}
	if a > z || z > math.MaxInt32 {
		return nil
	}
	var lowest, most pred.Value
	switch c.Typ {
	case layout.TypeDate:
		lowest, most = pred.Date(a-schema.DateOffset), pred.Date(z-schema.DateOffset)
	case layout.TypeTimestamp:
		lowest, most = schema.Instant((a-2)*d.Unit+d.Cutoff), schema.Instant((z-2)*d.Unit+d.Cutoff)
	default:
		return nil
	}
	b.Min, b.Max = &lowest, &most
	return b
}
