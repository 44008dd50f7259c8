//go:build interop

package parquet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
)

// TestReading: what pyarrow reads, we read: the same types, and the same values. The files are random nested
// tables of pyarrow's own writer, by seed (STOA_SEED, STOA_TABLES), and those of apache/parquet-testing if
// PARQUET_TESTING names a copy of it.
func TestReading(t *testing.T) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	args := []string{"read.py", t.TempDir(), strconv.Itoa(number("STOA_SEED", 1)),
		strconv.Itoa(number("STOA_TABLES", 500))}
	if dir := os.Getenv("PARQUET_TESTING"); dir != "" {
		for _, pattern := range []string{"data/*.parquet", "shredded_variant/*.parquet", "bad_data/*.parquet"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s has no %s", dir, pattern)
			}
			args = append(args, files...)
		}
	}
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	equal, both, unwritten := 0, 0, 0
	for line := range strings.Lines(string(out)) {
		file, is, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(is, "?") {
			unwritten++
			continue
		}
		got, err := ourReading(t.Context(), file)
		name := filepath.Base(file)
		switch {
		case strings.HasPrefix(is, "!") && err != nil:
			both++
		case strings.HasPrefix(is, "!"):
			t.Logf("%s: pyarrow does not read it (%s), we do: %s", name, is, sound[name])
			if filepath.Base(filepath.Dir(file)) == "bad_data" && sound[name] == "" {
				t.Errorf("%s is read", name)
			}
		case err != nil && differs[name] != "":
			t.Logf("%s: %v, as it should be: %s", name, err, differs[name])
			both++
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if what := compareTables(t, is, got); what != "" {
				t.Errorf("%s: %s", name, what)
			} else {
				equal++
			}
			got.Release()
		}
	}
	t.Logf("COUNT %d files read as pyarrow does, %d refused; %d tables that pyarrow does not write", equal, both,
		unwritten)
	if equal == 0 {
		t.Error("no file was compared")
	}
}

// sound are files of bad_data that contradict nothing in the format, and why: we read them.
var sound = map[string]string{
	"ARROW-GH-43605.parquet": "codes of no bits, of a dictionary of one entry, in a run as long as the page",
}

// differs are files that pyarrow reads and we refuse, and why.
var differs = map[string]string{
	"datapage_v1-corrupt-checksum.parquet": "a page's checksum does not fit; pyarrow does not look " +
		"unless asked",
	"rle-dict-uncompressed-corrupt-checksum.parquet": "a page's checksum does not fit; pyarrow does not look " +
		"unless asked",
	"int96_from_spark.parquet": "instants outside of what 64 bits of nanoseconds have, of " +
		"which pyarrow makes others",
	"ARROW-GH-47662.parquet": "fewer bytes than values",
}

// ourReading is a file as we read it.
func ourReading(ctx context.Context, file string) (arrow.Table, error) {
	table, err := stoa.Open(ctx, file, stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
	if err != nil {
		return nil, err
	}
	defer table.Close()
	var batches []arrow.RecordBatch
	for b, err := range table.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return nil, err
		}
		b.Retain()
		batches = append(batches, b)
	}
	return array.NewTableFromRecords(table.Schema(), batches), nil
}

// compareTables says what differs from what pyarrow read; "" if nothing does.
func compareTables(t *testing.T, is string, got arrow.Table) string {
	f, err := os.Open(is)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		return "pyarrow's Arrow file: " + err.Error()
	}
	defer r.Close()
	var batches []arrow.RecordBatch
	for i := range r.NumRecords() {
		b, err := r.RecordBatch(i)
		if err != nil {
			return "pyarrow's Arrow file: " + err.Error()
		}
		batches = append(batches, b)
	}
	want := array.NewTableFromRecords(r.Schema(), batches)
	defer want.Release()
	if want.NumCols() != got.NumCols() || want.NumRows() != got.NumRows() {
		return strconv.Itoa(int(got.NumCols())) + " columns, " + strconv.Itoa(int(got.NumRows())) + " rows"
	}
	for i := range int(want.NumCols()) {
		a, b := want.Schema().Field(i), got.Schema().Field(i)
		if a.Name != b.Name || a.Nullable != b.Nullable || typeText(a.Type) != typeText(b.Type) {
			return b.String() + " instead of " + a.String()
		}
		x, y := whole(t, want.Column(i).Data()), whole(t, got.Column(i).Data())
		if !array.ApproxEqual(x, y, array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
			for k := range x.Len() {
				if p, q := x.ValueStr(k), y.ValueStr(k); p != q {
					return a.Name + " row " + strconv.Itoa(k) + ": " + q + " instead of " + p
				}
			}
		}
	}
	return ""
}

// typeText is a type, whatever the items of its lists are called: Parquet calls them element, and pyarrow
// leaves it at that; we give the name that the Arrow schema in the file has.
func typeText(t arrow.DataType) string { return strings.ReplaceAll(t.String(), "<element:", "<item:") }

// whole makes one array of the chunks of a column.
func whole(t *testing.T, c *arrow.Chunked) arrow.Array {
	if len(c.Chunks()) == 0 {
		return array.MakeArrayOfNull(memory.DefaultAllocator, c.DataType(), 0)
	}
	if len(c.Chunks()) == 1 {
		return c.Chunks()[0]
	}
	a, err := array.Concatenate(c.Chunks(), memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
