package carbon_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
	"stoa/region"
)

// TestSkipSegment damages a file that a segment, or a data file, depends on. Without a policy that is an error before
// any row; with skip-rows the other segments are read, and the loss is reported.
func TestSkipSegment(t *testing.T) {
	one := func(dir, pattern string) string {
		t.Helper()
		l, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(l) != 1 {
			t.Fatal(pattern, l, err)
		}
		return l[0]
	}
	change := func(name string, f func(b []byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(b), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		damage   func(dir string)
		required []int32 // ids that must be read
		most     []int32 // ids that may be read
		exact    bool    // the rows in the loss are known
	}{
		{"data file gone", func(dir string) { os.Remove(one(dir, "Fact/Part0/Segment_1/part-0-0_*.carbondata")) },
			slices.Concat(span(0, 100), span(200, 300)), span(0, 300), false},
		{"segment file is no JSON", func(dir string) {
			change(one(dir, "Metadata/segments/1_*.segment"), func(b []byte) []byte { return b[:len(b)/2] })
		}, slices.Concat(span(0, 100), span(200, 300)), slices.Concat(span(0, 100), span(200, 300)), false},
		{"segment file leads out of the table", func(dir string) {
			change(one(dir, "Metadata/segments/1_*.segment"), func(b []byte) []byte {
				return []byte(strings.Replace(string(b), "/Fact/Part0/Segment_1",
					"/../"+filepath.Base(dir)+"/Fact/Part0/Segment_0", 1))
			})
		}, slices.Concat(span(0, 100), span(200, 300)), slices.Concat(span(0, 100), span(200, 300)), false},
		{"segment file with a path for an index", func(dir string) {
			change(one(dir, "Metadata/segments/1_*.segment"), func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"mergeFileName":"`, `"mergeFileName":"../Segment_0/`, 1))
			})
		}, slices.Concat(span(0, 100), span(200, 300)), slices.Concat(span(0, 100), span(200, 300)), false},
		{"footer", func(dir string) {
			change(one(dir, "Fact/Part0/Segment_1/part-0-0_*.carbondata"),
				func(b []byte) []byte { return b[:len(b)-20] })
		}, slices.Concat(span(0, 100), span(200, 300)), span(0, 300), true},
		{"an update status for another file", func(dir string) {
			if n, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id >= 100 and id < 150")); err != nil ||
				n != 50 {
				t.Fatal(n, err)
			}
			change(one(dir, "Metadata/tableupdatestatus-*"), func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"blockName":"part-0-0_`, `"blockName":"part-0-7_`, 1))
			})
		}, slices.Concat(span(0, 100), span(200, 300)), slices.Concat(span(0, 100), span(200, 300)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 100}, [2]int{100, 200}, [2]int{200, 300})
			c.damage(dir)
			for _, parallel := range []int{1, 3} {
				got, _, err := skimmed(t, dir, stoa.ScanSpec{Parallel: parallel})
				if !errors.Is(err, fault.Corrupt) {
					t.Errorf("got %d rows, %v", len(got), err)
				}
				var lost []region.Loss
				got, lost, err = skimmed(t, dir, stoa.ScanSpec{Parallel: parallel, Damaged: stoa.SkipRows})
				if err != nil || len(lost) == 0 || !errors.Is(lost[0].Err, fault.Corrupt) || lost[0].Exact != c.exact {
					t.Error(lost, err)
				}
				has := func(list []int32) func(
					int32) bool {
					return func(x int32) bool { return !slices.Contains(list, x) }
				}
				if slices.ContainsFunc(c.required, has(got)) || slices.ContainsFunc(got, has(c.most)) {
					t.Errorf("got %d rows: %v", len(got), got)
				}
			}
		})
	}
}

// skimmed returns the ids that can be read, and the losses.
func skimmed(t *testing.T, dir string, spec stoa.ScanSpec) (out []int32, lost []region.Loss, err error) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec.Columns, spec.Lost = []string{"id"}, func(l region.Loss) { lost = append(lost, l) }
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			return out, lost, err
		}
		out = append(out, b.Column(0).(*array.Int32).Int32Values()...)
	}
	slices.Sort(out)
	return out, lost, nil
}
