package civil

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAgainstPackageTime compares every day of 1200 years, and random days in the range of package time, with that
// package.
func TestAgainstPackageTime(t *testing.T) {
	same := func(t interface{ Fatalf(string, ...any) }, days int64) {
		want := time.Unix(days*86400, 0).UTC()
		y, m, d := Date(days)
		if y != int64(want.Year()) || m != int(want.Month()) || d != want.Day() {
			t.Fatalf("day %d is %d-%d-%d, package time says %v", days, y, m, d, want)
		}
		if back := Days(y, m, d); back != days {
			t.Fatalf("%d-%d-%d is day %d, was made of %d", y, m, d, back, days)
		}
		if last := time.Date(want.Year(), want.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day(); MonthDays(y, m) != last {
			t.Fatalf("month %d of %d has %d days, package time says %d", m, y, MonthDays(y, m), last)
		}
	}
	for days := int64(-3 * 146097); days < 146097; days++ {
		same(t, days)
	}
	rapid.Check(t, func(t *rapid.T) { same(t, rapid.Int64Range(-1e11, 1e11).Draw(t, "days")) })
}

// TestFarYears: the inverse holds at the ends of the range of int64 seconds.
func TestFarYears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.Int64Range(-106751991167300, 106751991167300).Draw(t, "days")
		if y, m, d := Date(days); Days(y, m, d) != days || d < 1 || d > MonthDays(y, m) {
			t.Fatalf("day %d is %d-%d-%d, which is day %d", days, y, m, d, Days(y, m, d))
		}
	})
}
