package diff

import (
	"math/big"
	"strconv"
	"strings"
	"time"
)

// maxDigits is the maximum length of a number in text form that is parsed exactly, and the maximum of its exponent.
const maxDigits = 500

// normal returns the normal form of a value: a number, date or time that is text on one side, as in JSON lines, may be
// written in several ways (1.50, 1.5 and 15e-1; 10:00:00Z and 10:00:00.000Z). Anything else is returned unchanged.
func (s *shape) normal(b []byte) []byte {
	word := string(b)
	switch s.as {
	case Float:
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			return strconv.AppendFloat(nil, f+0, 'g', -1, 64) // -0 is 0
		}
	case Integer, Decimal:
		if r := exactly(word); r != nil {
			n, _ := r.FloatPrec()
			return []byte(r.FloatString(n))
		}
	case Boolean:
		if v, err := strconv.ParseBool(strings.ToLower(word)); err == nil && len(word) > 1 {
			return strconv.AppendBool(nil, v)
		}
	case Instant:
		if t, ok := s.clock.read(word); ok {
			return []byte(s.clock.text(t.Unix(), uint64(t.Nanosecond())))
		}
	}
	return b
}

// exactly parses a decimal number, optionally with an exponent; nil if it is not one.
func exactly(word string) *big.Rat {
	digits, exponent, _ := strings.Cut(strings.ToLower(word), "e")
	if len(word) > maxDigits || strings.Trim(digits, "+-.0123456789") != "" {
		return nil
	}
	if n, err := strconv.Atoi(exponent); exponent != "" && (err != nil || n > maxDigits || n < -maxDigits) {
		return nil
	}
	r, ok := new(big.Rat).SetString(word)
	if !ok {
		return nil
	}
	return r
}

// read parses a date or a time. Without a zone it is in UTC.
func (c clock) read(word string) (time.Time, bool) {
	layouts := []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02"}
	switch c {
	case timeOfDay:
		layouts = []string{"15:04:05.999999999", "15:04"}
	case span:
		return time.Time{}, false
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, word); err == nil {
			if c == timeOfDay { // on the first day of the calendar
				t = t.AddDate(1970, 0, 0)
			}
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
