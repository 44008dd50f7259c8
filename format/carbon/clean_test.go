package carbon_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"stoa/format/carbon"
)

// TestCleanKeepsNamedSegmentFiles: after clean, each entry of tablestatus has the segment file that it names:
// CarbonData's INSERT OVERWRITE of a partition reads them all, also those of segments without rows.
func TestCleanKeepsNamedSegmentFiles(t *testing.T) {
	cleaned := 0
	for seed := range 12 {
		r := rand.New(rand.NewPCG(uint64(seed), 24))
		next := 20
		dir := newOrders(t, carbon.TableSpec{Partition: []string{"day"}}, [2]int{0, next})
		var story []string
		for range 14 {
			story = append(story, change(t, r, dir, &next, true))
			for _, e := range entries(t, dir) {
				if e["visibility"] == "false" {
					cleaned++
				}
				if e["segmentFile"] == "" {
					continue
				}
				if _, err := os.Stat(filepath.Join(dir, "Metadata/segments", e["segmentFile"])); err != nil {
					t.Fatalf("seed %d, %q: segment %s: %v", seed, story, e["loadName"], err)
				}
			}
		}
	}
	if cleaned < 20 {
		t.Errorf("%d entries of segments that were cleaned, want 20 or more", cleaned)
	}
}
