package stoa_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/iceberg"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// Tables written by CarbonData 2.3.0, Avro 1.12.2, and an encoder made from RED1's document.
const (
	carbonTable = "corpus/carbon/2.3.0/managed/managed_del"
	avroFile    = "corpus/trevni/v1.12.2/avro_arrays.trv"
	redFile     = "corpus/redfile/red1/dremel.red"
)

// must returns x, or ends the example if there is an error.
func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

// rowsIn counts rows.
func rowsIn(seq iter.Seq2[arrow.RecordBatch, error]) (n int64) {
	for b, err := range seq {
		n += must(b, err).NumRows()
	}
	return n
}

// inTemp runs f with a temporary directory.
func inTemp(f func(ctx context.Context, dir string)) {
	dir := must(os.MkdirTemp("", "stoa"))
	defer os.RemoveAll(dir)
	f(context.Background(), dir)
}

// people writes a small table to a file, whose extension chooses the format.
func people(ctx context.Context, name string) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
		strings.NewReader(`[{"id":1,"name":"Ada"},{"id":2,"name":null},{"id":3,"name":"Grace"}]`))
	w := must(stoa.Create(ctx, name, sc, stoa.CreateOptions{}))
	defer w.Abort(ctx)
	if err := w.Write(ctx, must(b, err)); err != nil {
		log.Fatal(err)
	}
	must(w.Close(ctx))
}

// A table of CarbonData is a directory. Deleted rows are not read.
func ExampleOpen_carbonData() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})), "rows of", t.Schema().NumFields(), "columns")
	// Output:
	// 179 rows of 3 columns
}

// Nested columns of a Trevni file are Arrow's lists, maps, structs and unions.
func ExampleOpen_trevni() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, avroFile, stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(rowsIn(t.Scan(ctx, stoa.ScanSpec{Columns: []string{"aaa"}})), "rows")
	// Output:
	// 150 rows
}

// A RedFile: the example of the Dremel paper.
func ExampleOpen_redFile() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, redFile, stoa.OpenOptions{}))
	defer t.Close()
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Columns: []string{"Links"}}) {
		fmt.Println(must(b, err).Column(0).ValueStr(0))
	}
	// Output:
	// {"Backward":[],"Forward":[20,40,60]}
}

// Parquet, Arrow and text are read and written like the others.
func ExampleOpen_parquet() {
	inTemp(func(ctx context.Context, dir string) {
		for _, name := range []string{"p.parquet", "p.arrow", "p.jsonl", "p.csv", "p.tsv"} {
			people(ctx, filepath.Join(dir, name))
			t := must(stoa.Open(ctx, filepath.Join(dir, name), stoa.OpenOptions{}))
			fmt.Println(t.Sources()[0].Format, must(t.Count(ctx, stoa.ScanSpec{})))
			t.Close()
		}
	})
	// Output:
	// parquet 3
	// arrow 3
	// jsonl 3
	// csv 3
	// tsv 3
}

// OpenFS opens a file in an archive, or one that is embedded in the program.
func ExampleOpenFS() {
	ctx := context.Background()
	t := must(stoa.OpenFS(ctx, os.DirFS("corpus"), "carbon/2.3.0/managed/managed_del", stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})))
	// Output:
	// 179
}

// OpenReaderAt opens a file that was received as bytes.
func ExampleOpenReaderAt() {
	ctx := context.Background()
	b := must(os.ReadFile(redFile))
	t := must(stoa.OpenReaderAt(ctx, bytes.NewReader(b), int64(len(b)), "upload", stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(t.Sources()[0].Format, must(t.Count(ctx, stoa.ScanSpec{})))
	// Output:
	// redfile 2
}

// RowsOf yields rows as structs, for programs that are not columnar.
func ExampleRowsOf() {
	type Row struct {
		ID   int32  `arrow:"id"`
		Name string `arrow:"name"`
	}
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	where := must(pred.Parse("id between 1 and 2"))
	for row, err := range stoa.RowsOf[Row](ctx, t, stoa.ScanSpec{Filter: where}) {
		fmt.Println(must(row, err))
	}
	// Output:
	// {1 n1}
	// {2 n2}
}

// Get returns one row by its key, or ErrNotFound.
func ExampleGet() {
	type Row struct {
		Value int32 `arrow:"value"`
	}
	ctx := context.Background()
	t := must(stoa.Open(ctx, kuduFile, stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(must(stoa.Get[Row](ctx, t, -2133721183)).Value)
	_, err := stoa.Get[Row](ctx, t, -2133721182)
	fmt.Println(errors.Is(err, stoa.ErrNotFound))
	// Output:
	// -2133721183
	// true
}

// Damage is an error, or, under another policy, a loss that names the rows.
func ExampleTable_Scan_damaged() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "bad.cfile")
		b := must(os.ReadFile(kuduFile))
		b[100] ^= 1
		if err := os.WriteFile(name, b, 0o644); err != nil {
			log.Fatal(err)
		}
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		all, lost := must(t.Rows(ctx)), int64(0)
		n := rowsIn(t.Scan(ctx, stoa.ScanSpec{Damaged: stoa.SkipRows,
			Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }}))
		fmt.Println(lost, "lost", n+lost == all)
	})
	// Output:
	// 128 lost true
}

// Convert writes the rows of a table in another format; the output is checked before it becomes visible.
func ExampleConvert() {
	inTemp(func(ctx context.Context, dir string) {
		t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
		defer t.Close()
		sum := must(stoa.Convert(ctx, t, stoa.ScanSpec{}, filepath.Join(dir, "t.parquet"), stoa.CreateOptions{}))
		fmt.Println(sum.Rows, "rows, checked:", sum.Checked)
	})
	// Output:
	// 179 rows, checked: true
}

// Pause lets another process go on with a table of many files: it resumes with the states of all pauses.
func ExampleWriter_Pause() {
	inTemp(func(ctx context.Context, dir string) {
		t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
		defer t.Close()
		out := store.NewMemory(nil).Sink("lake") // a program that resumes gives a sink that keeps the files
		w := must(stoa.Create(ctx, "lake", t.Schema(), stoa.CreateOptions{Sink: out, To: "iceberg",
			Formats: []format.Format{iceberg.Format}}))
		defer w.Abort(ctx)
		for b, err := range t.Scan(ctx, stoa.ScanSpec{}) {
			must(b, err)
			must(b, w.Write(ctx, b))
		}
		var state struct{ Rows int64 }
		must(0, json.Unmarshal(must(w.Pause(ctx)), &state))
		fmt.Println("another process can go on after", state.Rows, "rows")
	})
	// Output:
	// another process can go on after 179 rows
}

// Diff compares the values of two tables, whatever their formats.
func ExampleDiff() {
	inTemp(func(ctx context.Context, dir string) {
		a, b := filepath.Join(dir, "a.trv"), filepath.Join(dir, "b.parquet")
		people(ctx, a)
		people(ctx, b)
		x, y := must(stoa.Open(ctx, a, stoa.OpenOptions{})), must(stoa.Open(ctx, b, stoa.OpenOptions{}))
		defer x.Close()
		defer y.Close()
		d := must(stoa.Diff(ctx, x, y, stoa.DiffOptions{}))
		fmt.Println(d.Same, "same,", d.Changed, "changed")
	})
	// Output:
	// 3 same, 0 changed
}

// Describe yields the structures of a file, down to each byte.
func ExampleDescribe() {
	for n, err := range stoa.Describe(context.Background(), kuduFile, stoa.DescribeOptions{}) {
		if n := must(n, err); n.Depth == 1 {
			fmt.Println(n.Name, "at", n.At.Off)
			break
		}
	}
	// Output:
	// header at 0
}

// Recover reads a file whose footer is missing.
func ExampleOpen_recover() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "cut.red")
		people(ctx, name)
		b := must(os.ReadFile(name))
		if err := os.WriteFile(name, b[:len(b)-4], 0o644); err != nil { // without the last four bytes
			log.Fatal(err)
		}
		_, err := stoa.Open(ctx, name, stoa.OpenOptions{})
		fmt.Println(err != nil)
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{Recover: true, From: "redfile"}))
		defer t.Close()
		fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})), "rows,", len(t.Findings()) > 0)
	})
	// Output:
	// true
	// 3 rows, true
}

// List lists the tables of a location.
func ExampleList() {
	for e, err := range stoa.List(context.Background(), redFile, stoa.OpenOptions{}) {
		fmt.Println(must(e, err).Rows)
	}
	// Output:
	// 2
}

// Session makes a context in which a location with many tables is opened once.
func ExampleSession() {
	ctx := stoa.Session(context.Background())
	for e, err := range stoa.List(ctx, redFile, stoa.OpenOptions{}) {
		uri, o := stoa.Named(must(e, err), stoa.OpenOptions{})
		t := must(stoa.Open(ctx, uri, o))
		fmt.Println(must(t.Rows(ctx)))
		t.Close()
	}
	// Output:
	// 2
}

// Segments are the loads of a table.
func ExampleSegments() {
	all := must(stoa.Segments(context.Background(), carbonTable, stoa.OpenOptions{}))
	fmt.Println(len(all) > 0)
	// Output:
	// true
}

// Explain reports what a scan reads, and what it skips.
func ExampleTable_Explain() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, kuduFile, stoa.OpenOptions{}))
	defer t.Close()
	e := must(t.Explain(ctx, stoa.ScanSpec{Filter: must(pred.Parse("value = -2133721183"))}, true))
	fmt.Println(e.Ran.Rows, "row")
	// Output:
	// 1 row
}

// Plan divides a scan into splits that other processes can read.
func ExampleTable_Plan() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	var n int64
	for s, err := range t.Plan(ctx, stoa.ScanSpec{}, 1<<10) {
		part := must(stoa.OpenSplit(ctx, must(s, err), stoa.OpenOptions{}))
		n += rowsIn(part.Scan(ctx, stoa.ScanSpec{}))
		part.Close()
	}
	fmt.Println(n)
	// Output:
	// 179
}

// PlanBy says of each split whether its number of rows is exact; then nothing has to be read to count them.
func ExampleTable_PlanBy() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	for s, err := range t.PlanBy(ctx, stoa.ScanSpec{Columns: []string{"id"}}, stoa.PlanOptions{Target: 1 << 20}) {
		fmt.Println(must(s, err).Rows, s.Exact) // some of the rows are deleted
	}
	// Output:
	// 205 false
}

// ScanSplit reads the splits of a table's own plan, without opening the table once more for each.
func ExampleTable_ScanSplit() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	spec := stoa.ScanSpec{Columns: []string{"id"}}
	var n int64
	for s, err := range t.Plan(ctx, spec, 1<<10) {
		n += rowsIn(t.ScanSplit(ctx, must(s, err), spec))
	}
	fmt.Println(n)
	// Output:
	// 179
}

// Stats reads every page and reports how the columns are stored.
func ExampleTable_Stats() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, kuduFile, stoa.OpenOptions{}))
	defer t.Close()
	for _, c := range must(t.Stats(ctx, stoa.Fail, nil)) {
		fmt.Println(c.Type, c.Nulls)
	}
	// Output:
	// int32 0
}

// OpenChanger opens a table for changes: here rows are added and deleted.
func ExampleOpenChanger() {
	inTemp(func(ctx context.Context, dir string) {
		location := filepath.Join(dir, "t")
		sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
		if err := stoa.CreateTable(ctx, location, sc, stoa.CreateTableOptions{TableSpec: format.TableSpec{}},
			stoa.OpenOptions{}); err != nil {
			log.Fatal(err)
		}
		c := must(stoa.OpenChanger(ctx, location, stoa.OpenOptions{}))
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
			strings.NewReader(`[{"id":1},{"id":2},{"id":3}]`))
		rows := func(yield func(arrow.RecordBatch, error) bool) { yield(b, err) }
		fmt.Println(must(c.Append(ctx, sc, rows, stoa.AppendOptions{
			Typed: carbon.WriteOptions{Compression: carbon.CompressZstd}})).Rows, "added")
		fmt.Println(must(c.Delete(ctx, stoa.DeleteOptions{Where: "id = 2", DryRun: true})), "would be deleted")
		fmt.Println(must(c.Delete(ctx, stoa.DeleteOptions{Where: "id = 2"})), "deleted")
		t := must(c.Open(ctx, stoa.OpenOptions{}))
		defer t.Close()
		fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})), "left")
	})
	// Output:
	// 3 added
	// 1 would be deleted
	// 1 deleted
	// 2 left
}

// OpenAll opens several files with the same columns as one table.
func ExampleOpenAll() {
	inTemp(func(ctx context.Context, dir string) {
		names := []string{filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.jsonl")}
		for _, name := range names {
			people(ctx, name)
		}
		t := must(stoa.OpenAll(ctx, names, stoa.OpenOptions{}))
		defer t.Close()
		fmt.Println(must(t.Count(ctx, stoa.ScanSpec{})), "rows of", len(t.Sources()), "files")
	})
	// Output:
	// 6 rows of 2 files
}

// Count reads only the columns of the filter.
func ExampleTable_Count() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "people.parquet")
		people(ctx, name)
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		fmt.Println(must(t.Count(ctx, stoa.ScanSpec{Filter: must(pred.Parse("name is null"))})))
	})
	// Output:
	// 1
}

// Each calls a function on the workers, with batches in any order: here each worker counts for itself.
func ExampleTable_Each() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "people.parquet")
		people(ctx, name)
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		rows := make([]int64, 2)
		err := t.Each(ctx, stoa.ScanSpec{Parallel: len(rows)}, func(worker int, b arrow.RecordBatch) error {
			rows[worker] += b.NumRows()
			return nil
		})
		fmt.Println(rows[0]+rows[1], "rows", err)
	})
	// Output:
	// 3 rows <nil>
}

// Dictionaries lists the entries of a column's dictionaries.
func ExampleTable_Dictionaries() {
	inTemp(func(ctx context.Context, dir string) {
		sc := arrow.NewSchema([]arrow.Field{{Name: "city", Type: arrow.BinaryTypes.String}}, nil)
		rows := strings.Repeat(`{"city":"Bern"},{"city":"Rome"},`, 500) + `{"city":"Oslo"}`
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+rows+"]"))
		name := filepath.Join(dir, "cities.parquet")
		w := must(stoa.Create(ctx, name, sc, stoa.CreateOptions{}))
		defer w.Abort(ctx)
		if err := w.Write(ctx, must(b, err)); err != nil {
			log.Fatal(err)
		}
		must(w.Close(ctx))
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		err = t.Dictionaries(ctx, "city", func(entries arrow.Array) bool {
			fmt.Println(entries)
			return true
		})
		fmt.Println(err)
	})
	// Output:
	// ["Bern" "Rome" "Oslo"]
	// <nil>
}

// Positions says which rows of the table a loss is about.
func ExampleTable_Positions() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, avroFile, stoa.OpenOptions{}))
	defer t.Close()
	p := must(t.Positions(ctx))
	_, known := p.Of(region.Loss{Part: "another file"})
	fmt.Println(p.Total(), known)
	// Output:
	// 150 false
}

// Row reads a row by its number: one page of each column.
func ExampleTable_Row() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, avroFile, stoa.OpenOptions{}))
	defer t.Close()
	fmt.Println(rowsIn(t.Row(ctx, 149, stoa.ScanSpec{})), "row")
	// Output:
	// 1 row
}

// SeekFrom reads from a key on.
func ExampleTable_SeekFrom() {
	inTemp(func(ctx context.Context, dir string) {
		name := filepath.Join(dir, "ids.cfile")
		sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
			strings.NewReader(`[{"id":1},{"id":3},{"id":5},{"id":7}]`))
		w := must(stoa.Create(ctx, name, sc, stoa.CreateOptions{Opts: map[string]string{"value-index": "true"}}))
		defer w.Abort(ctx)
		if err := w.Write(ctx, must(b, err)); err != nil {
			log.Fatal(err)
		}
		must(w.Close(ctx))
		t := must(stoa.Open(ctx, name, stoa.OpenOptions{}))
		defer t.Close()
		for b, err := range t.SeekFrom(ctx, []any{int64(4)}, stoa.ScanSpec{}) {
			fmt.Println(must(b, err).Column(0))
		}
	})
	// Output:
	// [5 7]
}

// Probe detects the format of a file by its content.
func ExampleProbe() {
	ctx := context.Background()
	f := must(stoa.Probe(ctx, format.Target{Tree: store.Local{}, Name: redFile}, stoa.OpenOptions{}))
	fmt.Println(f.Name)
	// Output:
	// redfile
}

// OpenSplit opens a split, which is plain data: it may have come through other processes, in other languages.
func ExampleOpenSplit() {
	ctx := context.Background()
	t := must(stoa.Open(ctx, carbonTable, stoa.OpenOptions{}))
	defer t.Close()
	var n int64
	for s, err := range t.Plan(ctx, stoa.ScanSpec{Columns: []string{"id"}}, 1<<10) {
		text := must(json.Marshal(must(s, err)))
		var received stoa.Split
		if err := json.Unmarshal(text, &received); err != nil {
			log.Fatal(err)
		}
		part := must(stoa.OpenSplit(ctx, received, stoa.OpenOptions{}))
		n += rowsIn(part.Scan(ctx, stoa.ScanSpec{}))
		part.Close()
	}
	fmt.Println(n)
	// Output:
	// 179
}

// CreateTable makes a table, here a partitioned and sorted one. A dry run makes the same checks, but no table.
func ExampleCreateTable() {
	inTemp(func(ctx context.Context, dir string) {
		sc := arrow.NewSchema([]arrow.Field{{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
			{Name: "country", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
		spec := format.TableSpec{SortColumns: []string{"day"}, Partition: []string{"country"}}
		for _, dry := range []bool{true, false} {
			if err := stoa.CreateTable(ctx, filepath.Join(dir, "visits"), sc,
				stoa.CreateTableOptions{TableSpec: spec, DryRun: dry}, stoa.OpenOptions{}); err != nil {
				log.Fatal(err)
			}
			fmt.Println(len(must(os.ReadDir(dir))), "table")
		}
	})
	// Output:
	// 0 table
	// 1 table
}

// A directory of a Kudu server, read without the server: each of its tables by name.
func ExampleOpen_kudu() {
	ctx := context.Background()
	for e, err := range stoa.List(ctx, "format/kudu/testdata/file", stoa.OpenOptions{}) {
		name, o := stoa.Named(must(e, err), stoa.OpenOptions{})
		t := must(stoa.Open(ctx, name, o))
		fmt.Println(e.Table, must(t.Count(ctx, stoa.ScanSpec{})))
		t.Close()
	}
	// Output:
	// autoinc 300
}
