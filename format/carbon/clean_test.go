package carbon_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"stoa"
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

// TestCleanedSegmentsAreRefused: a segment that clean has removed is an error, and not a segment without rows, where it
// is asked for by its name: streams read those that were compacted.
func TestCleanedSegmentsAreRefused(t *testing.T) {
	for _, spec := range []carbon.TableSpec{{}, {Partition: []string{"day"}}} {
		dir := newOrders(t, spec, [2]int{0, 20}, [2]int{20, 40}, [2]int{40, 60}, [2]int{60, 80}, [2]int{80, 100})
		plan, err := carbon.PlanCompaction(dir, false, []string{"0", "1"})
		if err != nil {
			t.Fatal(err)
		}
		compactOrders(t, dir, plan[0])
		if err := carbon.DeleteSegments(t.Context(), dir, []string{"3"}); err != nil {
			t.Fatal(err)
		}
		for _, cleaned := range []bool{false, true} {
			for name, want := range map[string]int{"0": 20, "1": 20, "3": 20, "0.1": 40, "2": 20, "4": 20} {
				rows, err := countOf(t, dir, name)
				if refused := cleaned && want == 20 && name < "2" || cleaned && name == "3"; refused {
					want = 0
					if err == nil {
						t.Errorf("%v, segment %s was cleaned: got %d rows, want an error", spec, name, rows)
					}
				} else if err != nil || rows != want {
					t.Errorf("%v, cleaned %v, segment %s: got %d rows, %v, want %d", spec, cleaned, name, rows, err,
						want)
				}
			}
			if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// countOf counts the rows of a segment.
func countOf(t *testing.T, dir, segment string) (rows int, err error) {
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{"segment": segment}})
	if err != nil {
		return 0, err
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"id"}}) {
		if err != nil {
			return rows, err
		}
		rows += int(b.NumRows())
	}
	return rows, nil
}
