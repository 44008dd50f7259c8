package layout

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// TestIndexEntries: an entry that cannot belong to any data file is damage of the index, not a missing file.
func TestIndexEntries(t *testing.T) {
	for name, c := range map[string]struct {
		rows  int64
		whole bool
	}{"part-0-0_batchno0-0-null-1.snappy.carbondata": {7, true}, "": {7, false}, "part-0": {7, false},
		"t/x.carbondata": {-1, false}} {
		w := thrift.NewWriter(thrift.Compact)
		w.Struct(thrift.Item)
		w.I64(1, c.rows)
		w.String(2, name)
		w.I64(3, 10)
		w.End()
		b := w.Encoded()
		cur := wire.NewCursor(b, fault.Span{Object: "x.carbonindex", Len: int64(len(b))}, "")
		x := ParseIndex(cur)
		if c.whole != (cur.Err() == nil && len(x.Blocks) == 1) || !c.whole && !errors.Is(cur.Err(), fault.Corrupt) {
			t.Errorf("%d rows of %q: expected whole = %t, found %d entries, error %v", c.rows, name, c.whole,
				len(x.Blocks), cur.Err())
		}
	}
}
