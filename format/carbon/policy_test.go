package carbon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
)

// TestCompactionPolicy: properties of the table, or of a carbon.properties, which they have precedence over, say which
// segments are compacted together. The expected segments follow from CarbonData's documentation of the properties.
func TestCompactionPolicy(t *testing.T) {
	var segments [][2]int
	for i := range 7 {
		segments = append(segments, [2]int{i, i + 1})
	}
	dir := newOrders(t, carbon.TableSpec{}, segments...)
	list := entries(t, dir)
	for i := range list { // the last three loads two days later, each of 400,000 bytes
		if list[i]["dataSize"] = "400000"; i >= 4 {
			at, err := strconv.ParseInt(list[i]["loadStartTime"], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list[i]["loadStartTime"] = strconv.FormatInt(at+2*24*60*60*1000, 10)
		}
	}
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file, own string
		major     bool
		want      string
	}{
		{"", "", false, "[{[0 1 2 3] 0.1}]"},
		{"", "", true, "[{[0 1 2 3 4 5 6] 0.1}]"},
		{"carbon.compaction.level.threshold=3,2", "", false, "[{[0 1 2] 0.1} {[3 4 5] 3.1}]"},
		{"carbon.compaction.level.threshold=3,2", "COMPACTION_LEVEL_THRESHOLD=2,2", false,
			"[{[0 1] 0.1} {[2 3] 2.1} {[4 5] 4.1}]"},
		{"carbon.numberof.preserve.segments = 4", "", false, "[]"},
		{"", "compaction_preserve_segments=5", true, "[{[0 1] 0.1}]"},
		{"", "allowed_compaction_days=1", true, "[{[0 1 2 3] 0.1}]"},
		{"carbon.major.compaction.size=1", "", true, "[{[0 1] 0.1} {[2 3] 2.1} {[4 5] 4.1}]"},
		{"carbon.major.compaction.size=1", "major_compaction_size=2000", true, "[{[0 1 2 3 4 5 6] 0.1}]"},
		{"carbon.numberof.preserve.segments=-1", "", false, "invalid"},
		{"carbon.compaction.level.threshold=4,x", "", false, "invalid"},
	} {
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Formats: formats})
		if err != nil {
			t.Fatal(err)
		}
		o := stoa.CompactOptions{DryRun: true}
		if o.Major = x.major; x.file != "" {
			o.Settings = filepath.Join(t.TempDir(), "carbon.properties")
			if err := os.WriteFile(o.Settings, []byte("# of a cluster\n"+x.file+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		name, value, set := strings.Cut(x.own, "=")
		if set {
			err = c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: map[string]*string{name: &value}})
			if err != nil {
				t.Fatal(err)
			}
		}
		plan, err := c.Compact(t.Context(), o)
		got := fmt.Sprint(plan)
		if errors.Is(err, fault.Invalid) {
			got = "invalid"
		} else if err != nil {
			t.Fatal(err)
		}
		if got != x.want {
			t.Errorf("%s, %s, major %v: got %s, want %s", x.file, x.own, x.major, got, x.want)
		}
		if set {
			err = c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: map[string]*string{name: nil}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestGlobalSort: all rows of a load are sorted together, however many tasks are asked for.
func TestGlobalSort(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{SortColumns: []string{"name", "id"},
		Properties: map[string]string{"sort_scope": "global_sort"}}, [2]int{0, 300})
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	last, n := "", 0
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"name", "id"}}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) { // null is first
			now := fmt.Sprintf("%s %09d", b.Column(0).(*array.String).Value(i), b.Column(1).(*array.Int32).Value(i))
			if now < last {
				t.Fatalf("row %d: %q after %q", n, now, last)
			}
			last, n = now, n+1
		}
	}
	if n != 300 {
		t.Errorf("got %d rows", n)
	}
}
