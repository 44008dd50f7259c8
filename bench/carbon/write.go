package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/carbon"
)

// shuffled are the rows of the table in the order in which Bench.java writes them, in batches of 65,536.
func shuffled(dir string) (out []arrow.RecordBatch) {
	ctx := context.Background()
	t, err := stoa.Open(ctx, dir, stoa.OpenOptions{})
	check(err)
	defer t.Close()
	var in []arrow.RecordBatch
	var first []int
	n := 0
	for b, err := range t.Scan(ctx, stoa.ScanSpec{}) {
		check(err)
		b.Retain()
		in, first = append(in, b), append(first, n)
		n += int(b.NumRows())
	}
	if n != rows {
		check(fmt.Errorf("%d rows", n))
	}
	build := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema())
	for i := range rows {
		row := i * key % rows
		k := min(row/int(in[0].NumRows()), len(in)-1)
		for first[k] > row {
			k--
		}
		for k+1 < len(in) && first[k+1] <= row {
			k++
		}
		for c := range build.Fields() {
			appendCell(build.Field(c), in[k].Column(c), row-first[k])
		}
		if i%65536 == 65535 {
			out = append(out, build.NewRecordBatch())
		}
	}
	return out
}

func appendCell(b array.Builder, from arrow.Array, i int) {
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(from.(*array.Int32).Value(i))
	case *array.Int64Builder:
		b.Append(from.(*array.Int64).Value(i))
	case *array.TimestampBuilder:
		b.Append(from.(*array.Timestamp).Value(i))
	case *array.Date32Builder:
		b.Append(from.(*array.Date32).Value(i))
	case *array.Float64Builder:
		b.Append(from.(*array.Float64).Value(i))
	case *array.Decimal128Builder:
		b.Append(from.(*array.Decimal128).Value(i))
	case *array.BooleanBuilder:
		b.Append(from.(*array.Boolean).Value(i))
	case *array.StringBuilder:
		b.Append(from.(*array.String).Value(i))
	default:
		check(fmt.Errorf("a column of type %s", from.DataType()))
	}
}

// texts are batches with every value as a text, as the SDK's writer gets them.
func texts(in []arrow.RecordBatch) (out []arrow.RecordBatch) {
	var fields []arrow.Field
	for _, f := range in[0].Schema().Fields() {
		fields = append(fields, arrow.Field{Name: f.Name, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	for _, b := range in {
		build := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
		for c, col := range b.Columns() {
			for i := range col.Len() {
				build.Field(c).(*array.StringBuilder).Append(cellText(col, i))
			}
		}
		out = append(out, build.NewRecordBatch())
	}
	return out
}

func cellText(a arrow.Array, i int) string {
	if t, ok := a.(*array.Timestamp); ok {
		return t.Value(i).ToTime(arrow.Millisecond).Format("2006-01-02 15:04:05.000")
	}
	return a.ValueStr(i)
}

// writing writes the rows as the SDK did: a directory with the same settings, and a segment of a table, from typed columns and from texts.
func writing(dir string, runs int, java map[string]peer) {
	typed := shuffled(dir)
	asText := texts(typed)
	work, err := os.MkdirTemp("", "stoa-bench-*")
	check(err)
	defer os.RemoveAll(work)
	_, want := scan(dir, stoa.NewPool(), stoa.ScanSpec{}, true)
	fmt.Println("\n| writing | stoa | CarbonData 2.3.0 | factor | stoa's bytes | CarbonData's |\n|---|---|---|---|---|---|")
	line := func(what, of string, write func(to string)) {
		p := java[of]
		to := filepath.Join(work, "t")
		again := func() {
			check(os.RemoveAll(to))
			write(to)
		}
		runtime.GOMAXPROCS(1)
		c, _ := best(runs, again)
		runtime.GOMAXPROCS(runtime.NumCPU())
		_, wall := best(runs, again)
		n, total := scan(to, stoa.NewPool(), stoa.ScanSpec{}, true)
		if n != rows || total != want {
			check(fmt.Errorf("%s: %d rows with the checksum %016x, want %016x", what, n, total, want))
		}
		theirs, err := strconv.ParseInt(p.sum, 10, 64)
		check(err)
		if n, total := scan(of, stoa.NewPool(), stoa.ScanSpec{}, true); n != rows || total != want {
			check(fmt.Errorf("what CarbonData wrote: %d rows with the checksum %016x, want %016x", n, total, want))
		}
		fmt.Printf("| %s: processor, one thread | %.3f s | %.3f s | %.1f × | %d | %d |\n", what, c, p.cpu, p.cpu/c, size(to), theirs)
		fmt.Printf("| %s: clock, all threads | %.3f s | %.3f s | %.1f × | | |\n", what, wall, p.wall, p.wall/wall)
	}
	line("sorted by `id`, from columns", "load", func(to string) { create(to, typed, "id") })
	line("not sorted, from columns", "load-unsorted", func(to string) { create(to, typed, "") })
	line("a segment, sorted by `id`, from texts", "load", func(to string) { load(to, typed[0].Schema(), asText, []string{"id"}) })
	line("a segment, not sorted, from texts", "load-unsorted", func(to string) { load(to, typed[0].Schema(), asText, nil) })
}

func create(to string, in []arrow.RecordBatch, sort string) {
	ctx := context.Background()
	opts := map[string]string{"blocklet-size": "16", "block-size": "64"}
	if sort != "" {
		opts["sort-columns"] = sort
	}
	w, err := stoa.Create(ctx, to+"/", in[0].Schema(), stoa.CreateOptions{To: "carbon", Rows: -1, Opts: opts})
	check(err)
	for _, b := range in {
		check(w.Write(ctx, b))
	}
	_, err = w.Close(ctx)
	check(err)
}

func load(to string, sc *arrow.Schema, in []arrow.RecordBatch, sort []string) {
	ctx := context.Background()
	check(carbon.CreateTable(to, "", carbon.TableSpec{Schema: sc, SortColumns: sort, Properties: map[string]string{"table_blocklet_size": "16", "table_blocksize": "64"}}))
	l, err := carbon.BeginLoad(ctx, to, in[0].Schema(), carbon.LoadOptions{})
	check(err)
	for _, b := range in {
		check(l.Write(ctx, b))
	}
	_, err = l.Close(ctx)
	check(err)
}

// size is how many bytes of data and index files are in a directory.
func size(dir string) (n int64) {
	check(filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) == "" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	}))
	return n
}
