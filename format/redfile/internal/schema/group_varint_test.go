package schema

import (
	"slices"
	"testing"

	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/unpack"
	"stoa/internal/enc/groupvarint"
)

// TestUnfilledGroup: a last group whose missing numbers have no bytes is read like a padded group; any other end is
// damage.
func TestUnfilledGroup(t *testing.T) {
	for _, typ := range []layout.Physical{layout.Int32, layout.Int64} {
		for total := 1; total < 13; total++ {
			var narrow []uint32
			var wide []uint64
			for i := range total {
				narrow, wide = append(narrow, 1<<(7*i%31)), append(wide, 1<<(11*i%63))
			}
			size, data := 4, groupvarint.Append(nil, narrow)
			if typ == layout.Int64 {
				size, data = 5, unpack.AppendGroups64(nil, wide)
			}
			fill := (size - total%size) % size
			for cut := range fill + 2 {
				b := slices.Clone(data[:len(data)-cut])
				for k := 1; k <= total; k++ {
					out := make([]byte, 8*k)
					err := decodeGroups(out, b, typ, k, total)
					if ok := cut == 0 || cut == fill; k == total && (err == nil) != ok {
						t.Errorf("%s: %d numbers, %d bytes short: %v", typ, total, cut, err)
					}
					if err != nil && (cut == 0 || cut == fill) {
						t.Errorf("%s: the first %d of %d numbers, %d bytes short: %v", typ, k, total, cut, err)
					}
					if err == nil && (typ == layout.Int32 && !slices.Equal(As[uint32](out, k), narrow[:k]) ||
						typ == layout.Int64 && !slices.Equal(As[uint64](out, k), wide[:k])) {
						t.Errorf("%s: got %d of %d numbers wrong", typ, k, total)
					}
				}
			}
		}
	}
}
