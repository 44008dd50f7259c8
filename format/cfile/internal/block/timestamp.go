package block

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Kudu's timestamps are in microseconds only. Timestamps of other units are stored as microseconds and returned in
// their own unit. Stored values, keys and statistics are compared in microseconds.

// Micros is the type of a timestamp as it is stored.
var Micros arrow.DataType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// OtherUnit returns the unit of timestamps of type t; false if that is microseconds, or if t is not a timestamp.
func OtherUnit(t arrow.DataType) (arrow.TimeUnit, bool) {
	ts, ok := t.(*arrow.TimestampType)
	if !ok || ts.Unit == arrow.Microsecond {
		return 0, false
	}
	return ts.Unit, true
}

// perMicro is the number of microseconds in a unit or, if it is finer, of units in a microsecond.
func perMicro(u arrow.TimeUnit) (n int64, finer bool) {
	switch u {
	case arrow.Second:
		return 1_000_000, false
	case arrow.Millisecond:
		return 1_000, false
	}
	return 1_000, true
}

// ShowMicros converts stored timestamps to another unit, in place. A value that the other unit cannot represent is a
// relative error, Corrupt, since no writer could have stored it.
func ShowMicros(v []int64, u arrow.TimeUnit) error {
	n, finer := perMicro(u)
	for i, x := range v {
		switch {
		case !finer && x%n != 0:
			return fault.Rel(0, 0, "", "value %d, %d microseconds, is not a whole number of %s", i, x, u)
		case !finer:
			v[i] = x / n
		case x > math.MaxInt64/n || x < math.MinInt64/n:
			return fault.Rel(0, 0, "", "value %d, %d microseconds, is out of range of a timestamp of %s", i, x, u)
		default:
			v[i] = x * n
		}
	}
	return nil
}

// StoredMicros is the inverse of ShowMicros for one value that it returned.
func StoredMicros(x int64, u arrow.TimeUnit) int64 {
	n, finer := perMicro(u)
	if finer {
		return x / n
	}
	return x * n
}
