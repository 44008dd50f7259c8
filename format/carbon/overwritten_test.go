package carbon_test

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestOverwrittenPartition: where CarbonData 2.3.0 overwrites a partition of a table without deletes, it records the
// time in place of the name of an update status, and writes none. As CarbonData, stoa reads and changes such a table. A
// name with the usual prefix, or a delete delta of that time or before, means that an update status is lost.
func TestOverwrittenPartition(t *testing.T) {
	const when, delta = "1795249949999", "/part-0-0_batchno0-0-0-1795249943470.deletedelta"
	with := func(name, also string) *store.Memory {
		tree := loaded(t, filepath.Join(golden2, "managed/managed_part"))
		var entries []map[string]string
		if err := json.Unmarshal(tree.Bytes("t/Metadata/tablestatus"), &entries); err != nil {
			t.Fatal(err)
		}
		entries[0]["updateStatusFileName"] = name
		entries[0]["updateDeltaStartTimestamp"], entries[0]["updateDeltaEndTimestamp"] = when, when
		b, err := json.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		tree.Put("t/Metadata/tablestatus", b)
		if also != "" {
			for _, n := range tree.Names() {
				if strings.HasSuffix(n, ".carbondata") {
					tree.Put(path.Dir(n)+also, []byte("{}"))
				}
			}
		}
		return tree
	}
	tree := with(when, "")
	if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); err != nil || len(rows) != 65 {
		t.Errorf("%d rows of 65, %v", len(rows), err)
	}
	for _, f := range verdict(t, tree) {
		if f.Severity > region.Note {
			t.Errorf("%+v", f)
		}
	}
	for what, tree := range map[string]*store.Memory{"a lost status": with("tableupdatestatus-"+when, ""),
		"a delta": with(when, delta)} {
		_, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: got %d rows, %v, want corrupt", what, len(rows), err)
		}
	}

	c, dir := changer(t, "managed_part")
	y := valuesOf(t, dir, "y")
	if err := os.WriteFile(filepath.Join(dir, "Metadata/tablestatus"), tree.Bytes("t/Metadata/tablestatus"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "y = " + y[0]}); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	want := slices.DeleteFunc(slices.Clone(y), func(s string) bool { return s == y[0] })
	if got := valuesOf(t, dir, "y"); !slices.Equal(got, want) {
		t.Errorf("after a delete: got %v, want %v", got, want)
	}
	healthy(t, dir)
}

// TestOverwrittenPartitionElsewhere: with a partition outside of a table whose update status is only a time, what needs
// the partition is refused because of its location, as without the time, and what does not is done. If the location is
// followed, a delete delta there means that an update status is lost.
func TestOverwrittenPartitionElsewhere(t *testing.T) {
	dir := movedPartition(t, "apart/country=c1", "") + "/t"
	place := filepath.Join(t.TempDir(), "place")
	if err := os.CopyFS(place, os.DirFS(filepath.Join(dir, "country=c0/y=2019"))); err != nil {
		t.Fatal(err)
	}
	list := entries(t, dir)
	const at = "1795249949999"
	list[0]["updateStatusFileName"] = at
	for _, e := range list { // each had such a partition
		e["updateDeltaStartTimestamp"], e["updateDeltaEndTimestamp"] = at, at
	}
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := func(external string) stoa.OpenOptions {
		return stoa.OpenOptions{Opts: map[string]string{"external": external}}
	}
	if _, rows, err := read(t, dir, opened("false"), stoa.ScanSpec{}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "external=true") {
		t.Errorf("got %d rows, %v, want unsupported", len(rows), err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, opened("true"))
	if err != nil {
		t.Fatal(err)
	}
	country, y := "c9", "2019"
	if _, err := c.AddPartition(t.Context(), stoa.PartitionOptions{Location: place,
		Partition: map[string]*string{"country": &country, "y": &y}}); err != nil {
		t.Error(err)
	}
	_, before, err := read(t, dir, opened("true"), stoa.ScanSpec{})
	if err != nil || len(before) <= 65 {
		t.Errorf("%d rows, %v", len(before), err)
	}
	delta := filepath.Join(filepath.Dir(dir), "apart/country=c1/y=2019/part-0-0_batchno0-0-0-1795249943470.deletedelta")
	if err := os.WriteFile(delta, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, rows, err := read(t, dir, opened("true"), stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("with a delta: got %d rows, %v, want corrupt", len(rows), err)
	}
}

// TestCleanWithoutUpdateStatus: clean removes no delete delta of a table whose update status is lost.
func TestCleanWithoutUpdateStatus(t *testing.T) {
	_, dir := changer(t, "managed_del")
	lost, err := filepath.Glob(filepath.Join(dir, "Metadata", "tableupdatestatus-*"))
	if err != nil || len(lost) == 0 {
		t.Fatal(lost, err)
	}
	for _, name := range lost {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, dir)
	if _, err := carbon.Clean(t.Context(), dir, false); err == nil {
		t.Error("clean succeeded without the update status")
	}
	if snapshot(t, dir) != before {
		t.Error("clean changed a table whose update status is lost")
	}
}
