package iceberg_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake/laketest"
	"stoa/pred"
	"stoa/store"
	"stoa/store/faulty"
)

// TestGolden reads tables written by pyiceberg, and compares them with what pyiceberg read: schemas evolved by field
// id, deleted rows, evolved partition specs, an old snapshot. interop/lake/make.py made them.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ table, at, want string }{{"evolved", "", "evolved"}, {"evolved", "first", "evolved-1"},
		{"parted", "", "parted"}} {
		opts := map[string]string{}
		if c.at != "" {
			opts["at"] = c.at
		}
		got := laketest.Open(t, iceberg.Format, "testdata/"+c.table, opts)
		laketest.Same(t, got, laketest.Open(t, iceberg.Format, "testdata/"+c.want+".arrow", nil))
	}
}

// TestPruned: files are skipped by the bounds in manifests, and the rows stay correct.
func TestPruned(t *testing.T) {
	got := laketest.Open(t, iceberg.Format, "testdata/parted", nil)
	filter, err := pred.Parse("day = '2020-01-02' and id > 1")
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for b, err := range got.Scan(context.Background(), stoa.ScanSpec{Filter: filter}) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
	}
	if rows != 2 { // 4 and 7
		t.Errorf("%d rows, want 2", rows)
	}
}

// sample returns a batch with a column of every kind that a table has.
func sample(t *testing.T, rows int) arrow.RecordBatch {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "small", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "wide", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 3}, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int16,
			Nullable: true})), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Uint8), Nullable: true}}, nil)
	var b strings.Builder
	b.WriteByte('[')
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		if i%5 == 4 {
			b.WriteString(`{"id":` + itoa(i) + `}`)
			continue
		}
		b.WriteString(`{"id":` + itoa(i) + `,"small":` + itoa(i%100-50) + `,"wide":18446744073709551615,"name":"n` +
			itoa(i%3) + `","at":"2023-11-14T22:13:` + itoa(10+i%50) + `.123Z","d":"-` + itoa(i) + `.125","f":` +
			itoa(i) +
			`.5,"l":[{"x":` + itoa(i%7) + `},null],"m":[{"key":"k","value":` + itoa(i%200) + `}]}`)
	}
	b.WriteByte(']')
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func itoa(i int) string {
	var b bytes.Buffer
	if i < 0 {
		b.WriteByte('-')
		i = -i
	}
	digits := "0123456789"
	if i >= 10 {
		b.WriteString(itoa(i / 10))
	}
	b.WriteByte(digits[i%10])
	return b.String()
}

// write writes a batch, which is read back before it is visible.
func write(t *testing.T, b arrow.RecordBatch, opts map[string]string) (string, format.Summary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	w, err := stoa.Create(context.Background(), dir+"/", b.Schema(), stoa.CreateOptions{To: "iceberg", Opts: opts,
		Formats: []format.Format{iceberg.Format}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	s, err := w.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

// TestWritten: the check of outputs reads back what was written, also at another location. Foreign readers check it in
// interop/lake.
func TestWritten(t *testing.T) {
	for _, opts := range []map[string]string{nil, {"format-version": "3", "file-size": "1"},
		{"partition-by": "name, bucket(4, id), day(at), truncate(10, small)", "sort-order": "id"}} {
		dir, s := write(t, sample(t, 60), opts)
		if !s.Checked || len(s.Unchecked) > 0 || s.Rows != 60 {
			t.Errorf("%v: checked %t, unchecked %v, %d rows", opts, s.Checked, s.Unchecked, s.Rows)
		}
		moved := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		got := laketest.Open(t, iceberg.Format, moved, nil)
		if n, err := got.Rows(context.Background()); n != 60 || err != nil {
			t.Errorf("%v: %d rows, %v", opts, n, err)
		}
	}
}

// TestContradictions: metadata and files that contradict each other are damage.
func TestContradictions(t *testing.T) {
	dir, s := write(t, sample(t, 20), nil)
	file := filepath.Join(dir, s.Files[0])
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	table := laketest.Open(t, iceberg.Format, dir, nil)
	if _, err := table.Rows(context.Background()); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a missing file: %v", err)
	}
	dir, s = write(t, sample(t, 20), nil)
	other, _ := write(t, sample(t, 10), nil)
	more, err := filepath.Glob(filepath.Join(other, "data", "*.parquet"))
	if err != nil || len(more) != 1 {
		t.Fatal(more, err)
	}
	b, err := os.ReadFile(more[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, s.Files[0]), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := laketest.Open(t, iceberg.Format, dir, nil).Rows(context.Background()); !errors.Is(err, fault.Corrupt) {
		t.Errorf("another file: %v", err)
	}
}

// TestDamagedMetadata: metadata with changed bytes give an error or rows, and never a panic.
func TestDamagedMetadata(t *testing.T) {
	dir, _ := write(t, sample(t, 5), nil)
	names, err := filepath.Glob(filepath.Join(dir, "metadata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(good); i += 1 + len(good)/60 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			if err := os.WriteFile(name, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			table, err := stoa.Open(context.Background(), dir,
				stoa.OpenOptions{Formats: []format.Format{iceberg.Format}})
			if err != nil {
				continue
			}
			for _, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
				if err != nil && strings.Contains(err.Error(), "panic") {
					t.Errorf("%s, byte %d: %v", name, i, err)
				}
			}
			table.Close()
		}
		if err := os.WriteFile(name, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpark reads tables written by Spark, and compares each of their snapshots with what Spark read: version 1, with a
// renamed and a new column; and version 2 with position deletes, upgraded to version 3 with deletion vectors.
// interop/lake/spark.py made them.
func TestSpark(t *testing.T) {
	for _, name := range []string{"v1", "v23"} {
		laketest.Views(t, iceberg.Format, "testdata/spark-"+name, "testdata/spark-"+name+".json")
	}
}

// TestEqualityDeletes reads tables with equality deletes, position deletes and a new column, and compares each of their
// snapshots with what Iceberg's own library read. interop/lake/rest/Equality.java made them.
func TestEqualityDeletes(t *testing.T) {
	for _, name := range []string{"equality", "equality-parted"} {
		laketest.Views(t, iceberg.Format, "testdata/"+name, "testdata/"+name+".json")
	}
}

// TestDefaults reads a table of version 3 whose older files lack columns that have default values for them, also inside
// a struct and as columns of equality deletes. interop/lake/rest/Equality.java made it.
func TestDefaults(t *testing.T) {
	laketest.Views(t, iceberg.Format, "testdata/defaults", "testdata/defaults.json")
	table := laketest.Open(t, iceberg.Format, "testdata/defaults", nil)
	b, err := os.ReadFile("testdata/defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	views := map[string][]map[string]any{}
	if err := json.Unmarshal(b, &views); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		where string
		is    func(row map[string]any) bool
	}{
		{"l2 = -1099511627776", func(r map[string]any) bool { return r["l2"] != nil }},
		{"l2 is null", func(r map[string]any) bool { return r["l2"] == nil }},
		{"n2 < 0", func(r map[string]any) bool { return r["n2"] != nil }},
		{"d2 < '1970-01-01'", func(r map[string]any) bool { return r["d2"] != nil }},
		{"e = 1", func(r map[string]any) bool { return r["e"] == 1.0 }},
	} {
		want := int64(0)
		for _, r := range views["now"] {
			if c.is(r) {
				want++
			}
		}
		filter, err := pred.Parse(c.where)
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.Count(t.Context(), stoa.ScanSpec{Filter: filter})
		if err != nil || got != want || want == 0 {
			t.Errorf("%s: expected %d rows, found %d, %v", c.where, want, got, err)
		}
	}
}

// TestListed: the metadata that `stoa meta` prints have each snapshot, with the rows that its summary states.
func TestListed(t *testing.T) {
	table := laketest.Open(t, iceberg.Format, "testdata/spark-v23", nil)
	listed := map[string]string{}
	for _, kv := range table.Sources()[0].Meta {
		if id, ok := strings.CutPrefix(kv.Key, "snapshot: "); ok {
			listed[id] = kv.Value
		}
	}
	b, err := os.ReadFile("testdata/spark-v23.json")
	if err != nil {
		t.Fatal(err)
	}
	views := map[string][]any{} // what Spark read of each
	if err := json.Unmarshal(b, &views); err != nil {
		t.Fatal(err)
	}
	delete(views, "now")
	if len(listed) != 6 || len(views) == 0 { // spark.py: six statements
		t.Errorf("expected 6 snapshots, found %v", listed)
	}
	for id, rows := range views {
		all, gone := 0, 0
		for _, w := range strings.Split(listed[id], ", ") {
			if n, ok := strings.CutSuffix(w, " rows"); ok {
				all, _ = strconv.Atoi(n)
			}
			if n, ok := strings.CutSuffix(w, " deletes by position"); ok {
				gone, _ = strconv.Atoi(n)
			}
		}
		if all-gone != len(rows) {
			t.Errorf("%s: expected %d rows, found %q", id, len(rows), listed[id])
		}
	}
}

// TestEqualityOfDropped: "If a delete column in an equality delete file is later dropped from the table, it must still
// be used when applying the equality deletes" (Iceberg's specification). So the other columns are the same without it.
func TestEqualityOfDropped(t *testing.T) {
	for _, column := range []string{"id", "s", "d", "n", "e"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/equality")); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "metadata", "v8.metadata.json")
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var table meta.Table
		if err := json.Unmarshal(b, &table); err != nil {
			t.Fatal(err)
		}
		s := *table.Schema(table.CurrentSchema)
		s.Fields = slices.DeleteFunc(slices.Clone(s.Fields), func(f meta.Field) bool { return f.Name == column })
		s.ID = len(table.Schemas)
		table.Schemas, table.CurrentSchema = append(table.Schemas, s), s.ID
		if b, err = json.Marshal(table); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		laketest.Views(t, iceberg.Format, dir, without(t, "testdata/equality.json", column))
	}
}

// TestEqualityReadAgain: what fails once while equality deletes are read is read again by the next scan of the table.
func TestEqualityReadAgain(t *testing.T) {
	count := func(table *stoa.Table) (rows int64, err error) {
		for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
			if err != nil {
				return rows, err
			}
			rows += b.NumRows()
		}
		return rows, nil
	}
	want, failed, step := int64(0), 0, int64(1)
	if testing.Short() {
		step = 7
	}
	for k := int64(-1); ; k += step {
		tree := &faulty.Tree{Tree: store.Local{}, At: k}
		table, err := stoa.Open(t.Context(), "testdata/equality", stoa.OpenOptions{
			Formats: []format.Format{iceberg.Format}, Tree: tree})
		if err != nil {
			continue
		}
		rows, err := count(table)
		if err != nil {
			failed++
			rows, err = count(table)
		}
		if k < 0 {
			want = rows
		}
		if err != nil || rows != want || want == 0 {
			t.Fatalf("after operation %d failed: got %d rows, %v, want %d", k, rows, err, want)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		if k >= 0 && !tree.Hit.Load() {
			break
		}
	}
	if failed < 10 {
		t.Errorf("%d scans failed, want 10 or more", failed)
	}
}

// without returns the name of a copy of a file of views in which the rows of the present lack a column.
func without(t *testing.T, name, column string) string {
	b, err := os.ReadFile(name)
	views := map[string][]map[string]any{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = errors.Join(err, d.Decode(&views)); err != nil {
		t.Fatal(err)
	}
	for _, row := range views["now"] {
		delete(row, column)
	}
	to := filepath.Join(t.TempDir(), "views.json")
	if b, err = json.Marshal(views); err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestLostMetadata: a table that has lost its metadata file is an unreadable table, not a directory of files.
func TestLostMetadata(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/evolved")); err != nil {
		t.Fatal(err)
	}
	gone, _ := filepath.Glob(filepath.Join(dir, "metadata", "*.metadata.json"))
	for _, name := range gone {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	o := stoa.OpenOptions{Formats: append([]format.Format{iceberg.Format}, stoa.Formats...)}
	if _, err := stoa.Open(context.Background(), dir, o); !errors.Is(err, fault.Corrupt) || len(gone) == 0 {
		t.Errorf("%v, %d files removed", err, len(gone))
	}
}

// TestNewestMetadataLost: if the hint names a missing metadata file, older ones are not taken for the table; each of
// them can be read by its name.
func TestNewestMetadataLost(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/spark-v1")); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(dir, "metadata", "v6.metadata.json")
	if err := os.Rename(filepath.Join(dir, "metadata", "v7.metadata.json"), older); err != nil {
		t.Fatal(err)
	}
	o := stoa.OpenOptions{Formats: append([]format.Format{iceberg.Format}, stoa.Formats...)}
	if _, err := stoa.Open(context.Background(), dir, o); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "v7.metadata.json") {
		t.Errorf("%v, want the missing file named", err)
	}
	tab, err := stoa.Open(context.Background(), older, o)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if n, err := tab.Count(context.Background(), stoa.ScanSpec{}); err != nil || n == 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestNewestMetadataLostWithHint: if the newest metadata file of a table that Spark wrote and the hint are lost, the
// manifest list of its last snapshot shows it: the older rows are not taken for the table, but each file can be named.
// If nothing is lost but the hint, the table is read.
func TestNewestMetadataLostWithHint(t *testing.T) {
	for _, name := range []string{"spark-v1", "spark-v23"} {
		for _, hint := range []string{"gone", "", "?"} {
			lostWithHint(t, name, hint)
		}
	}
}

func lostWithHint(t *testing.T, name, hint string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/"+name)); err != nil {
		t.Fatal(err)
	}
	metadata := filepath.Join(dir, "metadata")
	all, _ := filepath.Glob(filepath.Join(metadata, "v*.metadata.json"))
	if len(all) != 1 {
		t.Fatal(all)
	}
	named := filepath.Join(metadata, "version-hint.text")
	if err := os.WriteFile(named, []byte(hint), 0o644); err == nil && hint == "gone" {
		os.Remove(named)
	}
	o := stoa.OpenOptions{Formats: append([]format.Format{iceberg.Format}, stoa.Formats...)}
	rows := func(of string) (int64, error) {
		tab, err := stoa.Open(context.Background(), of, o)
		if err != nil {
			return 0, err
		}
		defer tab.Close()
		return tab.Count(context.Background(), stoa.ScanSpec{})
	}
	whole, err := rows(dir)
	if err != nil || whole == 0 {
		t.Fatalf("%s, hint %q: %d rows, %v", name, hint, whole, err)
	}
	b, err := os.ReadFile(all[0])
	var table map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // ids have more digits than a float64
	if err = cmp.Or(err, d.Decode(&table)); err != nil {
		t.Fatal(err)
	}
	snapshots := table["snapshots"].([]any)
	last := snapshots[len(snapshots)-1].(map[string]any)
	list := filepath.Join(metadata, path.Base(last["manifest-list"].(string)))
	table["snapshots"], table["current-snapshot-id"] = snapshots[:len(snapshots)-1], last["parent-snapshot-id"]
	delete(table, "refs")
	if n, ok := table["last-sequence-number"].(json.Number); ok {
		last, _ := n.Int64()
		table["last-sequence-number"] = last - 1
	}
	older := filepath.Join(metadata, "v2.metadata.json")
	if b, err = json.Marshal(table); err == nil {
		err = errors.Join(os.WriteFile(older, b, 0o644), os.Remove(all[0]))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = rows(dir); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), filepath.Base(list)) {
		t.Errorf("%s, hint %q: %v, want the list of the last snapshot named", name, hint, err)
	}
	// the lists of some older snapshots are not among the files that were kept of Spark's
	if _, err := rows(older); err != nil && strings.Contains(err.Error(), filepath.Base(list)) {
		t.Errorf("%s, hint %q: the older metadata by name: %v", name, hint, err)
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	if _, err = rows(dir); err != nil && strings.Contains(err.Error(), "written last") {
		t.Errorf("%s, hint %q: without the list: %v", name, hint, err)
	}
}

// TestRegistered: a table with a hint that a catalogue continues is read as the catalogue left it, not as the hint
// says. An unrelated table's metadata beside it changes nothing.
func TestRegistered(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/evolved")); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "metadata", "*.metadata.json"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	first, err := os.ReadFile(names[0]) // before the first row was added
	if err != nil {
		t.Fatal(err)
	}
	hinted := filepath.Join(dir, "metadata", "v1.metadata.json")
	hint := filepath.Join(dir, "metadata", "version-hint.text")
	for name, b := range map[string][]byte{hinted: first, hint: []byte("1")} {
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := laketest.Open(t, iceberg.Format, "testdata/evolved.arrow", nil)
	laketest.Same(t, laketest.Open(t, iceberg.Format, dir, nil), want)
	newest := names[len(names)-1]
	whole, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, len(whole) / 2, len(whole) - 2} { // not older rows, as if there were no newer ones
		if err := os.WriteFile(newest, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := stoa.Open(context.Background(), dir, stoa.OpenOptions{Formats: []format.Format{iceberg.Format},
			From: "iceberg"})
		if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), filepath.Base(newest)) {
			t.Errorf("newest metadata of %d bytes: %v, want the file named", cut, err)
		}
	}
	if err := os.WriteFile(newest, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	var table map[string]any
	if err := json.Unmarshal(first, &table); err != nil {
		t.Fatal(err)
	}
	table["table-uuid"] = "00000000-0000-4000-8000-000000000000"
	other, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hinted, other, 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := laketest.Open(t, iceberg.Format, dir, nil).Rows(context.Background()); n != 0 || err != nil {
		t.Errorf("%d rows, %v; want those of the hinted table, which has none", n, err)
	}
}
