// Package literal reads and writes days, times and numbers as the texts of literals.
package literal

import (
	"fmt"
	"math"
	"strings"

	"stoa/internal/civil"
)

// Days and times as text, in the calendar of internal/civil.

// FormatDate returns the day that is this many days after 1970-01-01 as YYYY-MM-DD.
func FormatDate(days int64) string {
	y, m, d := civil.Date(days)
	switch {
	case y < 0:
		return fmt.Sprintf("-%04d-%02d-%02d", -y, m, d)
	case y > 9999:
		return fmt.Sprintf("+%d-%02d-%02d", y, m, d)
	}
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
}

// FormatTime returns the time of day that is this many nanoseconds after midnight.
func FormatTime(nanos int64) string {
	s := fmt.Sprintf("%02d:%02d:%02d", nanos/3600e9, nanos/60e9%60, nanos/1e9%60)
	if f := nanos % 1e9; f != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%09d", f), "0")
	}
	return s
}

// FormatTimestamp returns an instant in UTC.
func FormatTimestamp(sec int64, nanos int32) string {
	days := civil.FloorDiv(sec, DaySeconds)
	return FormatDate(days) + "T" + FormatTime((sec-days*DaySeconds)*1e9+int64(nanos)) + "Z"
}

// DaySeconds is the number of seconds of a day, MaxDays the last day whose seconds fit into 64 bits.
const (
	DaySeconds = 24 * 60 * 60
	MaxDays    = math.MaxInt64/DaySeconds - 1
)

// number parses exactly n digits (at least n if more is set) and returns the rest.
func number(s string, n int, more bool) (v int64, rest string, ok bool) {
	i := 0
	for i < len(s) && i < 13 && (more || i < n) && s[i] >= '0' && s[i] <= '9' {
		v = v*10 + int64(s[i]-'0')
		i++
	}
	return v, s[i:], i >= n && i < 13
}

// cutDate parses a date at the start of s.
func cutDate(s string) (days int64, rest string, ok bool) {
	neg := strings.HasPrefix(s, "-")
	y, s, ok1 := number(strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+"), 4, true)
	if !ok1 || s == "" || s[0] != '-' {
		return 0, "", false
	}
	m, s, ok2 := number(s[1:], 2, false)
	if !ok2 || s == "" || s[0] != '-' {
		return 0, "", false
	}
	d, s, ok3 := number(s[1:], 2, false)
	if neg {
		y = -y
	}
	if !ok3 || m < 1 || m > 12 || d < 1 || int(d) > civil.MonthDays(y, int(m)) {
		return 0, "", false
	}
	days = civil.Days(y, int(m), int(d))
	return days, s, days <= MaxDays+2 && days >= -MaxDays-2
}

// cutTime parses a time of day at the start of s.
func cutTime(s string) (nanos int64, rest string, ok bool) {
	h, s, ok1 := number(s, 2, false)
	if !ok1 || h > 23 || s == "" || s[0] != ':' {
		return 0, "", false
	}
	m, s, ok2 := number(s[1:], 2, false)
	if !ok2 || m > 59 {
		return 0, "", false
	}
	nanos = (h*60 + m) * 60e9
	if s == "" || s[0] != ':' {
		return nanos, s, true
	}
	sec, s, ok3 := number(s[1:], 2, false)
	if !ok3 || sec > 59 {
		return 0, "", false
	}
	nanos += sec * 1e9
	if s == "" || s[0] != '.' {
		return nanos, s, true
	}
	f, rest, ok4 := number(s[1:], 1, true)
	n := len(s) - 1 - len(rest)
	for i := n; i < 9; i++ {
		f *= 10
	}
	return nanos + f, rest, ok4 && n <= 9
}

// ParseDate returns the days since 1970-01-01 of a day as YYYY-MM-DD.
func ParseDate(s string) (days int64, ok bool) {
	days, rest, ok := cutDate(s)
	return days, ok && rest == "" && days <= MaxDays && days >= -MaxDays
}

// ParseTime returns the nanoseconds since midnight of HH:MM[:SS[.fraction]].
func ParseTime(s string) (nanos int64, ok bool) {
	nanos, rest, ok := cutTime(s)
	return nanos, ok && rest == ""
}

// ParseTimestamp returns the seconds since 1970, rounded down, and nanoseconds of a date with or without time and zone.
func ParseTimestamp(s string) (sec int64, nanos int32, ok bool) {
	days, s, ok := cutDate(s)
	if !ok || s == "" {
		return days * DaySeconds, 0, ok && days <= MaxDays && days >= -MaxDays
	}
	if s[0] != 'T' && s[0] != 't' && s[0] != ' ' {
		return 0, 0, false
	}
	t, s, ok := cutTime(s[1:])
	if !ok {
		return 0, 0, false
	}
	zone, ok := parseZone(s)
	sec = days*DaySeconds + t/1e9 - zone // may wrap around in the first and last representable days
	off := civil.FloorDiv(sec, DaySeconds) - days
	return sec, int32(t % 1e9), ok && off >= -2 && off <= 2
}

// parseZone parses nothing, Z, or an offset; it returns seconds east of Greenwich.
func parseZone(s string) (sec int64, ok bool) {
	s = strings.TrimPrefix(s, " ")
	switch {
	case s == "", s == "Z", s == "z", strings.EqualFold(s, "UTC"):
		return 0, true
	case s[0] != '+' && s[0] != '-':
		return 0, false
	}
	h, rest, ok := number(s[1:], 2, false)
	if !ok || h > 23 {
		return 0, false
	}
	var m int64
	if rest != "" {
		m, rest, ok = number(strings.TrimPrefix(rest, ":"), 2, false)
		if !ok || rest != "" || m > 59 {
			return 0, false
		}
	}
	sec = h*3600 + m*60
	if s[0] == '-' {
		sec = -sec
	}
	return sec, true
}
