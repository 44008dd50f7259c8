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

	"stoa"
	"stoa/fault"
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
