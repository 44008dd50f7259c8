package table

import (
	"math"
	"strconv"
	"time"

	"stoa/fault"
)

// hybridShift is the number of low bits of a hybrid time that are a counter; the others are microseconds since 1970.
const hybridShift = 12

// parseTime parses a hybrid time or a calendar time. A calendar time is converted to the first hybrid time that is not
// before it.
func parseTime(v string) (uint64, error) {
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		return min(n, Latest-1), nil // what is asked for is a moment, and not the latest state
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		t, err = time.Parse(time.DateOnly, v)
	}
	if err != nil {
		return 0, fault.Invalidf("kudu: option at=%s: neither a hybrid time (an integer) nor a time as "+
			"2006-01-02T15:04:05Z, a day as 2006-01-02, first or last", v)
	}
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++ // round up
	}
	if us < 0 || us > math.MaxInt64>>hybridShift {
		return 0, fault.Invalidf("kudu: option at=%s: outside of the range of hybrid times", v)
	}
	return uint64(us) << hybridShift, nil
}

// TimeText writes a hybrid time as a number and a UTC time.
func TimeText(t uint64) string {
	return strconv.FormatUint(t, 10) + " (" +
		Calendar(t).Format("2006-01-02T15:04:05.000000Z") + ")"
}

// Calendar is the microsecond of a hybrid time.
func Calendar(t uint64) time.Time { return time.UnixMicro(int64(t >> hybridShift)).UTC() }

// Ceil is the first hybrid time of a microsecond that is not before t.
func Ceil(t uint64) uint64 { return (t + 1<<hybridShift - 1) >> hybridShift << hybridShift }
