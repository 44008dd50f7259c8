package carbon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// droppedPartition is Spark's table of 65 rows whose partition country=c1/y=2019 with 10 rows is dropped as CarbonData
// does it: the location is marked, and the files remain until the table is cleaned.
func droppedPartition(t *testing.T) (tree *store.Memory, segment string, live []line) {
	t.Helper()
	tree = loaded(t, filepath.Join(golden2, "managed/managed_part"))
	segment = "t/Metadata/segments/0_1795249943470.segment"
	const mark = `"partitions":["country\u003dc1","y\u003d2019"],"status":"`
	swap(t, tree, segment, mark+`Success"`, mark+`Marked for Delete"`)
	_, live, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil || len(live) != 55 {
		t.Fatal(len(live), err)
	}
	return tree, segment, live
}

// TestRecoverDroppedPartition: if the segment file of a partitioned table is damaged, missing or not named, recovery
// reports that rows of dropped partitions may be included; it leaves out those that the damaged file still marks.
func TestRecoverDroppedPartition(t *testing.T) {
	for what, c := range map[string]struct {
		damage func(tree *store.Memory, segment string) *store.Memory
		at     string // subject of the finding
		rows   int
	}{
		"key of the map": {func(tree *store.Memory, segment string) *store.Memory {
			swap(t, tree, segment, "locationMap", "loXationMap")
			return tree
		}, "Metadata/segments/0_1795249943470.segment", 55},
		"status of another location": {func(tree *store.Memory, segment string) *store.Memory {
			swap(t, tree, segment, "Success", "Sucsess")
			return tree
		}, "Metadata/segments/0_1795249943470.segment", 55},
		"no JSON": {func(tree *store.Memory, segment string) *store.Memory {
			tree.Put(segment, append([]byte("X"), tree.Bytes(segment)[1:]...))
			return tree
		}, "Metadata/segments/0_1795249943470.segment", 55},
		"the mark": {func(tree *store.Memory, segment string) *store.Memory {
			swap(t, tree, segment, "Marked for Delete", "Marked for Delxte")
			return tree
		}, "Metadata/segments/0_1795249943470.segment", 65},
		"lost": {func(tree *store.Memory, segment string) *store.Memory {
			return lacking(t, tree, segment)
		}, "Metadata/segments/0_1795249943470.segment", 65},
		"no location": {func(tree *store.Memory, segment string) *store.Memory {
			tree.Put(segment, []byte(`{"locationMap":{}}`))
			return tree
		}, "Metadata/segments/0_1795249943470.segment", 65},
		"not named": {func(tree *store.Memory, _ string) *store.Memory {
			swap(t, tree, "Metadata/tablestatus", `"segmentFile":"0_`, `"segmentFilX":"0_`)
			return tree
		}, "Metadata/tablestatus", 65},
	} {
		tree, segment, live := droppedPartition(t)
		tree = c.damage(tree, segment)
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: got %d rows read, %v", what, len(rows), err)
		}
		if len(errorsIn(verdict(t, tree))) == 0 {
			t.Errorf("%s: verify: got no error, want one", what)
		}
		rows, found, err := recovered(t, tree, "t")
		if err != nil || len(rows) != c.rows || c.rows == 55 && differ(rows, live, true) != "" {
			t.Errorf("%s: got %d rows, %v, want %d", what, len(rows), err, c.rows)
		}
		reported := only(found, "carbon.segment.damaged")
		if len(reported) != 1 || reported[0].Severity != region.Error || reported[0].At.Object != "t/"+c.at ||
			!strings.Contains(reported[0].Message, "dropped may have come back") {
			t.Errorf("%s: got %+v", what, found)
		}
	}
}

// TestDamagedSegmentFileBytes: for any changed byte of the segment file, neither reading nor recovery returns wrong
// rows without an error.
func TestDamagedSegmentFileBytes(t *testing.T) {
	tree, segment, live := droppedPartition(t)
	good := bytes.Clone(tree.Bytes(segment))
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; i < len(good); i += step {
		bad := bytes.Clone(good)
		bad[i] = 'X'
		tree.Put(segment, bad)
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); err == nil &&
			differ(rows, live, true) != "" {
			t.Errorf("byte %d, …%s…: read without an error: %s", i, bad[max(i-20, 0):min(i+20, len(bad))],
				differ(rows, live, true))
		}
		rows, found, err := recovered(t, tree, "t")
		if err == nil && differ(rows, live, true) != "" && len(errorsIn(found)) == 0 {
			t.Errorf("byte %d, …%s…: recovered without an error: %s", i, bad[max(i-20, 0):min(i+20, len(bad))],
				differ(rows, live, true))
		}
	}
}

// TestSegmentFileWithoutLocations: a segment file without its map of locations is damaged even in a table without
// partitions; recovery reads the directory of the segment, and reports it.
func TestSegmentFileWithoutLocations(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
	const name = "t/Metadata/segments/1_1795249939034.segment"
	var all map[string]json.RawMessage
	if err := json.Unmarshal(tree.Bytes(name), &all); err != nil || all["locationMap"] == nil {
		t.Fatal(err)
	}
	swap(t, tree, name, "locationMap", "loXationMap")
	refused(t, "no locationMap", tree, "carbon.segment.missing")
	rows, found, err := recovered(t, tree, "t")
	reported := only(found, "carbon.segment.damaged")
	if err != nil || len(rows) != 370 || len(reported) != 1 || reported[0].Severity != region.Error ||
		reported[0].At.Object != name {
		t.Errorf("got %d rows, %v, %+v", len(rows), err, found)
	}
}
