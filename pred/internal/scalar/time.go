package scalar

import (
	"math"
	"strings"

	"stoa/fault"
	"stoa/internal/civil"
)

// parts are the parts of a date or timestamp that are functions.
var parts = map[string]func(day, nanos int64) int64{
	"year":    func(day, _ int64) int64 { y, _, _ := civil.Date(day); return y },
	"quarter": func(day, _ int64) int64 { _, m, _ := civil.Date(day); return int64(m+2) / 3 },
	"month":   func(day, _ int64) int64 { _, m, _ := civil.Date(day); return int64(m) },
	"day":     func(day, _ int64) int64 { _, _, d := civil.Date(day); return int64(d) },
	"hour":    func(_, nanos int64) int64 { return nanos / 3600e9 },
	"minute":  func(_, nanos int64) int64 { return nanos / 60e9 % 60 },
	"second":  func(_, nanos int64) int64 { return nanos / 1e9 % 60 },
}

// Part returns a part of a date or timestamp, in UTC.
func Part(name string, x *Node) (*Node, error) {
	f := parts[name]
	switch {
	case x.Type.Kind == Null:
		return null, nil
	case !x.Type.isDay() && (x.Type.Kind != Time || name != "hour" && name != "minute" && name != "second"):
		return nil, fault.Invalidf("%s is for dates and timestamps, not for %s", name, x.Type)
	case x.Type.Kind == Time:
		return ints(x, func(v *vec, i int) int64 { return f(0, v.ints[i]) }), nil
	}
	per := x.Type.Per
	return ints(x, func(v *vec, i int) int64 { return f(split(v.ints[i], per)) }), nil
}

// split returns the day of an instant, and the nanoseconds since midnight.
func split(v, per int64) (day, nanos int64) {
	sec, nanos := instant(v, per)
	day = civil.FloorDiv(sec, daySeconds)
	return day, (sec-day*daySeconds)*1e9 + nanos
}

// Units are those of date_trunc, by the names that it knows.
var units = map[string]string{}

func init() {
	for _, u := range []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"} {
		units[u], units[u+"s"] = u, u
	}
}

// UnitOf returns the unit of a name.
func UnitOf(name string) (string, bool) {
	u, ok := units[strings.ToLower(name)]
	return u, ok
}

// truncDay returns the first day of the unit that day is in; n units later, if n is not 0.
func truncDay(unit string, day, n int64) int64 {
	y, m, _ := civil.Date(day)
	switch unit {
	case "year":
		return civil.Days(y+n, 1, 1)
	case "quarter":
		return firstOf(y, int64(m-1)/3*3+3*n)
	case "month":
		return firstOf(y, int64(m-1)+n)
	case "week":
		return day - mod(day+3, 7) + 7*n // 1970-01-01 was a Thursday
	}
	return day + n
}

// firstOf returns the first day of a month, which is counted from 0 and may be 12 or more.
func firstOf(y, m int64) int64 {
	return civil.Days(y+civil.FloorDiv(m, 12), int(mod(m, 12))+1, 1)
}

func mod(a, b int64) int64 { return a - civil.FloorDiv(a, b)*b }

// Trunc returns the instant at which the unit that x is in begins, in UTC; of a date, a date.
func Trunc(unit string, x *Node) (*Node, error) {
	switch {
	case x.Type.Kind == Null:
		return null, nil
	case !x.Type.isDay():
		return nil, fault.Invalidf("date_trunc is for dates and timestamps, not for %s", x.Type)
	}
	var n *Node
	n = node(x.Type, []*Node{x}, func(r *run, live []bool) *vec {
		a := x.eval(r, live)
		v := r.alloc(x.Type, r.nulls(a))
		for i := range v.ints {
			if !asked(live, v.null, i) {
				continue
			}
			var ok bool
			if v.ints[i], ok = trunc(unit, a.ints[i&a.mask], x.Type); !ok {
				r.fail(n.At, "the beginning of the "+unit+" is out of the range of timestamps")
			}
		}
		return v
	})
	n.Fails = n.Fails || x.Type.Kind == Timestamp
	return n, nil
}

func trunc(unit string, v int64, t Type) (int64, bool) {
	if small := seconds[unit]; small != 0 {
		if t.Kind == Date {
			return v, true
		}
		step := small * t.Per
		down := mod(v, step)
		return v - down, v >= math.MinInt64+down
	}
	if t.Kind == Date {
		d := truncDay(unit, v, 0)
		return d, d == int64(int32(d))
	}
	day, _ := split(v, t.Per)
	return multiply(truncDay(unit, day, 0), daySeconds*t.Per)
}

// seconds are the units shorter than a day.
var seconds = map[string]int64{"hour": 3600, "minute": 60, "second": 1}

// From returns the first instant from sec and nanos on at which a unit begins; the begin of the next one, if after is
// set and one begins just there. It is false if that is far out of the range of all timestamps.
func From(unit string, sec, nanos int64, after bool) (int64, bool) {
	const most = 1 << 57 // seconds: years within 4·10^9
	if sec > most || sec < -most {
		return 0, false
	}
	var begin, next int64
	if step := seconds[unit]; step != 0 {
		begin = sec - mod(sec, step)
		next = begin + step
	} else {
		day := civil.FloorDiv(sec, daySeconds)
		begin, next = truncDay(unit, day, 0)*daySeconds, truncDay(unit, truncDay(unit, day, 0), 1)*daySeconds
	}
	if begin == sec && nanos == 0 && !after {
		return begin, true
	}
	return next, true
}
