package page

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/civil"
)

// addCodes appends the codes of a column with a global dictionary; a coder has replaced the values by codes.
func (x *Cells) addCodes(c *schema.Column, a arrow.Array, from, to int) error {
	codes, ok := a.(*array.Int32)
	if !ok {
		return fault.Bugf("carbon: values of %s where codes of %s are wanted", a.DataType(), c.Name)
	}
	for _, v := range codes.Int32Values()[from:to] {
		if v == schema.NullCode {
			x.setNull(x.N)
		}
		x.Ints = append(x.Ints, int64(v))
		x.N++
	}
	return nil
}

// byJava converts dates and times from entry at on to Java's calendar, in which formats 1 and 2 are read.
func (x *Cells) byJava(c *schema.Column, at int) {
	switch c.Type {
	case layout.TypeDate:
		for i, d := range x.Ints[at:] {
			x.Ints[at+i] = civil.Hybrid(d)
		}
	case layout.TypeTimestamp:
		for i, ms := range x.Ints[at:] {
			if ms < civil.Switch*dayMillis {
				day := civil.FloorDiv(ms, dayMillis)
				x.Ints[at+i] += (civil.Hybrid(day) - day) * dayMillis
			}
		}
	}
}

// wholeSeconds checks timestamps from entry at on for a direct dictionary, whose codes count seconds since 1970, where
// code 2 is second 0. from is the index, in the array that was added, of entry at.
func (x *Cells) wholeSeconds(c *schema.Column, at, from int, o *schema.WriteOptions) error {
	if o.Version < 3 {
		x.byJava(c, at)
	}
	if c.Type != layout.TypeTimestamp || !c.Encoders.Has(layout.EncDirectDictionary) {
		return nil
	}
	for i, ms := range x.Ints[at:] {
		rest := ms % 1000
		switch {
		case x.Null(at + i):
			continue
		case rest != 0 && !o.Truncate:
			return ValueErrorf(from+i, "the time has parts of a second, which the column's direct dictionary "+
				"cannot keep (writing option timestamps=truncate drops them)")
		case ms < 0 || ms/1000 > math.MaxInt32-2:
			return ValueErrorf(from+i, "the time %d ms is beyond what a direct dictionary can say (1970 to 2038)", ms)
		}
		x.Ints[at+i] = ms - rest
	}
	return nil
}
