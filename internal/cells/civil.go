package cells

import (
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/civil"
)

const SecondsPerDay = 86400

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendDate writes YYYY-MM-DD. Years outside 0…9999 are written with as many digits as they need, and a sign, as in
// package time.
func appendDate(dst []byte, days int64) []byte {
	y, m, d := civil.Date(days)
	if y < 0 {
		dst = append(dst, '-')
		y = -y
	}
	if y < 10000 {
		dst = append2(append2(dst, int(y/100)), int(y%100))
	} else {
		dst = strconv.AppendInt(dst, y, 10)
	}
	dst = append2(append(dst, '-'), m)
	return append2(append(dst, '-'), d)
}

// appendClock writes HH:MM:SS.
func appendClock(dst []byte, seconds int64) []byte {
	dst = append2(dst, int(seconds/3600))
	dst = append2(append(dst, ':'), int(seconds/60%60))
	return append2(append(dst, ':'), int(seconds%60))
}

// appendFraction writes '.' and digits decimal digits of n. With trim, trailing zeros are omitted, and the point too if
// no digit is left.
func appendFraction(dst []byte, n int64, digits int, trim bool) []byte {
	if digits == 0 || trim && n == 0 {
		return dst
	}
	var b [10]byte
	b[0] = '.'
	for i := digits; i > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	end := digits + 1
	for trim && b[end-1] == '0' {
		end--
	}
	return append(dst, b[:end]...)
}

// PerSecond returns the number of units in a second, and the number of digits of its fraction.
func PerSecond(u arrow.TimeUnit) (int64, int) {
	switch u {
	case arrow.Second:
		return 1, 0
	case arrow.Millisecond:
		return 1e3, 3
	case arrow.Microsecond:
		return 1e6, 6
	}
	return 1e9, 9
}

func floorDiv(a, b int64) (q, r int64) {
	q = civil.FloorDiv(a, b)
	return q, a - q*b
}

// stamp holds the written form of one timestamp type.
type stamp struct {
	per    int64
	digits int
	loc    *time.Location // if nil, written in UTC with zone as its suffix
	sep    byte           // between date and time
	zone   string
	trim   bool // omit trailing zeros of the fraction
}

// newStamp returns the stamp for type t. If the machine does not know the time zone, it is written in UTC.
func newStamp(t *arrow.TimestampType, sep byte, trim bool) stamp {
	s := stamp{sep: sep, trim: trim}
	s.per, s.digits = PerSecond(t.Unit)
	if t.TimeZone == "" {
		return s
	}
	s.zone = "Z"
	if loc, err := t.GetZone(); err == nil && loc != time.UTC && loc.String() != "UTC" {
		s.loc = loc
	}
	return s
}

// years 0…9999 in seconds since 1970
const (
	minStamp = -62167219200
	maxStamp = 253402300800
)

// append writes v. A year outside 0…9999 has no form in RFC 3339, so v is written as a number instead.
func (s *stamp) append(dst []byte, v int64) []byte {
	sec, frac := floorDiv(v, s.per)
	zone, offset := s.zone, 0
	if s.loc != nil {
		_, offset = time.Unix(sec, 0).In(s.loc).Zone()
	}
	local := sec + int64(offset)
	if local < minStamp || local >= maxStamp {
		return strconv.AppendInt(dst, v, 10)
	}
	days, clock := floorDiv(local, SecondsPerDay)
	dst = append(appendDate(dst, days), s.sep)
	dst = appendFraction(appendClock(dst, clock), frac, s.digits, s.trim)
	if offset == 0 {
		return append(dst, zone...)
	}
	return appendOffset(dst, offset)
}

// appendOffset writes +HH:MM, or +HH:MM:SS for historical local mean times, which have seconds.
func appendOffset(dst []byte, offset int) []byte {
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = append2(append(dst, sign), offset/3600)
	dst = append2(append(dst, ':'), offset/60%60)
	if offset%60 != 0 {
		dst = append2(append(dst, ':'), offset%60)
	}
	return dst
}
