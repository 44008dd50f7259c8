package civil

// Java's calendar, in which CarbonData's SDK and Spark before 3.0 count days, is Julian before 15 October 1582.

// Switch is 15 October 1582, the first Gregorian day, in days since 1970-01-01.
const Switch = -141427

// Gregorian returns the day with the same date in the proleptic Gregorian calendar as day, which is before Switch, has
// in the Julian one: the date that was meant. If 29 February exists only in the Julian calendar, it becomes 1 March.
func Gregorian(day int64) int64 {
	y, m, d := julian(day)
	return Days(y, m, d)
}

// julian returns the date of a day in the Julian calendar.
func julian(day int64) (year int64, month, dayOfMonth int) {
	n := day + 719470 // from 0000-03-01 of the Julian calendar
	era := FloorDiv(n, 1461)
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

// Hybrid returns the day with the same date in Java's calendar as day has in the proleptic Gregorian one. The ten days
// that were omitted in October 1582 continue the count from the 4th.
func Hybrid(day int64) int64 {
	if day >= Switch {
		return day
	}
	y, m, d := Date(day)
	if m <= 2 {
		y--
	}
	ofYear := int64((153*((m+9)%12)+2)/5 + d - 1)
	return y*365 + FloorDiv(y, 4) + ofYear - 719470
}
