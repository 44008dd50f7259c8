package delta_test

import (
	"testing"

	"stoa/format/delta"
	"stoa/format/internal/lake/laketest"
)

// TestGolden reads tables that deltalake wrote, and compares them with what deltalake read: checkpoints, files that
// were
// removed, partitions, a schema that grew, a version of the past. interop/lake/make.py made them.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ table, at, want string }{{"parted", "", "parted"}, {"evolved", "", "evolved"},
		{"evolved", "0", "evolved-0"}} {
		opts := map[string]string{}
		if c.at != "" {
			opts["at"] = c.at
		}
		got := laketest.Open(t, delta.Format, "testdata/"+c.table, opts)
		laketest.Same(t, got, laketest.Open(t, delta.Format, "testdata/"+c.want+".arrow", nil))
	}
}
