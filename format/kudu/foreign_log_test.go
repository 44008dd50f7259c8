package kudu

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"stoa/format/kudu/internal/wal"
	"stoa/store"
)

// A segment of another tablet adds no row and no moment to a log, in whichever place of the log it is; those of the
// tablet itself are replayed, and the finding makes the log one that lacks operations.
func TestForeignSegments(t *testing.T) {
	f := logFS(store.NewMemory(golden(t)))
	own, other := segmentOf(t, goldenInt8), segmentOf(t, goldenAlter)
	tb := asIfNothingFlushed(goldenTablet(t, f, goldenInt8))
	whole := replayed(t, tb, own)
	for name, x := range map[string]struct {
		segments [][]byte
		want     *wal.Logged
	}{
		"alone":  {[][]byte{other}, &wal.Logged{}},
		"before": {[][]byte{other, own}, whole},
		"after":  {[][]byte{own, other}, whole},
		"around": {[][]byte{other, own, other}, whole},
	} {
		l := replayed(t, tb, x.segments...)
		if !subset(l, x.want) || !subset(x.want, l) || l.LastTime != x.want.LastTime ||
			l.LastWrite != x.want.LastWrite {
			t.Errorf("%s: %d rows up to %d, want %d up to %d", name, len(l.Rows), l.LastTime, len(x.want.Rows),
				x.want.LastTime)
		}
		if !l.Lost || !strings.Contains(codesOf(l), "header") {
			t.Errorf("%s: %+v", name, l.Findings)
		}
		files := map[string][]byte{}
		for i, s := range x.segments {
			files[fmt.Sprintf("w/wals/%s/wal-%09d", tb.ID, i+1)] = s
		}
		for _, size := range []int64{1 << 20, 0} {
			old := wal.QuickBytes
			wal.QuickBytes = size
			q, err := wal.QuickCheck(context.Background(), logFS(store.NewMemory(files)), tb)
			wal.QuickBytes = old
			if err != nil || q.LastTime != x.want.LastTime || !strings.Contains(codesOf(q), "header") {
				t.Errorf("%s: quickly, from %d bytes on: %v %+v", name, size, err, q)
			}
		}
	}
}
