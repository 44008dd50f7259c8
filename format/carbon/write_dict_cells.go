package carbon

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// addCodes appends codes of a column with a global dictionary, which a coder made of its values.
func (x *cells) addCodes(c *column, a arrow.Array, from, to int) error {
	codes, ok := a.(*array.Int32)
	if !ok {
		return fault.Bugf("carbon: values of %s where codes of %s are wanted", a.DataType(), c.name)
	}
	for _, v := range codes.Int32Values()[from:to] {
		if v == nullCode {
			x.setNull(x.n)
		}
		x.ints = append(x.ints, int64(v))
		x.n++
	}
	return nil
}

// wholeSeconds checks timestamps from entry at on for a direct dictionary, whose codes count seconds since 1970 from code 2. from is the
// entry of at in what was added.
func (x *cells) wholeSeconds(c *column, at, from int, o *writeOptions) error {
	if c.typ != typeTimestamp || !c.encoders.has(encDirectDictionary) {
		return nil
	}
	for i, ms := range x.ints[at:] {
		rest := ms % 1000
		switch {
		case x.null(at + i):
			continue
		case rest != 0 && !o.truncate:
			return badValue(from+i, "the time has parts of a second, which the column's direct dictionary cannot keep (--opt timestamps=truncate drops them)")
		case ms < 0 || ms/1000 > math.MaxInt32-2:
			return badValue(from+i, "the time %d ms is beyond what a direct dictionary can say (1970 to 2038)", ms)
		}
		x.ints[at+i] = ms - rest
	}
	return nil
}
