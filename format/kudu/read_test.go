package kudu_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// The expected rows of tables are those of the generator's model, which Kudu's own client confirmed:
// expected/TABLE.PHASE.jsonl.gz in the corpus. Its GENERATOR.md describes the form of cells.

func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the small directories of testdata are tried")
	}
	return filepath.Join(dir, "kudu")
}

// expected returns the rows of a table at a phase, one line each, sorted.
func expected(t testing.TB, dir, table, phase string) (out []string) {
	t.Helper()
	for _, cells := range expectedLines(t, dir, table, phase) {
		out = append(out, strings.Join(cells, " "))
	}
	slices.Sort(out)
	return out
}

// expectedLines returns the cells of a table's rows at a phase.
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

// cell returns a value in the form of the corpus.
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

// rowsOf returns the rows of a scan, in its order.
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

// compare fails if got, sorted, differs from want, with the first few differences.
func compare(t testing.TB, got, want []string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%d rows, want %d", len(got), len(want))
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

// snapshots returns the hybrid times of a run's phases.
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

// TestCorpusTables: every table of the directories without logs equals the generator's model; tables with a history do
// so at each snapshot. The last changes of d_wal are only in the log.
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
	tb, err := stoa.Open(context.Background(), uri,
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree})
	if err != nil {
		t.Fatalf("%s %v: %v", uri, opts, err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// The archives with logs, of a master and a tablet server, also have the last changes of d_wal.
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
					compare(t, rowsOf(t, openedIn(t, tree, "#"+table, opts), stoa.ScanSpec{}),
						expected(t, dir, table, phase))
				})
				n++
			}
			t.Logf("%d tables and snapshots", n)
			t.Run("without", func(t *testing.T) {
				compare(t, rowsOf(t, openedIn(t, tree, "#d_wal", map[string]string{"wal": "false"}),
					stoa.ScanSpec{}), expected(t, dir, "d_wal", "p4"))
			})
		})
	}
}

// corpusOr returns the directory of the corpus, or what if there is none.
func corpusOr(what string) string {
	if dir := os.Getenv("STOA_CORPUS"); dir != "" {
		return dir
	}
	return what
}

// moments are the hybrid times of the phases of the golden history.
var moments = map[string]string{"p0": "7353330605118373889", "p2": "7353330655815053313"}

// The golden tables equal the generator's model, in batches of any size, and by ranges of rows and columns.
func TestGoldenTables(t *testing.T) {
	for _, x := range []struct{ dir, table, phase string }{
		{"testdata/file", "autoinc", "final"}, {"testdata/history", "d_major", "p0"},
		{"testdata/history", "d_major", "p2"}, {"testdata/history", "d_major", "final"},
	} {
		opts := map[string]string{}
		if at := moments[x.phase]; at != "" {
			opts["at"] = at
		}
		want := expected(t, "testdata", x.table, x.phase)
		tb := opened(t, x.dir+"#"+x.table, opts)
		whole := rowsOf(t, tb, stoa.ScanSpec{})
		compare(t, whole, want)
		for _, n := range []int{1, 7, 100, 333} {
			if got := rowsOf(t, tb, stoa.ScanSpec{Batch: n}); !slices.Equal(got, whole) {
				t.Errorf("%s.%s: different rows in batches of %d", x.table, x.phase, n)
			}
		}
		for from := int64(0); from < int64(len(whole)); from += 97 {
			to := min(from+50, int64(len(whole)))
			if got := rowsOf(t, tb, stoa.ScanSpec{Rows: vec.Range{From: from, To: to}}); !slices.Equal(got,
				whole[from:to]) {
				t.Errorf("%s.%s: rows %d to %d differ", x.table, x.phase, from, to)
			}
		}
		// each column alone
		cells := cellsOf(t, whole)
		for i, f := range tb.Schema().Fields() {
			got := rowsOf(t, tb, stoa.ScanSpec{Columns: []string{pred.JoinPath(f.Name)}})
			for k := range got {
				if cells[k][i] != got[k] {
					t.Fatalf("%s.%s: column %s alone is %s in row %d", x.table, x.phase, f.Name, got[k], k)
				}
			}
		}
	}
}

// cellsOf splits lines into cells, which have spaces only inside quotes.
func cellsOf(t testing.TB, rows []string) [][]string {
	t.Helper()
	out := make([][]string, len(rows))
	for i, r := range rows {
		for r != "" {
			n := strings.IndexByte(r, ' ')
			if r[0] == '"' {
				q, err := strconv.QuotedPrefix(r)
				if err != nil {
					t.Fatal(err)
				}
				n = len(q)
			}
			if n < 0 {
				n = len(r)
			}
			out[i] = append(out[i], r[:n])
			r = strings.TrimPrefix(r[n:], " ")
		}
	}
	return out
}

// The rows of a tablet come in key order.
func TestOrder(t *testing.T) {
	for phase, n := range map[string]int{"p0": 0, "p2": 0, "final": 0} {
		opts := map[string]string{}
		if at := moments[phase]; at != "" {
			opts["at"] = at
		}
		last := int64(math.MinInt64)
		for b, err := range opened(t, "testdata/history#d_major", opts).Scan(context.Background(),
			stoa.ScanSpec{Columns: []string{"id"}, Batch: 64}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range b.Column(0).(*array.Int64).Int64Values() {
				if id <= last {
					t.Fatalf("%s: %d after %d", phase, id, last)
				}
				last = id
				n++
			}
		}
		if n < 1000 {
			t.Errorf("%s: %d rows", phase, n)
		}
	}
}

// Bad options are refused by name.
func TestOptions(t *testing.T) {
	for opts, want := range map[[2]string]string{
		{"at", "yesterday"}: "at=yesterday", {"at", "-1"}: "at=-1", {"wal", "no"}: "wal=no",
		{"partial", ""}: "partial=", {"colour", "red"}: `"colour"`, {"tablet", "x"}: "no tablet x",
	} {
		_, err := stoa.Open(context.Background(), "testdata/file#autoinc",
			stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: map[string]string{opts[0]: opts[1]}})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", opts, err)
		}
	}
	// a calendar time is a hybrid time without the counter
	us, _ := strconv.ParseInt(moments["p2"], 10, 64)
	at := time.UnixMicro(us >> 12).UTC().Format(time.RFC3339Nano)
	rows := rowsOf(t, opened(t, "testdata/history#d_major", map[string]string{"at": at}), stoa.ScanSpec{})
	compare(t, rows, expected(t, "testdata", "d_major", "p2"))
	for name, want := range map[string]string{"none": `"none"`, "": ""} {
		_, err := stoa.Open(context.Background(), "testdata/log#"+name,
			stoa.OpenOptions{Formats: []format.Format{kudu.Format}})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "loadgen") {
			t.Errorf("%q: %v", name, err)
		}
	}
	// the table's id, a tablet's id, and given directories
	_, tablets := layout(t, store.NewMemory(load(t, "testdata/file")))
	dirs := map[string]string{"data-dirs": "testdata/file/data", "meta-dir": "testdata/file/wal"}
	for _, x := range []struct {
		uri  string
		opts map[string]string
	}{{"testdata/file#" + tablets[0].TableID, nil}, {"testdata/file#" + tablets[0].ID, nil}, {"testdata/file", nil},
		{"testdata/file", map[string]string{"tablet": tablets[0].ID}}, {"testdata/file", dirs}} {
		compare(t, rowsOf(t, opened(t, x.uri, x.opts), stoa.ScanSpec{}), expected(t, "testdata", "autoinc", "final"))
	}
}

// A snapshot before the rest of the history is refused, and the error names the rowset; with partial=true the remaining
// state is read.
func TestHistoryIsGone(t *testing.T) {
	files := load(t, "testdata/history")
	f, tablets := layout(t, store.NewMemory(files))
	tb := tablets[0]
	var undo []string
	for _, b := range tb.RowSets[0].Undo {
		p, err := f.PlaceOf(context.Background(), tb, b)
		if err != nil {
			t.Fatal(err)
		}
		undo = append(undo, p.At.Object)
	}
	// a superblock as Kudu writes it after it removed the oldest UNDO
	less := store.NewMemory(files)
	rewritten := kudu.WithoutUndo(t, files[tb.Object], tb.RowSets[0].Undo[len(undo)-1].ID)
	less.Put(tb.Object, rewritten)
	if rows, _, err := readAll(t, less, "#d_major", nil, stoa.ScanSpec{}); err != nil {
		t.Fatal(err)
	} else {
		compare(t, rows, expected(t, "testdata", "d_major", "final"))
	}
	_, _, err := readAll(t, less, "#d_major", map[string]string{"at": moments["p0"]}, stoa.ScanSpec{})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "history of rowset") {
		t.Error(err)
	}
	got, err := scan(t, less, "#d_major", map[string]string{"at": moments["p0"], "partial": "true"}, stoa.ScanSpec{})
	if err != nil || codes(got.findings, region.Error) != "kudu.history.removed" {
		t.Error(err, got.findings)
	}
	// before the history that Kudu guarantees to keep, with the log and without
	for _, wal := range []string{"true", "false"} {
		if _, err := scan(t, store.NewMemory(files), "#d_major", map[string]string{"at": "1", "wal": wal},
			stoa.ScanSpec{}); !errors.Is(err, fault.Unsupported) {
			t.Error(wal, err)
		}
		got, err := scan(t, store.NewMemory(files), "#d_major",
			map[string]string{"at": "1", "wal": wal, "partial": "true"}, stoa.ScanSpec{})
		if err != nil || len(got.cells) > 0 ||
			!strings.Contains(codes(got.findings, region.Warning), "kudu.history.old") {
			t.Error(wal, err, len(got.cells), got.findings)
		}
	}
}
