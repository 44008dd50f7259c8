package carbon_test

import (
	"encoding/binary"
	"errors"
	"fmt"
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

// addTo adds a directory to a table as a segment, first dry: both must agree, and what is refused changes nothing.
func addTo(t *testing.T, dir, place, form string) error {
	t.Helper()
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	o := stoa.AddSegmentOptions{NewSegment: format.NewSegment{Path: place, Format: form}, DryRun: true}
	_, dry := c.AddSegment(t.Context(), o)
	if snapshot(t, dir) != before {
		t.Errorf("%s: a dry run changed the table", place)
	}
	o.DryRun = false
	_, err = c.AddSegment(t.Context(), o)
	if (err == nil) != (dry == nil) {
		t.Errorf("%s: a dry run said %v, the change %v", place, dry, err)
	}
	if err != nil && snapshot(t, dir) != before {
		t.Errorf("%s: it was refused, and changed the table", place)
	}
	return err
}

func copyDir(t *testing.T, from, to string) string {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func segmentDir(dir, n string) string { return filepath.Join(dir, "Fact", "Part0", "Segment_"+n) }

// TestAddedSegmentIsRead: whatever add-segment accepts is read as the rows that its files had where they were written.
// Codes of a dictionary have a meaning only with that dictionary.
func TestAddedSegmentIsRead(t *testing.T) {
	base := newVisits(t)
	load := func(dir string, from int, countries ...string) {
		t.Helper()
		if err := loadVisits(t, dir, "", nil, visits(from, countries...)); err != nil {
			t.Fatal(err)
		}
	}
	load(base, 1, "nl", "fr")
	for name, c := range map[string]struct {
		theirs, ours []string // what is loaded into the copy, and into the table
		place        func(copied, dir string) string
		accepted     bool
	}{
		"other values": {theirs: []string{"peru"}, ours: []string{"chile"}},
		"fewer values": {theirs: []string{"peru"}, ours: []string{"nl"}},
		"no new value": {theirs: []string{"nl"}, ours: []string{"chile"}, accepted: true},
		"moved away": {theirs: []string{"nl"}, ours: []string{"nl"}, place: func(copied, _ string) string {
			return copyDir(t, segmentDir(copied, "1"), filepath.Join(t.TempDir(), "more"))
		}},
		"moved into the table": {theirs: []string{"peru"}, ours: []string{"chile"},
			place: func(copied, dir string) string {
				return copyDir(t, segmentDir(copied, "1"), filepath.Join(dir, "more"))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, base, filepath.Join(t.TempDir(), "t"))
			copied := copyDir(t, base, filepath.Join(t.TempDir(), "c"))
			load(copied, 10, c.theirs...)
			load(dir, 20, c.ours...)
			place := segmentDir(copied, "1")
			if c.place != nil {
				place = c.place(copied, dir)
			}
			want := slices.Concat([]string{"nl", "fr"}, c.ours)
			err := addTo(t, dir, place, "")
			switch {
			case c.accepted && err != nil, !c.accepted && err == nil:
				t.Errorf("got %v", err)
			case err == nil:
				want = append(want, c.theirs...)
			case !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "dictionary"):
				t.Errorf("got %v, want Invalid that names the dictionary", err)
			}
			slices.Sort(want)
			got := slices.Sorted(slices.Values(cellsOf(t, dir, "country")))
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// cellsOf returns the texts of a column of a table of which segments are elsewhere.
func cellsOf(t *testing.T, dir, column string) (out []string) {
	t.Helper()
	_, rows, err := read(t, dir, stoa.OpenOptions{Opts: external}, stoa.ScanSpec{Columns: []string{column}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		out = append(out, strings.Trim(r[column], `"`))
	}
	return out
}

// TestAddedSegmentOfCorpus: segments that CarbonData wrote, copied out of their tables, can be added to these again.
func TestAddedSegmentOfCorpus(t *testing.T) {
	n := 0
	for _, name := range []string{"managed1", "managed_alter", "managed_bucket", "managed_compact", "managed_complex",
		"managed_gsort"} {
		from := filepath.Join(corpusDir(t), "managed", name)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		segments, err := filepath.Glob(filepath.Join(from, "Fact", "Part0", "Segment_*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range segments {
			dir := copyDir(t, from, filepath.Join(t.TempDir(), name))
			if err := addTo(t, dir, copyDir(t, s, filepath.Join(t.TempDir(), "more")), ""); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			n++
		}
	}
	if n == 0 {
		t.Skip("no corpus")
	}
}

// TestAddedSegmentIsWhole: a directory with a damaged, cut or missing data file is refused, and the table stays
// readable; otherwise no row of the table could be read.
func TestAddedSegmentIsWhole(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 40}, [2]int{40, 80})
	whole := segmentDir(dir, "1")
	names, err := filepath.Glob(filepath.Join(whole, "*.carbondata"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(names[len(names)-1])
	if err != nil {
		t.Fatal(err)
	}
	at := binary.BigEndian.Uint64(b[len(b)-8:]) // of the footer
	files := map[string][]byte{"missing": nil, "empty": {}, "another file": other,
		"footer": slices.Concat(b[:at], []byte{b[at] ^ 0xFF}, b[at+1:]),
		"header": slices.Concat([]byte{b[0] ^ 0xFF}, b[1:])}
	for _, n := range []int{1, 8, 9, len(b) / 2, len(b) - 1} {
		files[fmt.Sprintf("cut by %d bytes", n)] = b[:len(b)-n]
	}
	if len(names) < 2 {
		delete(files, "another file")
	}
	want := cellsOf(t, dir, "id")
	for what, bytes := range files {
		place := copyDir(t, whole, filepath.Join(t.TempDir(), "more"))
		damaged := filepath.Join(place, filepath.Base(names[0]))
		if err = os.Remove(damaged); err == nil && bytes != nil {
			err = os.WriteFile(damaged, bytes, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := addTo(t, dir, place, ""); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: got %v, want Corrupt with the file", what, err)
		}
		if got := cellsOf(t, dir, "id"); !slices.Equal(got, want) {
			t.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
		}
	}
	if err := addTo(t, dir, copyDir(t, whole, filepath.Join(t.TempDir(), "more")), ""); err != nil {
		t.Error(err)
	}
}

// TestAddedSegmentOnce: a directory that belongs to a segment of the table cannot be added, under no name: its rows
// would be there twice, or go when that segment is cleaned.
func TestAddedSegmentOnce(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 20})
	link := filepath.Join(t.TempDir(), "link")
	more := copyDir(t, segmentDir(dir, "0"), filepath.Join(t.TempDir(), "more"))
	parquet := filepath.Join(t.TempDir(), "parquet")
	writeParquet(t, filepath.Join(parquet, "a.parquet"), orders(100, 110))
	for from, to := range map[string]string{link: dir, more + "2": more, parquet + "2": parquet} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := addTo(t, dir, more, ""); err != nil {
		t.Fatal(err)
	}
	if err := addTo(t, dir, parquet, "parquet"); err != nil {
		t.Fatal(err)
	}
	if err := carbon.DeleteSegments(t.Context(), dir, []string{"1"}); err != nil {
		t.Fatal(err)
	}
	want := cellsOf(t, dir, "id")
	for place, form := range map[string]string{segmentDir(dir, "0"): "", segmentDir(link, "0"): "", more: "",
		more + "2": "", parquet: "parquet", parquet + "2": "parquet", segmentDir(dir, "1"): "",
		filepath.Join(more, "..", "more"): ""} {
		if err := addTo(t, dir, place, form); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: got %v, want Invalid with the directory", place, err)
		}
	}
	if got := cellsOf(t, dir, "id"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Opts: external})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSegments(t.Context(), stoa.DeleteSegmentsOptions{Segments: []string{"2"}}); err != nil {
		t.Fatal(err)
	}
	if err := addTo(t, dir, more, ""); err != nil {
		t.Errorf("a directory whose segment was deleted: %v", err)
	}
}
