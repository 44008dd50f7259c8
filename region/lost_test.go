package region

import (
	"errors"
	"fmt"
	"testing"

	"stoa/fault"
)

// TestLoseMany: the number of losses that are kept is bounded, and once some are not kept the sum is not exact.
func TestLoseMany(t *testing.T) {
	for step, want := range map[int64]struct {
		kept  int
		rows  int64
		exact bool
	}{1: {maxReasons, 3_000_000, true}, 2: {maxLosses, maxLosses - 1, false}} {
		var losses []Loss
		for at := int64(0); at < 3_000_000*step; at += step {
			losses = Keep(losses, Loss{Part: "p", Rows: [2]int64{at, at + 1}, Exact: true,
				Err: fault.Corruptf(fault.Span{Object: "p", Off: at}, "", "row %d", at)})
		}
		rows, exact := LostRows(losses)
		if len(losses) != want.kept || rows != want.rows || exact != want.exact {
			t.Errorf("every %d rows: got %d losses with %d rows, exact %t, want %+v", step, len(losses), rows, exact,
				want)
		}
		last := losses[len(losses)-1]
		if last.Rows[1] != 3_000_000*step-step+1 || last.Err == nil {
			t.Errorf("every %d rows: the last loss is %+v", step, last)
		}
		e := (*fault.Error)(nil)
		if !errors.As(losses[7].Err, &e) || e.Reason != fmt.Sprintf("row %d", 7*step) || e.At.Off != 7*step {
			t.Errorf("the eighth loss is %+v", losses[7])
		}
	}
}
