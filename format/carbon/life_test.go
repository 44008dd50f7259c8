package carbon_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
	"stoa/region"
)

// TestMissingPartitions reads tables of CarbonData 2.3.0 under Spark 3.1.1 (testdata/life) in which partitions were
// dropped or overwritten, with the rows that Spark read of them. CarbonData records the time of such a change as that
// of an update in the entries of all segments. The statements:
//
//	dropped:     insert (1, x, a), (2, y, b); insert (3, z, b); drop partition (c = a)
//	overwritten: insert (1, x, a), (2, y, b); delete id = 1; insert overwrite partition (c = b) (9, ov);
//	             insert (4, u, a)
func TestMissingPartitions(t *testing.T) {
	for name, want := range map[string][]int32{"dropped": {2, 3}, "overwritten": {4, 9}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			if err := os.CopyFS(dir, os.DirFS("testdata/life/"+name)); err != nil {
				t.Fatal(err)
			}
			same := func(want []int32) {
				t.Helper()
				if got := ids(t, dir, nil); !slices.Equal(got, want) {
					t.Errorf("ids: got %v, want %v", got, want)
				}
				healthy(t, dir)
			}
			same(want)
			if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
				t.Fatal(err)
			}
			same(want)
			if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id < 5")); err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(slices.Clone(want), func(id int32) bool { return id < 5 })
			same(want)
		})
	}
}

// entries returns the entries of a tablestatus.
func entries(t *testing.T, dir string) (out []map[string]string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", "tablestatus"))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// linked checks that tablestatus has the link to the update status both where CarbonData writes it, in the entry of
// segment 0, and where it reads it, in the first entry, and nowhere else.
func linked(t *testing.T, dir string, link bool) {
	t.Helper()
	for i, e := range entries(t, dir) {
		if i == 0 && e["loadName"] != "0" {
			t.Errorf("the first entry is that of segment %s", e["loadName"])
		}
		if (e["updateStatusFileName"] != "") != (link && i == 0) {
			t.Errorf("entry %d has the link %q", i, e["updateStatusFileName"])
		}
	}
}

// TestLinkStays: after any change of a table, the link to the update status is where CarbonData looks for it.
func TestLinkStays(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 20})
	linked(t, dir, false)
	del := func(where string) {
		t.Helper()
		if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, where)); err != nil {
			t.Fatal(err)
		}
		linked(t, dir, true)
	}
	del("id = 3")
	if err := carbon.DeleteSegments(t.Context(), dir, []string{"0"}); err != nil {
		t.Fatal(err)
	}
	linked(t, dir, true)
	for range 2 {
		if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
			t.Fatal(err)
		}
		linked(t, dir, true)
	}
	del("id = 13")
	loadOrders(t, dir, 20, 30)
	linked(t, dir, true)
	if got, want := ids(t, dir, nil), slices.Concat(span(10, 13), span(14, 30)); !slices.Equal(got, want) {
		t.Errorf("ids: got %v, want %v", got, want)
	}
	healthy(t, dir)
}

// TestLinkComesBack: a table from which an earlier clean removed the entry of segment 0 gets it back with the next
// change.
func TestLinkComesBack(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 20})
	if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 13")); err != nil {
		t.Fatal(err)
	}
	if err := carbon.DeleteSegments(t.Context(), dir, []string{"0"}); err != nil {
		t.Fatal(err)
	}
	if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	list := entries(t, dir)
	list[1]["updateStatusFileName"] = list[0]["updateStatusFileName"]
	for name, l := range map[string]any{"tablestatus": list[1:], "tablestatus.history": list[:1]} {
		b, err := json.Marshal(l)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "Metadata", name), b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := slices.Concat(span(10, 13), span(14, 20))
	if got := ids(t, dir, nil); !slices.Equal(got, want) {
		t.Errorf("before: got %v, want %v", got, want)
	}
	loadOrders(t, dir, 20, 30)
	linked(t, dir, true)
	if got, want := ids(t, dir, nil), slices.Concat(want, span(20, 30)); !slices.Equal(got, want) {
		t.Errorf("after: got %v, want %v", got, want)
	}
}

// TestCleanBeforeTheFirstLoad: a table has no tablestatus before its first load, whoever created it, so that its
// creation is one file; clean then writes a list and not null.
func TestCleanBeforeTheFirstLoad(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{})
	if _, err := os.Stat(filepath.Join(dir, "Metadata", "tablestatus")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("tablestatus: %v", err)
	}
	if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); got == nil || len(got) > 0 {
		t.Errorf("tablestatus: %v", got)
	}
}

// TestAbortedFirstLoad: a first load that fails while a second one succeeds leaves its entry.
func TestAbortedFirstLoad(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{})
	b := orders(0, 10)
	l, err := carbon.BeginLoad(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	loadOrders(t, dir, 10, 20)
	if err := l.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	linked(t, dir, false)
	if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 13")); err != nil {
		t.Fatal(err)
	}
	linked(t, dir, true)
	healthy(t, dir)
}

// TestNoRows: loads and compactions without rows are entered as deleted segments, because CarbonData cannot read a
// table that has a segment without files.
func TestNoRows(t *testing.T) {
	for name, spec := range map[string]carbon.TableSpec{"plain": {}, "parts": {Partition: []string{"day"}},
		"sorted": {SortColumns: []string{"name"}}, "buckets": {Buckets: 2, BucketBy: []string{"id"}}} {
		t.Run(name, func(t *testing.T) {
			dir := newOrders(t, spec, [2]int{0, 0}, [2]int{0, 10}, [2]int{10, 10}, [2]int{10, 20})
			empty := orders(0, 0)
			l, err := carbon.BeginLoad(t.Context(), dir, empty.Schema(), carbon.LoadOptions{})
			if err == nil {
				err = l.Write(t.Context(), empty)
			}
			if err == nil {
				_, err = l.Close(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			// as if all rows had been deleted
			c, err := carbon.BeginCompaction(t.Context(), dir, arrow.NewSchema(orderFields, nil), []string{"1", "3"},
				"1.1", true, carbon.LoadOptions{})
			if err == nil {
				_, err = c.Close(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"Marked for Delete", "Compacted", "Marked for Delete", "Compacted",
				"Marked for Delete", "Marked for Delete"} {
				if got := entries(t, dir)[i]; got["loadStatus"] != want {
					t.Errorf("entry %d: got %v, want %s", i, got, want)
				}
			}
			if got := ids(t, dir, nil); len(got) > 0 {
				t.Errorf("rows: %v", got)
			}
			healthy(t, dir)
			loadOrders(t, dir, 20, 30)
			if got := ids(t, dir, nil); !slices.Equal(got, span(20, 30)) {
				t.Errorf("rows: %v", got)
			}
		})
	}
}

// TestSegmentsWithoutRows: data files and segments all rows of which are deleted are marked as deleted, as CarbonData
// marks them. It cannot compact partitions that have only such data files, unless they are marked.
func TestSegmentsWithoutRows(t *testing.T) {
	for name, spec := range map[string]carbon.TableSpec{"plain": {}, "parts": {Partition: []string{"day"}},
		"buckets": {Buckets: 2, BucketBy: []string{"id"}}} {
		t.Run(name, func(t *testing.T) {
			dir := newOrders(t, spec, [2]int{0, 10}, [2]int{10, 20}, [2]int{20, 30})
			check := func(want []int32, states ...string) {
				t.Helper()
				for i, e := range entries(t, dir) {
					if e["loadStatus"] != states[i] {
						t.Errorf("segment %d: got %v, want %s", i, e, states[i])
					}
				}
				if got := ids(t, dir, nil); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("rows: got %v, want %v", got, want)
				}
				healthy(t, dir)
			}
			del := func(where string) {
				t.Helper()
				if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, where)); err != nil {
					t.Fatal(err)
				}
			}
			del("id >= 5 and id < 15")
			check(slices.Concat(span(0, 5), span(15, 30)), "Success", "Success", "Success")
			del("id < 5")
			check(span(15, 30), "Marked for Delete", "Success", "Success")
			linked(t, dir, true)
			del("id >= 0")
			check(nil, "Marked for Delete", "Marked for Delete", "Marked for Delete")
		})
	}
}

// TestUpdateOfNoRows: an update that replaces no row, such as a merge into an empty table, writes no update status.
// CarbonData fails to read a table with one that lists nothing.
func TestUpdateOfNoRows(t *testing.T) {
	for name, loads := range map[string][][2]int{"empty": nil, "loaded": {{0, 10}}} {
		t.Run(name, func(t *testing.T) {
			dir := newOrders(t, carbon.TableSpec{}, loads...)
			b := orders(20, 30)
			l, err := carbon.BeginUpdate(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
			if err == nil {
				err = l.Write(t.Context(), b)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n, err := carbon.UpdateRows(t.Context(), dir, nil, l); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "Metadata", "tableupdatestatus-*"))
			if len(files) > 0 || err != nil {
				t.Errorf("update statuses: %v, %v", files, err)
			}
			linked(t, dir, false)
			healthy(t, dir)
			want := append(span(0, 10*len(loads)), span(20, 30)...)
			if got := ids(t, dir, nil); !slices.Equal(got, want) {
				t.Errorf("rows: got %v, want %v", got, want)
			}
		})
	}
}

// TestNullUpdates: an update status that is the JSON null, which CarbonData cannot read, is reported, and the next
// change removes it.
func TestNullUpdates(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"clean": func(dir string) error {
			dry, err := carbon.Clean(t.Context(), dir, true)
			c, e := carbon.Clean(t.Context(), dir, false)
			if len(c.Files) != 1 || !slices.Equal(c.Files, dry.Files) {
				t.Errorf("cleaned %v, on trial %v", c.Files, dry.Files)
			}
			return errors.Join(err, e)
		},
		"delete": func(dir string) error {
			_, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 3"))
			return err
		},
		"delete of a segment": func(dir string) error {
			return carbon.DeleteSegments(t.Context(), dir, []string{"1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10}, [2]int{10, 20})
			list := entries(t, dir)
			const updates = "tableupdatestatus-1795477725596"
			list[0]["updateStatusFileName"] = updates
			b, err := json.Marshal(list)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), b, 0o666)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "Metadata", updates), []byte("null"), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			found := func() (out []string) {
				for f := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{Formats: formats}) {
					if f.Severity >= region.Warning {
						out = append(out, f.Code)
					}
				}
				return out
			}
			if got := found(); !slices.Equal(got, []string{"carbon.update.null"}) {
				t.Errorf("findings: got %v", got)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if got := found(); len(got) > 0 {
				t.Errorf("findings after the change: %v", got)
			}
			if got := entries(t, dir)[0]["updateStatusFileName"]; got == updates {
				t.Errorf("tablestatus still names %s", got)
			}
			healthy(t, dir)
		})
	}
}

// TestStatusVersions reads a table whose tablestatus has versions, as CarbonData 2.3.1 may keep them: the newest is
// read. Hive's metastore also records the current version and is out of reach, so the table cannot be changed.
func TestStatusVersions(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	meta := filepath.Join(dir, "Metadata")
	before, err := os.ReadFile(filepath.Join(meta, "tablestatus"))
	if err != nil {
		t.Fatal(err)
	}
	loadOrders(t, dir, 10, 20)
	plain := filepath.Join(meta, "tablestatus")
	if err := os.Rename(plain, plain+"_1795477725596"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tablestatus_995477725596", "tablestatus_5c3b", "tablestatus.history"} {
		if err := os.WriteFile(filepath.Join(meta, name), before, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(t, dir, nil); !slices.Equal(got, span(0, 20)) {
		t.Errorf("rows: %v", got)
	}
	healthy(t, dir)
	b := orders(0, 10)
	_, err = carbon.BeginLoad(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
	if !errors.Is(err, fault.Unsupported) {
		t.Errorf("a load: %v", err)
	}
	if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 3")); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a delete: %v", err)
	}
	if _, err := carbon.Clean(t.Context(), dir, false); !errors.Is(err, fault.Unsupported) {
		t.Errorf("clean: %v", err)
	}
}
