package kudubackup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
)

// sinceTable writes rows (k, n, s) as a backup of table t.
func sinceTable(t *testing.T, out string, rows map[int64]string, opts map[string]string) error {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	opts["table"], opts["key"] = "t", "k"
	w, err := stoa.Create(t.Context(), out, sc, stoa.CreateOptions{To: "kudu-backup", Formats: readers, Opts: opts})
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for k, v := range rows {
		s, n := b.Field(0).(*array.StringBuilder), b.Field(2).(*array.Int32Builder)
		if b.Field(1).(*array.Int64Builder).Append(k); v == "" {
			s.AppendNull()
			n.AppendNull()
			continue
		}
		s.Append(v)
		n.Append(int32(len(v)))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	if err := w.Write(t.Context(), rec); err != nil {
		return errors.Join(err, w.Abort(t.Context()))
	}
	_, err = w.Close(t.Context())
	return err
}

// restored is the table that a chain of backups makes, by the layout's documents: the rows of each file of each backup,
// in the order of their times, are put or, with row action 1, removed by key. The files are read as plain Parquet.
func restored(t *testing.T, table string, end int64) map[int64]string {
	t.Helper()
	got := map[int64]string{}
	names, _ := filepath.Glob(filepath.Join(table, "*", ".kudu-metadata.json"))
	slices.Sort(names)
	before := "0"
	for _, name := range names {
		var m struct{ FromMs, ToMs string }
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil || m.FromMs != before || filepath.Base(filepath.Dir(name)) != m.ToMs {
			t.Fatalf("%s: %v: got from %s to %s, want from %s", name, err, m.FromMs, m.ToMs, before)
		}
		if before = m.ToMs; m.ToMs > fmt.Sprint(end) {
			break
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.parquet"))
		for _, file := range files {
			tab, err := stoa.Open(t.Context(), file, stoa.OpenOptions{From: "parquet"})
			if err != nil {
				t.Fatal(err)
			}
			last := tab.Schema().Field(tab.Schema().NumFields() - 1)
			if m.FromMs != "0" && (last.Name != "backup_row_action" || last.Type.ID() != arrow.INT8) {
				t.Errorf("%s: the last column is %s", file, last)
			}
			for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range int(b.NumRows()) {
					k := b.Column(1).(*array.Int64).Value(i)
					if m.FromMs != "0" && b.Column(3).(*array.Int8).Value(i) == 1 {
						delete(got, k)
						continue
					}
					if got[k] = b.Column(0).(*array.String).Value(i); b.Column(0).IsNull(i) {
						got[k] = ""
					}
				}
			}
			tab.Close()
		}
	}
	return got
}

// TestSince: chains of backups of random changes. At each of their times they are the rows that the table had, for
// stoa's reader and by the documents; an incremental backup has no row that did not change.
func TestSince(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 4))
		root, rows := t.TempDir(), map[int64]string{}
		var want []map[int64]string
		for step := range 5 {
			changed := map[int64]bool{}
			for range r.IntN(80) {
				k := int64(r.IntN(60))
				was, had := rows[k]
				switch v := strings.Repeat("v", r.IntN(4)); {
				case had && r.IntN(3) == 0:
					delete(rows, k)
					changed[k] = true
				case !had || was != v:
					rows[k], changed[k] = v, true
				}
			}
			now := map[int64]string{}
			for k, v := range rows {
				now[k] = v
			}
			want = append(want, now)
			opts := map[string]string{"time": fmt.Sprint(1_700_000_000_000 + step), "part-rows": "13"}
			out := filepath.Join(t.TempDir(), "new")
			if step > 0 {
				opts["since"] = root
				if r.IntN(2) == 0 {
					before, _ := filepath.Glob(filepath.Join(root, "*", fmt.Sprint(1_700_000_000_000+step-1)))
					opts["since"] = before[0]
				}
			}
			if err := sinceTable(t, out, now, opts); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			dirs, _ := filepath.Glob(filepath.Join(out, "*", "*"))
			to := filepath.Join(root, filepath.Base(filepath.Dir(dirs[0])))
			os.MkdirAll(to, 0o777)
			if err := os.Rename(dirs[0], filepath.Join(to, filepath.Base(dirs[0]))); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(to, filepath.Base(dirs[0]), "*.parquet"))
			written := 0
			for _, f := range files {
				tab, err := stoa.Open(t.Context(), f, stoa.OpenOptions{From: "parquet"})
				if err != nil {
					t.Fatal(err)
				}
				for b := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
					written += int(b.NumRows())
				}
				tab.Close()
			}
			if step > 0 && written > len(changed) {
				t.Errorf("seed %d, step %d: got %d rows in the backup, want at most %d", seed, step, written,
					len(changed))
			}
		}
		tables, _ := filepath.Glob(filepath.Join(root, "*"))
		for step, now := range want {
			end := int64(1_700_000_000_000 + step)
			if got := restored(t, tables[0], end); fmt.Sprint(got) != fmt.Sprint(now) {
				t.Errorf("seed %d, step %d, by the documents: got %v, want %v", seed, step, got, now)
			}
			read, _ := rowsOf(t, filepath.Join(tables[0], fmt.Sprint(end)), stoa.OpenOptions{From: "kudu-backup"})
			for k, v := range now {
				text := fmt.Sprintf("%d %s %d", k, v, len(v))
				if v == "" {
					text = fmt.Sprintf("%d (null) (null)", k)
				}
				if read[fmt.Sprint(k)] != text {
					t.Errorf("seed %d, step %d: got %q, want %q", seed, step, read[fmt.Sprint(k)], text)
				}
			}
			if len(read) != len(now) {
				t.Errorf("seed %d, step %d: got %d rows, want %d", seed, step, len(read), len(now))
			}
		}
	}
}

// TestSinceRefused: an incremental backup is not written without an earlier one of the table, or one that is not later
// than that, and leaves nothing.
func TestSinceRefused(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	rows := map[int64]string{1: "a"}
	if err := sinceTable(t, root, rows, map[string]string{"time": "2000"}); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]map[string]string{
		"not later":          {"since": root, "time": "2000"},
		"there is no backup": {"since": t.TempDir()},
		"was dropped":        {"since": root, "table-id": strings.Repeat("a", 32)}, // its one tablet is another
	} {
		out := filepath.Join(t.TempDir(), "out")
		err := sinceTable(t, out, rows, o)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: something was written", want)
		}
	}
}
