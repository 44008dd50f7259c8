package kudu

import "testing"

// A snapshot older than the history that is kept is told.
func TestTooOld(t *testing.T) {
	const second = 1e6 << 12
	newest := uint64(1_700_000_000 * second)
	for _, x := range []struct {
		age  int32
		at   uint64
		told bool
	}{
		{-1, latest, false}, {-1, newest, false}, {-1, newest - maxAge*second, false}, {-1, newest - maxAge*second - 1, true},
		{60, newest - 60*second, false}, {60, newest - 61*second, true},
	} {
		tb := &tablet{replica: replica{Tablet: &Tablet{Extra: ExtraConfig{HistoryMaxAge: x.age}}}}
		if f := tb.tooOld(x.at, newest); (f != nil) != x.told || f != nil && f.Code != "kudu.history.old" {
			t.Errorf("%+v: %+v", x, f)
		}
	}
}
