package carbon_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
)

// filesUnder returns the names of the files below a directory.
func filesUnder(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		out = append(out, f.Name())
	}
	return out
}

// TestSegmentInsideIsKept: an added segment has its files inside the table's directory, with the number of another
// segment in their names. Clean keeps them when that other segment is cleaned, and also when the added one is, because
// they belong to the user. The table cannot be renamed, because tablestatus has the full name of the directory.
func TestSegmentInsideIsKept(t *testing.T) {
	_, dir := changer(t, "managed1")
	place := filepath.Join(dir, "more")
	if err := os.CopyFS(place, os.DirFS(filepath.Join(dir, "Fact", "Part0", "Segment_0"))); err != nil {
		t.Fatal(err)
	}
	files := filesUnder(t, place)
	if len(files) < 2 {
		t.Fatalf("the copy has only %v", files)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{"external": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	o := stoa.AddSegmentOptions{}
	o.Path = place
	name, err := c.AddSegment(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		err := c.Rename(t.Context(), stoa.RenameOptions{To: dir + "2", DryRun: dry})
		if !errors.Is(err, fault.Unsupported) {
			t.Errorf("rename, dry %v: got %v, want Unsupported", dry, err)
		}
	}
	want := valuesOfSegment(t, dir, name)
	if len(want) == 0 {
		t.Fatal("the added segment has no rows")
	}
	for _, segment := range []string{"0", name} {
		if err := carbon.DeleteSegments(t.Context(), dir, []string{segment}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{dir, link, dir} { // the last time the entry is in the history
			got, err := carbon.Clean(t.Context(), at, false)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(got.Files, func(f string) bool { return filepath.Dir(f) == "more" }) {
				t.Errorf("segment %s deleted: clean removed %v", segment, got.Files)
			}
		}
		if left := filesUnder(t, place); !slices.Equal(left, files) {
			t.Fatalf("segment %s deleted and cleaned: the added directory has %v of %v", segment, left, files)
		}
		if segment == "0" {
			if got := valuesOfSegment(t, dir, name); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "Fact", "Part0", "Segment_0")); err == nil {
				t.Error("segment 0 was not cleaned")
			}
		}
	}
}

// TestPartitionElsewhere: a partition whose files were written by a load of the table is dropped, and added again from
// another place. The names of its files contain the number of the segment for which they were written.
func TestPartitionElsewhere(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{Partition: []string{"day"}}, [2]int{0, 10}, [2]int{1001, 1002})
	want, err := idsWhere(t, dir, "id >= 0")
	if err != nil || len(want) != 11 {
		t.Fatal(want, err)
	}
	const day = "day=2019-04-15"
	place := filepath.Join(t.TempDir(), "far")
	if err := os.CopyFS(place, os.DirFS(filepath.Join(dir, day))); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil {
		t.Fatal(err)
	}
	o := stoa.PartitionOptions{Partition: killedDay()}
	if _, err := c.DropPartition(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o.Location = place; !slices.ContainsFunc(filesUnder(t, place), func(n string) bool { return n[0] == '0' }) {
		t.Fatalf("no index of segment 0 in %v", filesUnder(t, place))
	}
	for _, name := range filesUnder(t, place) { // of one segment only, because an index must name all files
		if name[0] == '1' || strings.Contains(name, "-0-1-") {
			if err := os.Remove(filepath.Join(place, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.AddPartition(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(id int) bool { return id == 1001 })
	if got, err := idsWhere(t, dir, "id >= 0"); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if found := faults(t, dir); len(found) > 0 {
		t.Errorf("verify found %v", found)
	}
}

// valuesOfSegment returns the rows of a segment as texts, sorted.
func valuesOfSegment(t *testing.T, dir, segment string) (out []string) {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats,
		Opts: map[string]string{"external": "true", "segment": segment}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			row := ""
			for _, c := range b.Columns() {
				row += c.ValueStr(i) + ","
			}
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out
}

// TestDeleteNoSegments: naming no segment is wrong use, in a dry run, too.
func TestDeleteNoSegments(t *testing.T) {
	c, _ := changer(t, "managed1")
	for _, dry := range []bool{true, false} {
		err := c.DeleteSegments(t.Context(), stoa.DeleteSegmentsOptions{DryRun: dry})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("dry %v: got %v, want Invalid", dry, err)
		}
	}
}

// TestDependentsAreListed: everything that CarbonData derives from a table is listed as a fact of its entry.
func TestDependentsAreListed(t *testing.T) {
	for value, want := range map[string]string{"{}": "",
		`{"default":["mv1"]}`: `materialised views {"default":["mv1"]}`} {
		dir := newOrders(t, carbon.TableSpec{Properties: map[string]string{"relatedmvtablesmap": value}})
		got := ""
		for e, err := range stoa.List(t.Context(), dir, stoa.OpenOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range e.Meta {
				if m.Key == format.Dependents {
					got = m.Value
				}
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}
