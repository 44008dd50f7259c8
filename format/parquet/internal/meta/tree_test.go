package meta

import (
	"strings"
	"testing"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// TestNegativeTypes: a physical type below zero, as in PARQUET-1481 of apache/parquet-testing, is reported as corrupt
// at its offset, and its element is not taken for a group.
func TestNegativeTypes(t *testing.T) {
	for _, typ := range []int32{-1, -7, -1 << 31} {
		w := thrift.NewWriter(thrift.Compact)
		w.Struct(thrift.Item)
		w.I32(1, typ)
		w.End()
		c := wire.NewCursor(w.Encoded(), fault.Span{Len: int64(len(w.Encoded()))}, "")
		parseElement(thrift.NewReader(c, thrift.Compact))
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "type: expected a physical type") {
			t.Errorf("type %d: got error %v, want one of the type", typ, err)
		}
	}
}
