package kudu_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/store"
)

// What is expected of a table is what the generator's model held, which Kudu's own client confirmed: expected/TABLE.PHASE.jsonl.gz in
// the corpus. Cells are as its GENERATOR.md says.

func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the small directories of testdata are tried")
	}
	return filepath.Join(dir, "kudu")
}

// expected are the rows of a table at a phase, one line each, sorted.
func expected(t testing.TB, dir, table, phase string) (out []string) {
	t.Helper()
	for _, cells := range expectedLines(t, dir, table, phase) {
		out = append(out, strings.Join(cells, " "))
	}
	slices.Sort(out)
	return out
}

// expectedLines are the cells of a table's rows at a phase.
func expectedLines(t testing.TB, dir, table, phase string) (out [][]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected", table+"."+phase+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var cells []json.RawMessage
		if err := json.Unmarshal(sc.Bytes(), &cells); err != nil {
			t.Fatal(err)
		}
		parts := make([]string, len(cells))
		for i, c := range cells {
			if parts[i] = string(c); c[0] == '"' {
				var s string
				if err := json.Unmarshal(c, &s); err != nil {
					t.Fatal(err)
				}
				parts[i] = strconv.Quote(s)
			}
		}
		out = append(out, parts)
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
	return out
}

// cell is a value in the corpus' spelling.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Float32:
		return strconv.Quote(fmt.Sprintf("%x", math.Float32bits(a.Value(i))))
	case *array.Float64:
		return strconv.Quote(fmt.Sprintf("%x", math.Float64bits(a.Value(i))))
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return strconv.Quote(hex.EncodeToString(a.Value(i)))
	case *array.Decimal128:
		return strconv.Quote(a.Value(i).BigInt().String())
	case *array.Date32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	}
	return a.ValueStr(i)
}

func lines(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		parts := make([]string, b.NumCols())
		for c := range parts {
			parts[c] = cell(b.Column(c), i)
		}
		out[i] = strings.Join(parts, " ")
	}
	return out
}

// opened opens a table with options.
func opened(t testing.TB, uri string, opts map[string]string) *stoa.Table {
	t.Helper()
	tb, err := stoa.Open(context.Background(), uri, stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts})
	if err != nil {
		t.Fatalf("%s %v: %v", uri, opts, err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// rowsOf are the rows that a scan gives, as they come.
func rowsOf(t testing.TB, tb *stoa.Table, spec stoa.ScanSpec) []string {
	t.Helper()
	var out []string
	for b, err := range tb.Scan(context.Background(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, lines(b)...)
	}
	return out
}

// compare reports the first few differences.
func compare(t testing.TB, got, want []string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%d rows, %d are expected", len(got), len(want))
	n := 0
	for _, g := range got {
		if _, ok := slices.BinarySearch(want, g); !ok && n < 3 {
			t.Errorf("not expected: %.300s", g)
			n++
		}
	}
	n = 0
	for _, w := range want {
		if _, ok := slices.BinarySearch(got, w); !ok && n < 3 {
			t.Errorf("missing: %.300s", w)
			n++
		}
	}
}

var phases = []string{"p0a", "p0", "p1", "p2", "p3", "p4", "final"}

// snapshots are the hybrid times of a run's phases.
func snapshots(t testing.TB, dir, run string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expected", "snapshots."+run+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Phase string
		HT    json.Number
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, x := range all {
		out[x.Phase] = x.HT.String()
	}
	return out
}

// Every table of the directories that have no log is read as the generator's model has it; those with a history at each snapshot, too.
// Of d_wal the last changes are in the log only.
func TestCorpusTables(t *testing.T) {
	dir := corpus(t)
	files, err := filepath.Glob(filepath.Join(dir, "expected", "*.jsonl.gz"))
	if err != nil || len(files) != 54 {
		t.Fatalf("%d expected tables, %v", len(files), err)
	}
	for _, run := range []struct{ name, place string }{{"file_ck", "fs_file"}, {"log_ck", "fs_log"}} {
		t.Run(run.place, func(t *testing.T) {
			times := snapshots(t, dir, run.name)
			n, rows := 0, 0
			for _, file := range files {
				table, phase, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), ".")
				opts := map[string]string{}
				if strings.HasPrefix(table, "d_") && phase != "final" {
					opts["at"] = times[phase]
				}
				want := phase
				if table == "d_wal" && phase == "final" {
					want = "p4"
				}
				t.Run(table+"."+phase, func(t *testing.T) {
					got := rowsOf(t, opened(t, filepath.Join(dir, run.place)+"#"+table, opts), stoa.ScanSpec{})
					compare(t, got, expected(t, dir, table, want))
					rows += len(got)
				})
				n++
			}
			t.Logf("%d tables and snapshots, %d rows", n, rows)
			if n != len(files) {
				t.Errorf("%d of %d ran", n, len(files))
			}
		})
	}
}

// openedIn opens a table of a tree.
func openedIn(t testing.TB, tree store.Tree, uri string, opts map[string]string) *stoa.Table {
	t.Helper()
	tb, err := stoa.Open(context.Background(), uri, stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree})
	if err != nil {
		t.Fatalf("%s %v: %v", uri, opts, err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// The archives with logs hold what the directories hold, and the last changes of d_wal. They are of a master and a tablet server.
func TestCorpusWithLog(t *testing.T) {
	dir := corpus(t)
	files, err := filepath.Glob(filepath.Join(dir, "expected", "*.jsonl.gz"))
	if err != nil || len(files) != 54 {
		t.Fatalf("%d expected tables, %v", len(files), err)
	}
	for _, run := range []struct{ name, place string }{{"file_ck", "fs_file"}, {"log_ck", "fs_log"}} {
		t.Run(run.place, func(t *testing.T) {
			tree := store.NewMemory(kudu.Unpack(t, filepath.Join(dir, run.place, "full_with_wal.tar.zst")))
			times := snapshots(t, dir, run.name)
			n := 0
			for _, file := range files {
				table, phase, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), ".")
				opts := map[string]string{}
				if strings.HasPrefix(table, "d_") && phase != "final" {
					opts["at"] = times[phase]
				}
				t.Run(table+"."+phase, func(t *testing.T) {
					compare(t, rowsOf(t, openedIn(t, tree, "#"+table, opts), stoa.ScanSpec{}), expected(t, dir, table, phase))
				})
				n++
			}
			t.Logf("%d tables and snapshots", n)
			t.Run("without", func(t *testing.T) {
				compare(t, rowsOf(t, openedIn(t, tree, "#d_wal", map[string]string{"wal": "false"}), stoa.ScanSpec{}), expected(t, dir, "d_wal", "p4"))
			})
		})
	}
}

// corpusOr is where the corpus is, or else what.
func corpusOr(what string) string {
	if dir := os.Getenv("STOA_CORPUS"); dir != "" {
		return dir
	}
	return what
}
