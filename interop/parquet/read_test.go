//go:build interop

package parquet

import (
	"context"
	"fmt"
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

// TestReading: stoa reads the same types and values as pyarrow. The files are random nested tables by pyarrow's writer
// (STOA_SEED, STOA_TABLES), and those of apache/parquet-testing if PARQUET_TESTING names a copy of it.
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
		for _, pattern := range []string{"data/*.parquet", "data/geospatial/*.parquet", "shredded_variant/*.parquet",
			"bad_data/*.parquet"} {
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
		got, err := readTable(t.Context(), file)
		name := filepath.Base(file)
		switch {
		case strings.HasPrefix(is, "!") && err != nil:
			both++
		case strings.HasPrefix(is, "!"):
			t.Logf("%s: pyarrow refuses it (%s), stoa reads it: %s", name, is, valid[name])
			if filepath.Base(filepath.Dir(file)) == "bad_data" && valid[name] == "" {
				t.Errorf("%s: got no error, want one", name)
			}
		case err != nil && invalid[name] != "":
			t.Logf("%s: %v, as expected: %s", name, err, invalid[name])
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
	t.Logf("COUNT %d files read like pyarrow, %d refused; %d tables that pyarrow cannot write", equal, both, unwritten)
	if equal == 0 {
		t.Error("no file compared")
	}
}

// valid are files of bad_data that stoa reads, as they do not violate the specification, and the reason.
var valid = map[string]string{
	"ARROW-GH-43605.parquet": "dictionary codes of width 0 for a dictionary of one entry, in a run as long as the page",
}

// invalid are files that pyarrow reads and stoa refuses, and the reason.
var invalid = map[string]string{
	"datapage_v1-corrupt-checksum.parquet": "a page's checksum is wrong; by default pyarrow does not check it",
	"rle-dict-uncompressed-corrupt-checksum.parquet": "a page's checksum is wrong; by default pyarrow does not " +
		"check it",
	"int96_from_spark.parquet": "timestamps that overflow 64 bits of nanoseconds, of which pyarrow makes wrong ones: " +
		"see TestSparksInt96",
	"ARROW-GH-47662.parquet": "fewer bytes than values",
}

// TestSparksInt96: with int96=us, the file of apache/parquet-testing that Spark wrote has the microseconds that its
// description names. pyarrow, with coerce_int96_timestamp_unit, agrees about all but the last, where Spark's Julian
// days wrap.
func TestSparksInt96(t *testing.T) {
	dir := os.Getenv("PARQUET_TESTING")
	if dir == "" {
		t.Skip("PARQUET_TESTING names no copy of apache/parquet-testing")
	}
	file := filepath.Join(dir, "data/int96_from_spark.parquet")
	table, err := stoa.Open(t.Context(), file, stoa.OpenOptions{Formats: []format.Format{parquet.Format},
		Opts: map[string]string{"int96": "us"}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var got []string
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			if c := b.Column(0).(*array.Timestamp); c.IsNull(i) {
				got = append(got, "None")
			} else {
				got = append(got, strconv.FormatInt(int64(c.Value(i)), 10))
			}
		}
	}
	want := "1704141296123456 1704070800000000 253402225200000000 1735599600000000 None 9089380393200000000"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	out, err := exec.Command(filepath.Join(home(t), "venv/bin/python"), "-c", "import sys, pyarrow.parquet as pq\n"+
		"t = pq.read_table(sys.argv[1], coerce_int96_timestamp_unit='us')\n"+
		"print(*t['a'].cast('int64').to_pylist()[:5])", file).Output()
	if judge := strings.TrimSpace(string(out)); err != nil || len(got) < 5 || judge != strings.Join(got[:5], " ") {
		t.Errorf("pyarrow reads %s, %v, stoa %s", judge, err, got)
	}
	t.Logf("COUNT %d instants of Spark's INT96", len(got))
}

// readTable reads a file with stoa.
func readTable(ctx context.Context, file string) (arrow.Table, error) {
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

// compareTables describes the first difference to the table that pyarrow read; "": none.
func compareTables(t *testing.T, name string, got arrow.Table) string {
	f, err := os.Open(name)
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
		return fmt.Sprintf("got %d columns, %d rows, want %d, %d", got.NumCols(), got.NumRows(), want.NumCols(),
			want.NumRows())
	}
	for i := range int(want.NumCols()) {
		a, b := want.Schema().Field(i), got.Schema().Field(i)
		if a.Name != b.Name || a.Nullable != b.Nullable || typeText(a.Type) != typeText(b.Type) {
			return fmt.Sprintf("got field %s, want %s", b, a)
		}
		x, y := oneArray(t, want.Column(i).Data()), oneArray(t, got.Column(i).Data())
		if !array.ApproxEqual(x, y, array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
			for k := range x.Len() {
				if p, q := x.ValueStr(k), y.ValueStr(k); p != q {
					return fmt.Sprintf("%s row %d: got %s, want %s", a.Name, k, q, p)
				}
			}
		}
	}
	return ""
}

// typeText is a type with uniform names of list items: pyarrow keeps Parquet's name, element; stoa uses that of the
// Arrow schema in the file.
func typeText(t arrow.DataType) string { return strings.ReplaceAll(t.String(), "<element:", "<item:") }

// oneArray concatenates the chunks of a column.
func oneArray(t *testing.T, c *arrow.Chunked) arrow.Array {
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
