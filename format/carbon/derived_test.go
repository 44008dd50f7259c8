package carbon_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
)

// derived copies a table of testdata/derived, which CarbonData 2.3.0 under Spark 3.1.1 made:
//
//	spatial: SPATIAL_INDEX mygeohash of longitude and latitude, origin 39.832277, grid size 50, ratio 1000000; a row
//	         with an index of its own
//	main:    id, name, city, amount: (1, a), (2, b); (3, a), (4, b); an index of name; delete id = 1; (5, a)
//	index:   that index
func derived(t *testing.T, name string) (*stoa.Changer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS("testdata/derived/"+name)); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// points returns rows with these columns, all of them numbers; an empty text is null.
func points(columns string, rows ...string) arrow.RecordBatch {
	var fields []arrow.Field
	for _, n := range strings.Split(columns, ",") {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range rows {
		for i, v := range strings.Split(r, ",") {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				b.Field(i).(*array.Int64Builder).Append(n)
			} else {
				b.Field(i).AppendNull()
			}
		}
	}
	return b.NewRecordBatch()
}

// places returns "id index" of all rows, sorted.
func places(t *testing.T, dir string) (out []string) {
	t.Helper()
	x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for b, err := range x.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"id", "mygeohash"}}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).ValueStr(i)+" "+b.Column(1).ValueStr(i))
		}
	}
	slices.Sort(out)
	return out
}

// computed returns the points of layout/testdata/geohash.csv in the grid of the table, as rows of id, longitude and
// latitude, and as places returns them.
func computed(t *testing.T) (rows, want []string) {
	t.Helper()
	f, err := os.Open("internal/layout/testdata/geohash.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v := strings.Split(lines.Text(), ","); v[0] == "39.832277" && v[5] != "" {
			rows = append(rows, fmt.Sprintf("%d,%s,%s", 100+len(rows), v[3], v[4]))
			want = append(want, fmt.Sprintf("%d %s", 99+len(rows), v[5]))
		}
	}
	if len(rows) < 50 {
		t.Fatalf("only %d points", len(rows))
	}
	return rows, append(want, "9 77")
}

// TestSpatialLoads: loads compute the geohash index as CarbonData does, or keep the one that rows have, and every other
// change keeps it.
func TestSpatialLoads(t *testing.T) {
	c, dir := derived(t, "spatial")
	add := func(b arrow.RecordBatch, o stoa.AppendOptions) error {
		_, err := c.Append(t.Context(), b.Schema(), once(b), o)
		return err
	}
	rows, want := computed(t)
	same := func(what string) {
		t.Helper()
		slices.Sort(want)
		if got := places(t, dir); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
		healthy(t, dir)
	}
	if err := add(points("id,Longitude,latitude", rows...), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	same("loaded")
	if err := add(points("mygeohash,id,longitude,latitude", "5,1,7,8", ",2,,8"), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	want = append(want, "1 5", "2 (null)")
	same("loaded with the index")
	for what, b := range map[string]arrow.RecordBatch{"no latitude": points("id,longitude,latitude", "3,7,"),
		"no column longitude": points("id,latitude", "3,7"),
		"no index":            points("mygeohash,id,longitude,latitude", ",3,7,8")} {
		if err := add(b, stoa.AppendOptions{}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	err := add(points("id,longitude,latitude", "3,7,", "4"+rows[0][3:]), stoa.AppendOptions{Bad: stoa.BadIgnore})
	if err != nil {
		t.Error(err)
	}
	first := slices.IndexFunc(want, func(s string) bool { return strings.HasPrefix(s, "100 ") })
	want = append(want, "4"+want[first][3:])
	same("a bad row was left out")
}

// TestSpatialChanges: changes other than loads keep the geohash index; what would contradict it is refused.
func TestSpatialChanges(t *testing.T) {
	c, dir := derived(t, "spatial")
	rows, want := computed(t)
	b := points("id,longitude,latitude", rows...)
	key := stoa.MergeOptions{Key: []string{"id"}}
	if _, err := c.Merge(t.Context(), b.Schema(), once(b), key); !errors.Is(err, fault.Invalid) {
		t.Errorf("rows without the columns name2 and x: got %v", err)
	}
	for _, name := range []string{"name2", "x"} {
		if err := c.DropColumn(t.Context(), stoa.DropColumnOptions{Column: name}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.Merge(t.Context(), b.Schema(), once(b), key); err != nil || r.Added != int64(len(rows)) {
		t.Fatalf("merge: %v, %v", r, err)
	}
	if r, err := c.Merge(t.Context(), b.Schema(), once(b), key); err != nil || r.Replaced != int64(len(rows)) {
		t.Fatalf("merged again: %v, %v", r, err)
	}
	err := c.AddColumn(t.Context(), arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		stoa.AddColumnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := "u"
	o := stoa.UpdateOptions{Where: "id < 110", Set: map[string]*string{"note": &text}}
	if n, err := c.Update(t.Context(), o); err != nil || n != 11 {
		t.Errorf("update: %d, %v", n, err)
	}
	five := "5"
	for _, name := range []string{"longitude", "LATITUDE", "mygeohash"} {
		for _, v := range []*string{&five, nil} {
			for _, dry := range []bool{true, false} {
				o := stoa.UpdateOptions{Where: "true", Set: map[string]*string{name: v}, DryRun: dry}
				if _, err := c.Update(t.Context(), o); !errors.Is(err, fault.Invalid) {
					t.Errorf("set %s: got %v", name, err)
				}
			}
		}
		a := stoa.AlterColumnOptions{}
		a.Column, a.Name = name, "other"
		if err := c.AlterColumn(t.Context(), a); !errors.Is(err, fault.Invalid) {
			t.Errorf("rename %s: got %v", name, err)
		}
		if err := c.DropColumn(t.Context(), stoa.DropColumnOptions{Column: name}); !errors.Is(err, fault.Invalid) {
			t.Errorf("drop %s: got %v", name, err)
		}
	}
	plan, err := c.Compact(t.Context(), stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}})
	if err != nil || len(plan) != 1 {
		t.Errorf("compact: %v, %v", plan, err)
	}
	slices.Sort(want)
	if got := places(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	healthy(t, dir)
}

// TestIndexTableAfterDelete: after a DELETE in a table, CarbonData gives its index table the same entries, which name
// an update status that the index table does not have. Nothing is deleted there, unless there is a delete delta.
func TestIndexTableAfterDelete(t *testing.T) {
	c, dir := derived(t, "index")
	sc, rows, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]any
	for _, x := range [][2]string{{"a", "0/0-0_0-0-0-1796027611552/0"}, {"b", "0/0-0_0-0-0-1796027611552/0"},
		{"a", "1/0-0_0-0-1-1796027612547/0"}, {"b", "1/0-0_0-0-1-1796027612547/0"},
		{"a", "2/0-0_0-0-2-1796027626328/0"}} { // as Spark read them
		want = append(want, map[string]any{"name": x[0], "positionReference": x[1]})
	}
	if d := differ(rows, wanted(sc, want), true); d != "" {
		t.Error(d)
	}
	healthy(t, dir)
	if _, err := c.Truncate(t.Context(), stoa.TruncateOptions{}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("the index table was changed: %v", err)
	}
	delta := "Fact/Part0/Segment_0/part-0-0_batchno0-0-0-1796027620564.deletedelta"
	if err := os.WriteFile(filepath.Join(dir, delta), []byte("[]"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("with a delete delta: got %v", err)
	}
}

// TestIndexedTable: rows of a table with secondary index tables are changed only after DisableDependents, which names
// them; what these tables have in common with it (columns, its name) is not changed even then.
func TestIndexedTable(t *testing.T) {
	c, dir := derived(t, "main")
	b := points("id", "6")
	load := func() error {
		_, err := c.Append(t.Context(), b.Schema(), once(b), stoa.AppendOptions{})
		return err
	}
	if err := load(); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), format.IndexTables) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Update(t.Context(), stoa.UpdateOptions{Where: "true", DryRun: true,
		Set: map[string]*string{"city": nil}}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a dry update: got %v", err)
	}
	names, err := c.DisableDependents(t.Context(), false)
	if err != nil || !slices.Equal(names, []string{format.IndexTables}) {
		t.Fatalf("got %v, %v", names, err)
	}
	if err := load(); err != nil {
		t.Error(err)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "id = 2"}); err != nil || n != 1 {
		t.Errorf("delete: %d, %v", n, err)
	}
	if got, want := ids(t, dir, nil), []int32{3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	a := stoa.AlterColumnOptions{}
	a.Column, a.Name = "city", "town"
	for what, err := range map[string]error{"rename": c.Rename(t.Context(), stoa.RenameOptions{To: dir + "2"}),
		"rename --column": c.AlterColumn(t.Context(), a),
		"drop-column":     c.DropColumn(t.Context(), stoa.DropColumnOptions{Column: "city"})} {
		if !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	healthy(t, dir)
}

// TestBloomIndex: the files of a bloom index belong to the table, which names it; other files among them do not.
// Changes are refused: CarbonData reads no row of a segment that the index lacks.
func TestBloomIndex(t *testing.T) {
	c, dir := derived(t, "bloom")
	listed := func() (out []string) {
		for e, err := range stoa.List(t.Context(), dir, stoa.OpenOptions{Formats: formats}) {
			name := strings.TrimPrefix(e.Place, dir)
			for _, m := range e.Meta {
				if m.Key == format.Dependents {
					name += m.Value
				}
			}
			if err != nil {
				name += "!"
			}
			out = append(out, name)
		}
		return out
	}
	if got := listed(); !slices.Equal(got, []string{"bloom or Lucene indexes"}) {
		t.Errorf("listed: %q", got)
	}
	healthy(t, dir)
	b := points("id", "5")
	for _, err := range []error{
		func() error { _, err := c.Append(t.Context(), b.Schema(), once(b), stoa.AppendOptions{}); return err }(),
		func() error { _, err := c.DisableDependents(t.Context(), false); return err }(),
	} {
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "bloom") {
			t.Errorf("got %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bl/0/other.bin"), []byte("\x01\x02"), 0o666); err != nil {
		t.Fatal(err)
	}
	var found []string
	for f := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{Formats: formats}) {
		if f.Code != "file.unchecked" {
			found = append(found, f.Code+" "+strings.TrimPrefix(f.At.Object, dir))
		}
	}
	if want := []string{"dir.file.unknown /bl/0/other.bin"}; !slices.Equal(found, want) {
		t.Errorf("with another file: got %q, want %q", found, want)
	}
}

// TestDropDependents: a table is not dropped from under what depends on it, and not if another table depends on it.
func TestDropDependents(t *testing.T) {
	for _, x := range []struct {
		name, says string
		disable    bool // possible
	}{{"main", "secondary index tables", true}, {"index", "a main table", false}, {"spatial", "", false}} {
		c, dir := derived(t, x.name)
		for _, dry := range []bool{true, false} {
			_, err := c.Drop(t.Context(), stoa.DropOptions{DryRun: dry})
			if x.says != "" && (!errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), x.says)) ||
				x.says == "" && err != nil {
				t.Errorf("%s, dry %v: %v", x.name, dry, err)
			}
		}
		_, err := os.Stat(dir)
		if gone := errors.Is(err, os.ErrNotExist); gone != (x.says == "") {
			t.Errorf("%s: dropped: %v", x.name, gone)
		}
		if x.says == "" {
			continue
		}
		if c, err = stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err = c.DisableDependents(t.Context(), false); (err == nil) != x.disable {
			t.Fatalf("%s: %v", x.name, err)
		}
		if _, err = c.Drop(t.Context(), stoa.DropOptions{}); (err == nil) != x.disable {
			t.Errorf("%s, after its dependents were disabled: %v", x.name, err)
		}
	}
}
