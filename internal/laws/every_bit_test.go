package laws_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"stoa/format"
)

// TestReadingFindsNoMore: whichever bit of a place is flipped, in any format, verify reports damage if reading does,
// although it need not decode data that a checksum covers; so does verify --deep. STOA_ROUNDS is the number of bytes
// tried per file.
func TestReadingFindsNoMore(t *testing.T) {
	most := 8 // bytes tried per file
	if testing.Short() {
		most = 2
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		most = n
	}
	first, _ := strconv.Atoi(os.Getenv("STOA_SEED"))
	refused := 0
	for _, p := range append(heldPlaces(t), keptPlaces(t, "")...) {
		if h := p.held(t, p.files); h.list() != fine {
			continue // no format is recognized, or it is already damaged
		}
		for _, name := range slices.Sorted(maps.Keys(p.files)) {
			whole := p.files[name]
			step := max(1, len(whole)/most)
			for i := first % step; i < len(whole); i += step {
				files, bad := maps.Clone(p.files), slices.Clone(whole)
				bit := (i*5 + first) % 8
				bad[i] ^= 1 << bit
				files[name] = bad
				h := p.held(t, files)
				_, cat, _ := h.read("cat", false)
				if cat != damaged {
					continue
				}
				refused++
				for _, depth := range []format.Depth{format.Sums, format.Deep} {
					if h.verify(depth) != damaged {
						t.Errorf("%s, bit %d of byte %d of %s: cat: %.300s, verify of depth %s: %.200s", p.name, bit,
							i, name, h.why["cat"], depth, h.why["verify --"+depth.String()])
					}
				}
			}
		}
	}
	if refused < 100 && !testing.Short() || refused < 30 {
		t.Errorf("only %d damaged places were refused", refused)
	}
}
