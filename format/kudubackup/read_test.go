package kudubackup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format/kudubackup"
)

// Backups of tables at several phases, as Kudu's job would write them: the rows that differ between two phases, with a
// last column that marks deleted rows. Reading must return the table at the phase.

var readers = append(slices.Clone(stoa.Formats), kudubackup.Format)

// rowsOf returns the rows of a table as text, by key (the first column), and the batches.
func rowsOf(t *testing.T, name string, o stoa.OpenOptions) (map[string]string, []arrow.RecordBatch) {
	t.Helper()
	o.Formats = readers
	tab, err := stoa.Open(t.Context(), name, o)
	if err != nil {
		t.Fatal(name, err)
	}
	defer tab.Close()
	out := map[string]string{}
	var kept []arrow.RecordBatch
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(name, err)
		}
		b.Retain()
		kept = append(kept, b)
		for i := range int(b.NumRows()) {
			var cells []string
			for c := range int(b.NumCols()) {
				cells = append(cells, b.Column(c).ValueStr(i))
			}
			if out[cells[0]] != "" {
				t.Fatalf("%s: key %s comes twice", name, cells[0])
			}
			out[cells[0]] = strings.Join(cells, " ")
		}
	}
	return out, kept
}

// writeParquet writes batches with the actions as their last column.
func writeParquet(t *testing.T, name string, batches []arrow.RecordBatch,
	pick func(row, key string) (bool, int8)) {
	t.Helper()
	fields := append(slices.Clone(batches[0].Schema().Fields()),
		arrow.Field{Name: "kudu_row_action", Type: arrow.PrimitiveTypes.Int8})
	sc := arrow.NewSchema(fields, nil)
	w, err := stoa.Create(t.Context(), name, sc, stoa.CreateOptions{To: "parquet"})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			key := b.Column(0).ValueStr(i)
			var cells []string
			for c := range int(b.NumCols()) {
				cells = append(cells, b.Column(c).ValueStr(i))
			}
			ok, action := pick(strings.Join(cells, " "), key)
			if !ok {
				continue
			}
			one := b.NewSlice(int64(i), int64(i+1))
			a := array.NewInt8Builder(memory.DefaultAllocator)
			a.Append(action)
			cols := append(slices.Clone(one.Columns()), a.NewArray())
			if err := w.Write(t.Context(), array.NewRecordBatch(sc, cols, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// phases makes a root with a full backup of a table at its first phase, and one of the changes for each later phase.
func phases(t *testing.T, table string, names []string) (root string, want []map[string]string) {
	t.Helper()
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set")
	}
	var listed []struct {
		Phase string
		HT    json.Number
	}
	text, err := os.ReadFile(filepath.Join(dir, "kudu/expected/snapshots.log_ck.json"))
	if err == nil {
		err = json.Unmarshal(text, &listed)
	}
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]string{}
	for _, x := range listed {
		times[x.Phase] = x.HT.String()
	}
	root = t.TempDir()
	var before map[string]string
	var old []arrow.RecordBatch
	for i, phase := range names {
		rows, batches := rowsOf(t, filepath.Join(dir, "kudu/fs_log")+"#"+table,
			stoa.OpenOptions{Opts: map[string]string{"at": times[phase], "partial": "true"}})
		ms := 1700000000000 + int64(i)*1000
		place := filepath.Join(root, "id-"+table, fmt.Sprint(ms))
		if i == 0 {
			saveFull(t, filepath.Join(root, "full"), dir, table, times[phase], ms)
			dirs, _ := filepath.Glob(filepath.Join(root, "full", "*"))
			if err := os.Rename(dirs[0], filepath.Join(root, "id-"+table)); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(root, "full"))
		} else {
			if err := os.Mkdir(place, 0o777); err != nil {
				t.Fatal(err)
			}
			writeParquet(t, filepath.Join(place, "part-00000.parquet"), append(slices.Clone(batches), old...),
				func(row, key string) (bool, int8) {
					now, is := rows[key]
					was, had := before[key]
					switch {
					case is && row == now && now != was:
						return true, 0
					case had && !is && row == was:
						return true, 1
					}
					return false, 0
				})
			first, _ := os.ReadFile(filepath.Join(root, "id-"+table, "1700000000000", ".kudu-metadata.json"))
			later := bytes.Replace(first, []byte(`"fromMs": "0"`), fmt.Appendf(nil, `"fromMs": "%d"`, ms-1000), 1)
			later = bytes.Replace(later, []byte(`"toMs": "1700000000000"`), fmt.Appendf(nil, `"toMs": "%d"`, ms), 1)
			if err := os.WriteFile(filepath.Join(place, ".kudu-metadata.json"), later, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		before, old, want = rows, batches, append(want, rows)
	}
	return root, want
}

func saveFull(t *testing.T, to, dir, table, at string, ms int64) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), filepath.Join(dir, "kudu/fs_log")+"#"+table,
		stoa.OpenOptions{Opts: map[string]string{"at": at, "partial": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if _, err := stoa.Convert(t.Context(), tab, stoa.ScanSpec{}, to, stoa.CreateOptions{To: "kudu-backup",
		Formats: readers, Opts: map[string]string{"time": fmt.Sprint(ms)}}); err != nil {
		t.Fatal(err)
	}
}

// TestChain: a chain of backups gives the rows at each of its times, without deleted rows and with changed rows once;
// from the root, from the table's directory, and from that of a backup.
func TestChain(t *testing.T) {
	names := []string{"p0", "p1", "p2", "p3", "p4"}
	root, want := phases(t, "d_raw", names)
	deleted := 0
	for i := range names {
		ms := 1700000000000 + int64(i)*1000
		at := time.UnixMilli(ms + 999).UTC().Format(time.RFC3339Nano)
		table := filepath.Join(root, "id-d_raw")
		for place, opts := range map[string]map[string]string{root: {"at": at}, table: {"at": at},
			filepath.Join(table, fmt.Sprint(ms)): nil} {
			got, _ := rowsOf(t, place, stoa.OpenOptions{From: "kudu-backup", Opts: opts})
			if len(got) != len(want[i]) {
				t.Errorf("%s at %s: %d rows, the table had %d", place, names[i], len(got), len(want[i]))
			}
			for key, row := range want[i] {
				if got[key] != row {
					t.Fatalf("%s at %s: key %s is\n%s\nthe table had\n%s", place, names[i], key, got[key], row)
				}
			}
		}
		if i > 0 {
			for key := range want[i-1] {
				if want[i][key] == "" {
					deleted++
				}
			}
		}
	}
	if deleted == 0 {
		t.Error("no phase deletes a row: the test tries nothing")
	}
}

// TestBrokenChain: a chain without one of its backups is damaged, and the times before it can still be read.
func TestBrokenChain(t *testing.T) {
	root, want := phases(t, "d_raw", []string{"p0", "p1", "p2"})
	if err := os.RemoveAll(filepath.Join(root, "id-d_raw", "1700000001000")); err != nil {
		t.Fatal(err)
	}
	o := stoa.OpenOptions{From: "kudu-backup", Formats: readers}
	if tab, err := stoa.Open(t.Context(), root, o); err == nil || !strings.Contains(err.Error(), "no chain") {
		t.Errorf("%v, %v; want an error that says that no chain leads to the newest backup", tab, err)
	} else if !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v is no damage", err)
	}
	o.Opts = map[string]string{"at": "1700000000500"}
	if got, _ := rowsOf(t, root, o); len(got) != len(want[0]) {
		t.Errorf("%d rows, want %d", len(got), len(want[0]))
	}
	o.Opts = map[string]string{"at": "1600000000000"}
	if _, err := stoa.Open(t.Context(), root, o); err == nil {
		t.Error("a moment before the first backup is read")
	}
}
