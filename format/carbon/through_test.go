package carbon_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/store"
)

// TestSegmentThroughItsTable: the directory of a segment is opened as that segment of its table, with the table's
// deletes and schema. A partition, which has files of several segments, is refused with a message that names the table.
func TestSegmentThroughItsTable(t *testing.T) {
	for name, segments := range map[string][]string{"managed_del": {"0", "1", "2"}, "managed_compact": {"0", "0.1"},
		"managed_alter": {"0", "1"}} {
		tree := loaded(t, filepath.Join(golden2, "managed", name))
		for _, s := range segments {
			_, want, err := read(t, "t", stoa.OpenOptions{Tree: tree, Opts: map[string]string{"segment": s}},
				stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			_, got, err := read(t, "t/Fact/Part0/Segment_"+s, stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
			if err != nil || differ(got, want, true) != "" || len(got) == 0 {
				t.Errorf("%s, segment %s: got %d rows, %v, want %d", name, s, len(got), err, len(want))
			}
		}
	}
	swap := loaded(t, filepath.Join(golden2, "managed/managed_del"))
	swap.Put("t/Metadata/tablestatus", []byte("[{]"))
	if _, rows, err := read(t, "t/Fact/Part0/Segment_0", stoa.OpenOptions{Tree: swap},
		stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("without its status: got %d rows, %v", len(rows), err)
	}
	parts := loaded(t, filepath.Join(golden2, "managed/managed_part"))
	tried := map[string]bool{}
	for _, n := range parts.Names() {
		dir := filepath.ToSlash(filepath.Dir(n))
		if !strings.HasSuffix(n, ".carbondata") || tried[dir] {
			continue
		}
		tried[dir] = true
		_, rows, err := read(t, dir, stoa.OpenOptions{Tree: parts}, stoa.ScanSpec{})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "of the CarbonData table t,") {
			t.Errorf("%s: got %d rows, %v", dir, len(rows), err)
		}
	}
	if len(tried) == 0 {
		t.Error("got no partition tried, want some")
	}
}

// TestTablesAtAllDepths: a store has tables and databases of tables; tables at deeper levels, or among data files, are
// listed, too.
func TestTablesAtAllDepths(t *testing.T) {
	whole := loaded(t, filepath.Join(golden2, "managed/managed1"))
	file := loaded(t, filepath.Join(golden2, "v3/onerow/table"))
	tree := store.NewMemory(nil)
	places := []string{"s/a", "s/db/b", "s/db/x/c", "s/db/x/y/d", "s/db/x/y/z=1/e", "s/files/f", "s/db/files/g"}
	for _, at := range places {
		for _, n := range whole.Names() {
			tree.Put(at+strings.TrimPrefix(n, "t"), whole.Bytes(n))
		}
	}
	for _, n := range file.Names() {
		tree.Put("s/files"+strings.TrimPrefix(n, "t"), file.Bytes(n))
		tree.Put("s/db/files"+strings.TrimPrefix(n, "t"), file.Bytes(n))
	}
	var listed []string
	for e, err := range stoa.List(t.Context(), "s", stoa.OpenOptions{Tree: tree, Formats: formats}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, e.Place+"#"+e.Table)
	}
	for _, at := range places {
		last := at[strings.LastIndexByte(at, '/')+1:]
		n := 0
		for _, l := range listed {
			if strings.HasSuffix(strings.TrimSuffix(l, "#"), "/"+last) || strings.HasSuffix(l, "#"+last) ||
				strings.HasSuffix(l, "."+last) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: got listed %d times: %q", at, n, listed)
		}
	}
	if !slices.ContainsFunc(listed, func(l string) bool { return strings.Contains(l, "files") }) {
		t.Errorf("got %q, want the data files listed", listed)
	}
}
