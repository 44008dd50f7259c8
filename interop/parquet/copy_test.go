//go:build interop

package parquet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/interop/fuzz"
)

// copied is the expected content of the footer of a copy.
type copied struct {
	limit int64 // rows of a row group; 0: any number
	rows  int64
	names []string
	pages int64 // pages that were cut
}

// TestFuzzCopies copies pages of random tables, written by stoa or pyarrow to one file or several, to one file: with
// some of the columns, with changed metadata, with a limit on row groups. pyarrow, polars and DuckDB read the expected
// cells, and pyarrow finds the expected metadata and row groups.
func TestFuzzCopies(t *testing.T) {
	total := map[string]counts{}
	var n struct{ copies, merged, cut, fewer, pyarrows, pages int }
	fuzz.Run(t, "copies", 60, func(t *testing.T, first uint64) (cells int) {
		dir := t.TempDir()
		var list strings.Builder
		outputs := map[string]copied{}
		for seed := first; seed < first+60; seed++ {
			r := rand.New(rand.NewPCG(seed, 29))
			table, files, theirs := tableInFiles(t, r, filepath.Join(dir, fmt.Sprint("from-", seed)))
			part, names := someColumns(r, table)
			out := filepath.Join(dir, fmt.Sprintf("seed-%d-copy--", seed))
			c := copyFiles(t, r, files, names, out)
			c.rows = table.Batch.NumRows()
			table.Batch.Release()
			outputs[out] = c
			n.copies++
			n.merged += one(len(files) > 1)
			n.cut += one(c.limit > 0)
			n.fewer += one(len(c.names) < len(table.Cells))
			n.pyarrows += one(theirs)
			n.pages += int(c.pages)
			expected(t, part, out+".json")
			fmt.Fprintln(&list, "parquet", out, out+".json", "-")
		}
		for _, reader := range readers {
			r := rand.New(rand.NewPCG(first, 30))
			table := formattest.RandomTable(r, formattest.TableOptions{Rows: 9, Columns: 1, Depth: 1,
				Leaves: []arrow.DataType{arrow.PrimitiveTypes.Int64}})
			for table.Batch.NumRows() == 0 {
				table = formattest.RandomTable(r, formattest.TableOptions{Rows: 9, Columns: 1, Depth: 1,
					Leaves: []arrow.DataType{arrow.PrimitiveTypes.Int64}})
			}
			name := filepath.Join(dir, "altered-"+reader)
			written(t, r, parquet.Format, table, nil, name)
			expected(t, table, name+".json")
			fmt.Fprintln(&list, "parquet", name, name+".json", reader)
		}
		footers(t, outputs)
		return judged(t, dir, list.String(), total)
	})
	for k, c := range total {
		t.Logf("COUNT copies %s: %d tables, %d cells; %d columns of which it makes something else, and the same "+
			"where pyarrow wrote them", k, c[0], c[1], c[2])
	}
	t.Logf("COUNT copies: %d files, %d of several, %d with limited row groups, %d without some columns, %d of pages "+
		"by pyarrow; %d pages cut", n.copies, n.merged, n.cut, n.fewer, n.pyarrows, n.pages)
	if n.pages == 0 || n.merged == 0 || n.cut == 0 || n.fewer == 0 || n.pyarrows == 0 || n.pyarrows == n.copies {
		t.Errorf("got copies %+v, want some of each kind", n)
	}
}

func one(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// copyTypes are the types that survive reading and writing by pyarrow, without views, which polars cannot read in
// nested columns.
func copyTypes() []arrow.DataType {
	return slices.DeleteFunc(formattest.LeafTypes(), func(t arrow.DataType) bool {
		switch t := t.(type) {
		case *arrow.StringViewType, *arrow.BinaryViewType, *arrow.NullType, *arrow.Float16Type,
			*arrow.DurationType, *arrow.Decimal256Type, *arrow.DictionaryType, *arrow.Date64Type,
			*arrow.MonthIntervalType, *arrow.DayTimeIntervalType, *arrow.MonthDayNanoIntervalType:
			return true
		case *arrow.TimestampType:
			return t.Unit == arrow.Second
		}
		return false
	})
}

// tableInFiles writes a random table to one to three files. theirs: pyarrow wrote them.
func tableInFiles(t *testing.T, r *rand.Rand, name string) (table formattest.Table, files []string, theirs bool) {
	t.Helper()
	theirs = r.IntN(3) == 0
	table = formattest.RandomTable(r, formattest.TableOptions{Rows: []int{3, 60, 400}[r.IntN(3)], Columns: 4,
		Depth: 1 + r.IntN(4), Leaves: copyTypes(), NullableFixed: true, Gaps: []int{0, 3, 25, 90, 100}})
	opts := drawOptions(r)
	if r.IntN(2) == 0 { // then pages of all flat columns end at the same rows
		delete(opts, "page-size")
		delete(opts, "row-group-rows")
		opts["page-rows"] = []string{"1", "5", "16"}[r.IntN(3)]
	}
	opts["metadata"] = "mark=old,other=x"
	rows := table.Batch.NumRows()
	cuts := []int64{0, rows}
	for range r.IntN(3) {
		cuts = append(cuts, r.Int64N(rows+1))
	}
	slices.Sort(cuts)
	for i, from := range cuts[:len(cuts)-1] {
		file := fmt.Sprintf("%s-%d.parquet", name, i)
		part := formattest.Table{Schema: table.Schema, Batch: table.Batch.NewSlice(from, cuts[i+1])}
		written(t, r, parquet.Format, part, opts, file)
		part.Batch.Release()
		files = append(files, file)
	}
	if theirs {
		rewritten(t, r, files)
	}
	return table, files, theirs
}

// rewritten rewrites files with pyarrow, all with the same options.
func rewritten(t *testing.T, r *rand.Rand, files []string) {
	t.Helper()
	script := `import sys, json, pyarrow as pa, pyarrow.parquet as pq
options = json.loads(sys.argv[1])
def complete(f, t): # after a first page without rows it reads nothing
    try:
        return pq.read_table(f).num_rows == t.num_rows
    except (pa.ArrowInvalid, OSError): # columns of different length, or missing levels
        return False
for f in sys.argv[2:]:
    t = pq.read_table(f)
    pq.write_table(t, f, **options)
    if not complete(f, t):
        pq.write_table(t, f, **(options | {"data_page_size": 1 << 20}))
`
	options := map[string]any{"compression": []string{"none", "snappy", "zstd", "gzip", "brotli"}[r.IntN(5)],
		"data_page_version": []string{"1.0", "2.0"}[r.IntN(2)], "use_dictionary": r.IntN(2) == 0,
		"write_page_index": r.IntN(2) == 0, "write_page_checksum": r.IntN(2) == 0,
		"data_page_size": []int{1, 100, 1 << 20}[r.IntN(3)], "write_batch_size": []int{1, 8, 1024}[r.IntN(3)]}
	text, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), append([]string{"-c", script, string(text)},
		files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// someColumns is the table without the cells of some columns, which are to be left out, and the names of the others.
func someColumns(r *rand.Rand, table formattest.Table) (part formattest.Table, names []string) {
	part = formattest.Table{Schema: table.Schema, Cells: slices.Clone(table.Cells)}
	for i, f := range table.Schema.Fields() {
		if r.IntN(3) > 0 || len(names) == 0 && i == table.Schema.NumFields()-1 {
			names = append(names, f.Name)
		} else {
			part.Cells[i] = nil
		}
	}
	return part, names
}

// copyFiles copies the pages of files to one file, with changed metadata and limited row groups.
func copyFiles(t *testing.T, r *rand.Rand, files, names []string, out string) copied {
	t.Helper()
	src, err := stoa.OpenAll(t.Context(), files, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	want := copied{limit: []int64{5, 16, 40}[r.IntN(3)], names: names}
	if r.IntN(4) == 0 {
		want.limit = 0
	}
	opts := map[string]string{"metadata": "mark=new", "drop-metadata": "other"}
	if want.limit > 0 {
		opts["row-group-rows"] = fmt.Sprint(want.limit)
	}
	s, why, err := stoa.Copy(t.Context(), src, stoa.ScanSpec{Columns: names}, out, stoa.CreateOptions{To: "parquet",
		Opts: opts})
	if err != nil || why != "" {
		t.Fatalf("%v, %v, %v: %s, %v", files, names, opts, why, err)
	}
	want.pages = s.PagesCut
	return want
}

// footers compares the footers of copies, as pyarrow reads them, with the expected ones.
func footers(t *testing.T, outputs map[string]copied) {
	t.Helper()
	script := `import sys, json, pyarrow.parquet as pq
for f in sys.stdin.read().split():
    m = pq.read_metadata(f)
    rows = [m.row_group(i).num_rows for i in range(m.num_row_groups)]
    meta = {k.decode(): v.decode(errors="replace") for k, v in (m.metadata or {}).items() if k in (b"mark", b"other")}
    print(json.dumps({"File": f, "Groups": rows, "Meta": meta, "Names": pq.read_schema(f).names}))
`
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "-c", script)
	var names []string
	for name := range outputs {
		names = append(names, name)
	}
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); seen++ {
		var f struct {
			File   string
			Groups []int64
			Meta   map[string]string
			Names  []string
		}
		if err := d.Decode(&f); err != nil {
			t.Fatal(err)
		}
		want, rows := outputs[f.File], int64(0)
		for _, n := range f.Groups {
			if rows += n; want.limit > 0 && n > want.limit {
				t.Errorf("%s: got a row group of %d rows, want at most %d", f.File, n, want.limit)
			}
		}
		if other, ok := f.Meta["other"]; rows != want.rows || f.Meta["mark"] != "new" || ok ||
			!slices.Equal(f.Names, want.names) {
			t.Errorf("%s: got %d rows of %v, %v, %q, want %+v", f.File, rows, f.Names, f.Meta, other, want)
		}
	}
	if seen != len(outputs) {
		t.Errorf("got footers of %d files, want %d", seen, len(outputs))
	}
}
