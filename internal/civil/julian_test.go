package civil

import "testing"

// TestCalendar checks days whose dates in both calendars are known from java.util.GregorianCalendar.
func TestCalendar(t *testing.T) {
	for _, c := range []struct {
		day        int64 // as counted by Java
		y          int64
		m, d       int
		comesAgain bool
	}{
		{Switch - 1, 1582, 10, 4, true}, {-719164, 1, 1, 1, true}, {-171_596, 1500, 2, 29, false},
		{-171_595, 1500, 3, 1, true}, {-682_946, 100, 2, 29, false}, {-719_530, 0, 1, 1, true},
	} {
		if y, m, d := julian(c.day); y != c.y || m != c.m || d != c.d {
			t.Errorf("day %d: got %d-%d-%d, want %d-%d-%d", c.day, y, m, d, c.y, c.m, c.d)
		}
		want := Days(c.y, c.m, c.d)
		if got := Gregorian(c.day); got != want {
			t.Errorf("day %d: got %d, want %d", c.day, got, want)
		}
		if got := Hybrid(want); (got == c.day) != c.comesAgain {
			t.Errorf("%d-%d-%d: got day %d of Java's, want %d", c.y, c.m, c.d, got, c.day)
		}
	}
	for day := int64(-800_000); day < Switch; day++ {
		y, m, d := julian(day)
		if leap := m == 2 && d == 29 && y%100 == 0 && y%400 != 0; !leap && Hybrid(Gregorian(day)) != day {
			t.Fatalf("day %d becomes %d and that %d", day, Gregorian(day), Hybrid(Gregorian(day)))
		}
		if Gregorian(day) > Gregorian(day+1) && day+1 < Switch {
			t.Fatalf("day %d comes after the next one", day)
		}
	}
}
