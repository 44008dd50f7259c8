package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"stoa/format/cfile"
	"stoa/format/option"
)

// RangeTerm returns a transform of the range column, as Iceberg names them, none of whose values has rows of two
// ranges: month(ts) for ranges of whole months, truncate(100, id) for bounds that are multiples of 100, the column
// itself for single values. It is "" if there is none: for ranges of several columns, bounds at odd times, open ranges
// of numbers, or if it would divide ranges into very many parts.
func (s *PartitionSchema) RangeTerm(sc *Schema, given []Partition) string {
	if !s.Stored || len(s.Range) != 1 || sc.Find(s.Range[0]) < 0 {
		return ""
	}
	c := &sc.Columns[sc.Find(s.Range[0])]
	name := option.Quote(c.Name, "()")
	ranges := map[keyRange]bool{}
	for k := range bucketsOf(given) {
		if k != (keyRange{}) {
			ranges[k] = true
		}
	}
	if len(ranges) == 0 {
		return ""
	}
	if c.Type.IsBinary() {
		return singleTexts(name, ranges)
	}
	numbers, open, ok := s.numbers(sc, ranges)
	switch {
	case !ok:
		return ""
	case c.Type == cfile.UnixtimeMicros:
		return calendarTerm(name, numbers, func(v int64) time.Time { return time.UnixMicro(v).UTC() })
	case c.Type == cfile.Date:
		return calendarTerm(name, numbers, func(v int64) time.Time { return time.Unix(v*86400, 0).UTC() })
	case open:
		return ""
	}
	return truncateTerm(name, numbers, len(ranges))
}

// singleTexts returns the column if each range has only one value: its upper bound is the first text after its lower
// one.
func singleTexts(name string, ranges map[keyRange]bool) string {
	for k := range ranges {
		if k.lower == "" || k.upper != k.lower+"\x00" {
			return ""
		}
	}
	return name
}

// numbers returns the bounds of ranges of a column of integers, dates or times; open: some have only one.
func (s *PartitionSchema) numbers(sc *Schema, ranges map[keyRange]bool) (out []int64, open, ok bool) {
	for k := range ranges {
		for _, key := range []string{k.lower, k.upper} {
			if key == "" {
				open = true
				continue
			}
			v, rest, err := s.rangeValues(sc, []byte(key))
			if err != nil || len(rest) > 0 {
				return nil, false, false
			}
			n, whole := integerOf(sc.Columns[sc.Find(s.Range[0])].Type, v[0])
			if !whole {
				return nil, false, false
			}
			out = append(out, n)
		}
	}
	return out, open, true
}

// integerOf returns the value of an integer, a date or a time in stored form.
func integerOf(t cfile.Type, v []byte) (n int64, ok bool) {
	switch t {
	case cfile.Int8, cfile.Int16, cfile.Int32, cfile.Int64, cfile.Date, cfile.UnixtimeMicros:
	default:
		return 0, false
	}
	sign := byte(0)
	if v[len(v)-1] >= 0x80 {
		sign = 0xff
	}
	full := append(bytes.Clone(v), bytes.Repeat([]byte{sign}, 8-len(v))...)
	return int64(binary.LittleEndian.Uint64(full)), true
}

// calendarTerm returns the longest unit at whose beginnings all bounds are.
func calendarTerm(name string, bounds []int64, at func(v int64) time.Time) string {
	units := []struct {
		name  string
		begin func(t time.Time) time.Time
	}{
		{"year", func(t time.Time) time.Time { return time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"month", func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }},
		{"day", func(t time.Time) time.Time {
			return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
		}},
		{"hour", func(t time.Time) time.Time { return t.Truncate(time.Hour) }},
	}
	for _, u := range units {
		fits := true
		for _, b := range bounds {
			t := at(b)
			fits = fits && u.begin(t).Equal(t)
		}
		if fits {
			return u.name + "(" + name + ")"
		}
	}
	return ""
}

const (
	maxTruncate = 1 << 20 // widths that lakes take
	maxParts    = 16      // parts of a range, on average
)

// truncateTerm returns the truncation to the largest width of which all bounds are multiples.
func truncateTerm(name string, bounds []int64, ranges int) string {
	width, least, most := uint64(0), bounds[0], bounds[0]
	for _, b := range bounds {
		for x := magnitude(b); x != 0; { // the greatest common divisor
			width, x = x, width%x
		}
		least, most = min(least, b), max(most, b)
	}
	for width > maxTruncate && width%2 == 0 {
		width /= 2
	}
	if width == 0 || width > maxTruncate || (uint64(most)-uint64(least))/width > uint64(maxParts*ranges) {
		return ""
	}
	if width == 1 {
		return name
	}
	return fmt.Sprintf("truncate(%d, %s)", width, name)
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
