package carbon_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// movedPartition creates a store with the table t, whose partition country=c1 is in the directory to of the store; the
// segment file states it as a full address.
func movedPartition(t *testing.T, to, scheme string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "t"), os.DirFS(filepath.Join(golden2, "managed/managed_part"))); err != nil {
		t.Fatal(err)
	}
	to = filepath.Join(dir, to)
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = os.Rename(filepath.Join(dir, "t/country=c1"), to)
	}
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "t/Metadata/segments/0_*"))
	for _, name := range names {
		file := segmentFile(t, name)
		places := file["locationMap"].(map[string]any)
		for k, v := range places {
			if rest, ok := strings.CutPrefix(k, "/country=c1"); ok {
				v.(map[string]any)["isRelative"] = false
				delete(places, k)
				places[scheme+filepath.ToSlash(to)+rest] = v
			}
		}
		b, err := json.Marshal(file)
		if err == nil {
			err = os.WriteFile(name, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func segmentFile(t *testing.T, name string) (out map[string]any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if z, failed := gzip.NewReader(bytes.NewReader(b)); failed == nil {
		b, err = io.ReadAll(z)
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestExternal: a location in a file of the table is followed inside the place that the user named, and outside of it
// only if that is allowed.
func TestExternal(t *testing.T) {
	_, right, err := read(t, filepath.Join(golden2, "managed/managed_part"), stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil || len(right) == 0 {
		t.Fatal(len(right), err)
	}
	for _, c := range []struct {
		to, scheme, place string
		follows           bool
	}{
		{"t/other/country=c1", "", "/t", true}, // an address inside the table
		{"t/other/country=c1", "file:", "/t", true},
		{"apart/country=c1", "", "#t", true}, // the store was named
		{"apart/country=c1", "", "/t", false},
		{"apart/country=c1", "file:", "/t", false},
		{"apart/country=c1", "file://", "/t", false},
		{"t2/country=c1", "", "/t", false}, // a name that merely has the same prefix
	} {
		dir := movedPartition(t, c.to, c.scheme)
		for _, external := range []string{"false", "true"} {
			o := stoa.OpenOptions{From: "carbon", Opts: map[string]string{"external": external}}
			_, rows, err := read(t, dir+c.place, o, stoa.ScanSpec{})
			if external == "true" || c.follows {
				if err != nil || differ(rows, right, true) != "" {
					t.Errorf("%+v, external=%s: %v %s", c, external, err, differ(rows, right, true))
				}
				continue
			}
			if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "external=true") || len(rows) > 0 {
				t.Errorf("%+v: got %d rows, %v, want unsupported", c, len(rows), err)
			}
			var found []region.Finding
			for f := range stoa.Verify(t.Context(), dir+c.place, o) {
				found = append(found, f)
			}
			if !slices.ContainsFunc(found, func(f region.Finding) bool {
				return f.Severity == region.Error && strings.Contains(f.Message, "outside of")
			}) {
				t.Errorf("%+v: verify found %v", c, found)
			}
		}
	}
}

// TestExternalChanged: a table with a partition outside of it, and with a segment that Spark once deleted rows of, is
// changed if the location is allowed, and refused by name if it is not. The segment's folders are listed for that.
func TestExternalChanged(t *testing.T) {
	dir := movedPartition(t, "apart/country=c1", "") + "/t"
	list := entries(t, dir)
	list[0]["updateDeltaEndTimestamp"], list[0]["updateDeltaStartTimestamp"] = "1", "1"
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []bool{false, true} {
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{
			"external": strconv.FormatBool(allowed)}})
		if err != nil {
			t.Fatal(err)
		}
		v := "stoa"
		err = c.SetProperties(t.Context(), stoa.SetPropertiesOptions{Properties: map[string]*string{"comment": &v}})
		if allowed != (err == nil) || !allowed && !errors.Is(err, fault.Unsupported) {
			t.Errorf("allowed %v: %v", allowed, err)
		}
	}
}

// outside is a table with a partition outside of its directory.
type outside struct {
	*testing.T
	dir string
	c   *stoa.Changer
}

func rowText(b arrow.RecordBatch, i int) string {
	return b.Column(0).ValueStr(i) + " " + b.Column(1).ValueStr(i) + " " + b.Column(2).ValueStr(i)
}

// check compares the rows of the table, as id, name and country, with want. Nothing may be in the table's own directory
// of the partition: CarbonData reads it only where Hive's metastore has it.
func (o *outside) check(what string, want []string) {
	o.Helper()
	var got []string
	x, err := o.c.Open(o.Context(), stoa.OpenOptions{})
	if err != nil {
		o.Fatal(what, err)
	}
	defer x.Close()
	for b, err := range x.Scan(o.Context(), stoa.ScanSpec{Columns: []string{"id", "name", "country"}}) {
		if err != nil {
			o.Fatal(what, err)
		}
		for i := range int(b.NumRows()) {
			got = append(got, rowText(b, i))
		}
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		o.Errorf("%s: got %d rows %v, want %d rows %v", what, len(got), got, len(want), want)
	}
	for _, own := range []string{"country=c1", "country=c9"} {
		if _, err := os.Stat(filepath.Join(o.dir, own)); err == nil {
			o.Errorf("%s: there is a %s in the table", what, own)
		}
	}
}

// TestRowsOfPartitionOutside: rows that are loaded into a partition outside of the table, updated in it or compacted go
// where it is; deletes there are those of the segment of their file, and a segment has only the files that its segment
// file names, though others have put theirs into the same directory.
func TestRowsOfPartitionOutside(t *testing.T) {
	dir := movedPartition(t, "apart/country=c1", "") + "/t"
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{"external": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{t, dir, c}
	var all []arrow.RecordBatch
	var first, second, far []string // as they were; as they were loaded; in c9
	sc := batchesOf(t, filepath.Join(golden2, "managed/managed_part"), func(b arrow.RecordBatch) {
		b.Retain()
		all = append(all, b)
		for i := range int(b.NumRows()) {
			first = append(first, rowText(b, i))
		}
	})
	o.check("before", first)
	refused, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	places := filepath.Join(filepath.Dir(dir), "apart")
	was := snapshot(t, places)
	for what, change := range map[string]func() error{
		"append": func() error {
			_, err := refused.Append(t.Context(), sc, once(all[0]), stoa.AppendOptions{})
			return err
		},
		"compact": func() error {
			_, err := refused.Compact(t.Context(),
				stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}})
			return err
		},
	} {
		if err := change(); !errors.Is(err, fault.Unsupported) || snapshot(t, places) != was {
			t.Errorf("%s: the location is not allowed: got %v, want unsupported", what, err)
		}
	}
	loaded, err := c.Append(t.Context(), sc, func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}, stoa.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second = slices.Clone(first)
	o.check("after a load", slices.Concat(first, second))

	at := slices.IndexFunc(first, func(s string) bool { return strings.HasSuffix(s, " c1") })
	id, _, _ := strings.Cut(first[at], " ")
	gone := func(s string) bool { return strings.HasPrefix(s, id+" ") && strings.HasSuffix(s, " c1") }
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "country = 'c1' and id = " + id}); err != nil ||
		n != 2 {
		t.Fatal(n, err)
	}
	first, second = slices.DeleteFunc(first, gone), slices.DeleteFunc(second, gone)
	o.check("after a delete", slices.Concat(first, second))
	names, _ := filepath.Glob(filepath.Join(dir, "Metadata/tableupdatestatus-*"))
	for _, name := range names {
		var list []map[string]string
		b, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(b, &list)
		}
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		for _, u := range list {
			if !strings.HasSuffix(u["blockName"], "-"+u["segmentName"]) {
				t.Errorf("the update status has %s for segment %s", u["blockName"], u["segmentName"])
			}
		}
	}
	if err := c.DeleteSegments(t.Context(),
		stoa.DeleteSegmentsOptions{Segments: []string{loaded.Segment}}); err != nil {
		t.Fatal(err)
	}
	o.check("after the load is deleted", first)

	place := filepath.Join(t.TempDir(), "place")
	if err := os.CopyFS(place, os.DirFS(filepath.Join(golden2, "managed/managed_part/country=c0/y=2019"))); err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		for i := range int(b.NumRows()) {
			if b.Column(2).ValueStr(i) == "c0" && b.Column(3).ValueStr(i) == "2019" {
				far = append(far, strings.TrimSuffix(rowText(b, i), "c0")+"c9")
			}
		}
	}
	country, y := "c9", "2019"
	c9 := map[string]*string{"country": &country, "y": &y}
	if _, err := c.AddPartition(t.Context(), stoa.PartitionOptions{Location: place, Partition: c9}); err != nil {
		t.Fatal(err)
	}
	list := entries(t, dir)
	list[len(list)-1]["path"] = place // CarbonData states it there, too
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.check("after a partition is added", slices.Concat(first, far))
	two := arrow.NewSchema(sc.Fields()[:2], nil)
	part := array.NewRecordBatch(two, all[0].Columns()[:2], all[0].NumRows())
	r, err := c.Append(t.Context(), two, once(part), stoa.AppendOptions{Partition: c9})
	if err != nil || r.Rows == 0 {
		t.Fatal(r, err)
	}
	if err := c.DeleteSegments(t.Context(), stoa.DeleteSegmentsOptions{Segments: []string{r.Segment}}); err != nil {
		t.Fatal(err)
	}
	o.check("after a load into it is deleted", slices.Concat(first, far))

	v := "changed"
	if _, err := c.Update(t.Context(), stoa.UpdateOptions{Where: "country in ('c1', 'c9')",
		Set: map[string]*string{"name": &v}}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range slices.Concat(first, far) {
		if f := strings.Fields(s); f[2] == "c1" || f[2] == "c9" {
			s = f[0] + " changed " + f[2]
		}
		want = append(want, s)
	}
	o.check("after an update", want)
	if _, err := c.Compact(t.Context(),
		stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}}); err != nil {
		t.Fatal(err)
	}
	o.check("after a compaction", want)
	for f := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{Opts: map[string]string{"external": "true"}}) {
		if f.Severity > region.Note {
			t.Errorf("%+v", f)
		}
	}
}
