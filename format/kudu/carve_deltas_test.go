package kudu_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// schemaFile is a table's schema in the form of option schema, with the ids of the columns.
func schemaFile(t testing.TB, sc *arrow.Schema) []byte {
	t.Helper()
	var fields []map[string]any
	for _, f := range sc.Fields() {
		name := f.Type.String()
		if d, ok := f.Type.(*arrow.Decimal128Type); ok {
			name = fmt.Sprintf("decimal128(%d, %d)", d.Precision, d.Scale)
		}
		fields = append(fields, map[string]any{"name": f.Name, "type": name, "nullable": f.Nullable,
			"metadata": f.Metadata.ToMap()})
	}
	b, err := json.Marshal(map[string]any{"fields": fields})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// carved recovers the blocks that no superblock names.
func carved(t testing.TB, files map[string][]byte) (rows []string, found []region.Finding) {
	t.Helper()
	tb, err := stoa.Open(t.Context(), "", stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Recover: true,
		Tree: store.NewMemory(files), Opts: map[string]string{"schema": "schema.json"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	for b, err := range tb.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows,
		Lost: func(l region.Loss) { t.Errorf("lost: %v", l.Err) }}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, lines(b)...)
	}
	return rows, tb.Findings()
}

// stated returns how many deleted rows may be there again, and how many cells may be old, as the findings say.
func stated(found []region.Finding) (rows, cells int) {
	for _, x := range found {
		if x.Code == "kudu.carve.deltas" && x.Severity == region.Error && strings.HasPrefix(x.Message, "in all") {
			if _, after, ok := strings.Cut(x.Message, "up to "); ok {
				fmt.Sscan(after, &rows)
			}
			fmt.Sscan(x.Message[strings.LastIndex(x.Message, "up to ")+len("up to "):], &cells)
		}
	}
	return rows, cells
}

// surplus returns how many rows of a are not in b; both are sorted.
func surplus(a, b []string) (n int) {
	for _, x := range a {
		for len(b) > 0 && b[0] < x {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == x {
			b = b[1:]
			continue
		}
		n++
	}
	return n
}

// withoutSuperblocks recovers the tables of which the superblocks are gone, or cut, and compares the rows with want.
// The law: without a finding that deltas are not applied the rows are right; with it no more of them are wrong than it
// says.
func withoutSuperblocks(t *testing.T, files map[string][]byte, want []string, what string) (right bool) {
	t.Helper()
	got, found := carved(t, files)
	if !slices.ContainsFunc(found, func(x region.Finding) bool { return x.Code == "kudu.carve.applied" }) {
		t.Errorf("%s: deltas are applied without a word: %+v", what, found)
	}
	return asSaid(t, got, found, want, what)
}

// asSaid compares rows with want, by what the findings say. It reports whether they are equal.
func asSaid(t *testing.T, got []string, found []region.Finding, want []string, what string) bool {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	dead, cells := stated(found)
	if more := len(got) - len(want); more < 0 || more > dead {
		t.Errorf("%s: %d rows, want %d; deletions of %d are said to be unapplied", what, len(got), len(want), dead)
	}
	if wrong := surplus(got, want); wrong > dead+cells {
		t.Errorf("%s: %d rows were never there, said to be up to %d deleted and %d changed", what, wrong, dead, cells)
	}
	return slices.Equal(got, want)
}

// TestCarvedDeltas: without its superblock a table of the corpus has exactly its rows: the blocks tell which deltas
// belong to which rowset.
func TestCarvedDeltas(t *testing.T) {
	files := load(t, "testdata/history")
	_, tablets := layout(t, store.NewMemory(files))
	files["schema.json"] = schemaFile(t, openedIn(t, store.NewMemory(files), "#d_major", nil).Schema())
	delete(files, tablets[0].Object)
	if !withoutSuperblocks(t, files, expected(t, "testdata", "d_major", "final"), "d_major") {
		t.Error("the rows differ")
	}
}

// TestCarvedDeltasOfCorpus tries every subset of the corpus's tables with deltas, by both block managers. A table alone
// has exactly its rows; of several with the same schema some deltas remain unassigned.
func TestCarvedDeltasOfCorpus(t *testing.T) {
	dir := corpus(t)
	phases := map[string]string{"d_raw": "final", "d_minor": "final", "d_major": "final", "d_rowset": "final",
		"d_wal": "p4"}
	names := slices.Sorted(maps.Keys(phases))
	for _, manager := range []string{"fs_log", "fs_file"} {
		files := load(t, filepath.Join(dir, manager))
		_, tablets := layout(t, store.NewMemory(files))
		files["schema.json"] = schemaFile(t, openedIn(t, store.NewMemory(files), "#d_raw", nil).Schema())
		for set := 1; set < 1<<len(names); set++ {
			if testing.Short() && set&(set-1) != 0 && set+1 != 1<<len(names) {
				continue // one table, or all of them
			}
			damaged, want, what := maps.Clone(files), []string(nil), manager
			for i, name := range names {
				if set>>i&1 == 0 {
					continue
				}
				what += " " + name
				want = append(want, expected(t, dir, name, phases[name])...)
				for _, tb := range tablets {
					if tb.Table == name && set%2 == 0 {
						damaged[tb.Object] = files[tb.Object][:len(files[tb.Object])/2]
					} else if tb.Table == name {
						delete(damaged, tb.Object)
					}
				}
			}
			if right := withoutSuperblocks(t, damaged, want, what); !right && set&(set-1) == 0 {
				t.Errorf("%s: the rows differ", what)
			}
		}
	}
}

// TestDeltasNeedColumnIDs: if the schema does not say which column has which id, no new values are applied, and the
// finding says how many.
func TestDeltasNeedColumnIDs(t *testing.T) {
	dir := corpus(t)
	files := load(t, filepath.Join(dir, "fs_log"))
	_, tablets := layout(t, store.NewMemory(files))
	files["schema.json"] = []byte(strings.ReplaceAll(string(schemaFile(t,
		openedIn(t, store.NewMemory(files), "#d_raw", nil).Schema())), "stoa.column_id", "other"))
	for _, tb := range tablets {
		if tb.Table == "d_raw" {
			delete(files, tb.Object)
		}
	}
	_, found := carved(t, files)
	// the tablet's delta files have 15 and 135 deletions, and 2830 + 900 changed cells; deletions alone are applied
	dead, cells := stated(found)
	if dead != 135 || cells != 3730 || !reported(found, "kudu.carve.deltas", "column_id") {
		t.Errorf("%d, %d: %+v", dead, cells, found)
	}
}

// TestLogIsNotApplied: what only the log of a tablet without a superblock has is not in its rows, and that is an error
// that names the tablet. If every flushed row is there and the log has nothing more, there is none.
func TestLogIsNotApplied(t *testing.T) {
	dir := corpus(t)
	files := kudu.Unpack(t, filepath.Join(dir, "fs_log", "full_with_wal.tar.zst"))
	_, tablets := layout(t, store.NewMemory(files))
	files["schema.json"] = schemaFile(t, openedIn(t, store.NewMemory(files), "#d_raw", nil).Schema())
	tried := 0
	for _, tb := range tablets {
		if tb.Table != "d_wal" {
			continue
		}
		tried++
		delete(files, tb.Object)
		got, found := carved(t, files)
		if slices.Sort(got); slices.Equal(got, expected(t, dir, "d_wal", "final")) {
			t.Fatal("the log changes no row: the test shows nothing")
		}
		want := slices.Sorted(slices.Values(expected(t, dir, "d_wal", "p4")))
		if !slices.Equal(got, want) || !reported(found, "kudu.carve.log", tb.ID) {
			t.Errorf("%+v", found)
		}
		for name := range files {
			if strings.Contains(name, tb.ID) && strings.Contains(name, "wal-") {
				delete(files, name)
			}
		}
		if _, found := carved(t, files); reported(found, "kudu.carve.log", "") {
			t.Errorf("without a log: %+v", found)
		}
	}
	if tried == 0 {
		t.Error("no tablet was tried")
	}
}

// TestCarvedWithoutNumbers: without superblock and without the records of the containers the numbers of blocks are not
// known. A delta file that may be one of old states is not applied, so that no row is missing without a word.
func TestCarvedWithoutNumbers(t *testing.T) {
	for _, table := range []string{"d_raw", "d_minor", "d_major"} {
		dir := corpus(t)
		files := load(t, filepath.Join(dir, "fs_log"))
		f, tablets := layout(t, store.NewMemory(files))
		schema := schemaFile(t, openedIn(t, store.NewMemory(files), "#"+table, nil).Schema())
		alone := map[string][]byte{"schema.json": schema}
		for _, at := range slices.Concat(slices.Collect(maps.Values(blocksOf(t, f, tablets, table)))...) {
			alone[fmt.Sprintf("data/data/%032x.data", len(alone))] = files[at.Object][at.Off:at.End()]
		}
		for name, b := range files {
			if filepath.Base(name) == "block_manager_instance" || filepath.Base(name) == "instance" {
				alone[name] = b
			}
		}
		got, found := carved(t, alone)
		asSaid(t, got, found, final(t, dir, table), table)
	}
}
