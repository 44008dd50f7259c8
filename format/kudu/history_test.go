package kudu

import (
	"testing"

	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
)

// TestTooOld: a snapshot before the history that Kudu keeps is reported.
func TestTooOld(t *testing.T) {
	const second = 1e6 << 12
	newest := uint64(1_700_000_000 * second)
	for _, x := range []struct {
		age      int32
		at       uint64
		reported bool
	}{
		{-1, table.Latest, false}, {-1, newest, false}, {-1, newest - table.MaxAge*second, false},
		{-1, newest - table.MaxAge*second - 1, true},
		{60, newest - 60*second, false}, {60, newest - 61*second, true},
	} {
		tb := &table.Tablet{Replica: table.Replica{Tablet: &meta.Tablet{Extra: meta.ExtraConfig{HistoryMaxAge: x.age}}}}
		if f := tb.TooOld(x.at, newest); (f != nil) != x.reported || f != nil && f.Code != "kudu.history.old" {
			t.Errorf("%+v: got %+v", x, f)
		}
	}
}
