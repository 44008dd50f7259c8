package page

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/civil"
	"stoa/vec"
)

// Java's calendar, by which CarbonData's SDK and Spark before 3.0 count days, is Julian before 15 October 1582.

// Switch is the day, from 1970-01-01, of 15 October 1582, the first one of the Gregorian calendar.
const Switch = -141427

// Gregorian is the day that the proleptic Gregorian calendar calls as the Julian one calls day, which is before Switch:
// the date that was meant. 29 February of a year that is only in the Julian calendar a leap year becomes 1 March.
func Gregorian(day int64) int64 {
	y, m, d := julian(day)
	return civil.Days(y, m, d)
}

// julian is the date of a day in the Julian calendar.
func julian(day int64) (year int64, month, dayOfMonth int) {
	n := day + 719470 // from 0000-03-01 of the Julian calendar
	era := civil.FloorDiv(n, 1461)
	ofEra := n - era*1461
	yearOfEra := (ofEra - ofEra/1460) / 365
	ofYear := int(ofEra - 365*yearOfEra)
	fromMarch := (5*ofYear + 2) / 153
	dayOfMonth = ofYear - (153*fromMarch+2)/5 + 1
	month = (fromMarch+2)%12 + 1
	if year = era*4 + yearOfEra; month <= 2 {
		year++
	}
	return year, month, dayOfMonth
}

// Hybrid is the day of Java's calendar that is called as day is in the proleptic Gregorian one. The ten days that were
// left out in October 1582 are counted on from the 4th.
func Hybrid(day int64) int64 {
	if day >= Switch {
		return day
	}
	y, m, d := civil.Date(day)
	if m <= 2 {
		y--
	}
	ofYear := int64((153*((m+9)%12)+2)/5 + d - 1)
	return y*365 + civil.FloorDiv(y, 4) + ofYear - 719470
}

// Old counts the dates and times of v that are from before the switch, by whatever calendar they are counted.
func Old(v *vec.Vector) (n int64) {
	switch v.Type.ID() {
	case arrow.DATE32:
		for i, d := range vec.Fixed[int32](v, 0) {
			if d < Switch && v.Valid(i) {
				n++
			}
		}
	case arrow.TIMESTAMP:
		for i, ms := range vec.Fixed[int64](v, 0) {
			if ms < Switch*dayMillis && v.Valid(i) {
				n++
			}
		}
	}
	return n
}

// Rebase makes the dates and times of dst from entry at on, which are counted by Java's calendar, those that were
// meant, and returns how many that changed.
func Rebase(dst *vec.Vector, at int) (changed int64) {
	switch dst.Type.ID() {
	case arrow.DATE32:
		days := vec.Fixed[int32](dst, at)
		for i, d := range days {
			if d < Switch && dst.Valid(at+i) {
				days[i] = int32(max(math.MinInt32, Gregorian(int64(d))))
				changed++
			}
		}
	case arrow.TIMESTAMP:
		times := vec.Fixed[int64](dst, at)
		for i, ms := range times {
			if ms < Switch*dayMillis && ms > math.MinInt64/2 && dst.Valid(at+i) {
				day := civil.FloorDiv(ms, dayMillis)
				times[i] = Gregorian(day)*dayMillis + ms - day*dayMillis
				changed++
			}
		}
	}
	return changed
}
