// Package civil implements the proleptic Gregorian calendar over days since 1970-01-01, for every year whose seconds
// fit in an int64: package time writes and reads only years of four digits.
package civil

// Days returns the number of days from 1970-01-01 to a date; month is 1 to 12. A day past the end of the month
// overflows into the next one.
func Days(year int64, month, day int) int64 {
	if month <= 2 { // years begin in March in this computation, so that the leap day is the last one
		year--
	}
	era := FloorDiv(year, 400)
	ofEra := year - era*400
	ofYear := int64((153*((month+9)%12)+2)/5 + day - 1)
	return era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468
}

// Date is the inverse of Days.
func Date(days int64) (year int64, month, day int) {
	days += 719468 // from 0000-03-01
	era := FloorDiv(days, 146097)
	ofEra := days - era*146097
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36524 - ofEra/146096) / 365
	ofYear := int(ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100))
	fromMarch := (5*ofYear + 2) / 153
	day = ofYear - (153*fromMarch+2)/5 + 1
	month = (fromMarch+2)%12 + 1
	year = yearOfEra + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// MonthDays returns the number of days in a month.
func MonthDays(year int64, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// FloorDiv returns a/b rounded down; b must be positive.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
