//go:build !race

package stoa_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"stoa"
)

// TestScansUseMemoryAgain: a scan without an allocator needs memory for few batches, however many there are.
// Not with the race detector: under it, a sync.Pool throws away one in four of what it is given.
func TestScansUseMemoryAgain(t *testing.T) {
	const rows, batch = 400_000, 16_384
	name := filepath.Join(t.TempDir(), "set")
	writeNumbered(t, name, "cfile", rows, nil)
	table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var taken []uint64
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, err := range table.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"k"}, Batch: batch}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		taken = append(taken, after.TotalAlloc-before.TotalAlloc)
	}
	if least := slices.Min(taken); least > 8*rows/2 {
		t.Errorf("%d bytes were allocated for %d of numbers", least, 8*rows)
	}
}
