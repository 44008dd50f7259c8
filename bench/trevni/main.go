// Command trevni writes and scans 1 M rows of 10 columns with stoa, as Bench.java does with Avro's Trevni, and prints both side by side.
// See run.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

const rows = 1 << 20

func mix(x int64) int64 {
	u := uint64(x) + 0x9E3779B97F4A7C15
	u = (u ^ u>>30) * 0xBF58476D1CE4E5B9
	u = (u ^ u>>27) * 0x94D049BB133111EB
	return int64(u ^ u>>31)
}

// batches are the rows of Bench.java. Those of its records may be null.
func batches(nullable bool) (*arrow.Schema, []arrow.RecordBatch) {
	p := arrow.PrimitiveTypes
	var fields []arrow.Field
	for i, t := range []arrow.DataType{p.Int32, p.Int32, p.Int64, p.Int64, p.Float32, p.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Boolean} {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: t, Nullable: nullable})
	}
	sc := arrow.NewSchema(fields, nil)
	var out []arrow.RecordBatch
	for from := 0; from < rows; from += 1 << 16 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := int64(from); i < int64(from)+1<<16; i++ {
			h := mix(i)
			null := int64(-1)
			if nullable {
				null = int64(uint64(h) >> 8 % 10)
			}
			for c, f := range b.Fields() {
				if int64(c) == null {
					f.AppendNull()
				} else {
					appendCell(f, c, i, h)
				}
			}
		}
		out = append(out, b.NewRecordBatch())
	}
	return sc, out
}

// appendCell appends the value of row i in column c.
func appendCell(f array.Builder, c int, i, h int64) {
	switch c {
	case 0:
		f.(*array.Int32Builder).Append(int32(i / 3))
	case 1:
		f.(*array.Int32Builder).Append(int32(h))
	case 2:
		f.(*array.Int64Builder).Append(h >> 20)
	case 3:
		f.(*array.Int64Builder).Append(1700000000000000 + 1000*i)
	case 4:
		f.(*array.Float32Builder).Append(float32(h&0xffff) / 8)
	case 5:
		f.(*array.Float64Builder).Append(float64(h>>30) / 7)
	case 6:
		f.(*array.StringBuilder).Append(fmt.Sprint("word", h&1023))
	case 7:
		f.(*array.StringBuilder).Append(fmt.Sprint("s", i))
	case 8:
		f.(*array.BinaryBuilder).Append(strconv.AppendUint(nil, uint64(h), 16))
	case 9:
		f.(*array.BooleanBuilder).Append(h&4 == 0)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cpu is the processor time of the process in seconds: other work on the machine does not count.
func cpu() float64 {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// took is the least time of several runs in seconds: of the processor, and on the clock.
type took struct{ cpu, wall float64 }

func best(runs int, f func()) took {
	least := took{1e9, 1e9}
	for range runs {
		runtime.GC()
		c, t := cpu(), time.Now()
		f()
		least = took{min(least.cpu, cpu()-c), min(least.wall, time.Since(t).Seconds())}
	}
	return least
}

// setup is a way to store the file.
type setup struct {
	name, codec, sum string
	nullable         bool
}

var cases = []setup{{"columns-null", "null", "null", false}, {"columns-snappy", "snappy", "crc32", false}, {"columns-deflate", "deflate", "crc32", false},
	{"records-null", "null", "null", true}, {"records-snappy", "snappy", "crc32", true}}

func writeAll(name string, c setup, sc *arrow.Schema, data []arrow.RecordBatch) {
	ctx := context.Background()
	w, err := stoa.Create(ctx, name, sc, stoa.CreateOptions{To: "trevni-avro", Opts: map[string]string{"codec": c.codec, "checksum": c.sum}})
	check(err)
	for _, b := range data {
		check(w.Write(ctx, b))
	}
	_, err = w.Close(ctx)
	check(err)
}

// scanAll opens a file, decodes every column of every row, and shows them to see.
func scanAll(name string, pool memory.Allocator, parallel int, see func(arrow.RecordBatch)) {
	t, err := stoa.Open(context.Background(), name, stoa.OpenOptions{})
	check(err)
	n := int64(0)
	for b, err := range t.Scan(context.Background(), stoa.ScanSpec{Alloc: pool, Parallel: parallel}) {
		check(err)
		n += b.NumRows()
		if see != nil {
			see(b)
		}
	}
	if n != rows {
		check(fmt.Errorf("%d rows", n))
	}
	check(t.Close())
}

// total is the nulls, and the sum of all values, as Bench.java has them.
type total struct{ nulls, sum int64 }

func (t *total) add(b arrow.RecordBatch) {
	for _, col := range b.Columns() {
		t.nulls += int64(col.NullN())
		for i := range col.Len() {
			if col.IsValid(i) {
				t.sum += cell(col, i)
			}
		}
	}
}

func cell(col arrow.Array, i int) int64 {
	switch col := col.(type) {
	case *array.Int32:
		return int64(col.Value(i))
	case *array.Int64:
		return col.Value(i)
	case *array.Float32:
		return int64(int32(math.Float32bits(col.Value(i))))
	case *array.Float64:
		return int64(math.Float64bits(col.Value(i)))
	case *array.Boolean:
		if col.Value(i) {
			return 1
		}
		return 0
	case *array.String:
		return text([]byte(col.Value(i)))
	case *array.Binary:
		return text(col.Value(i))
	}
	check(fmt.Errorf("a column of type %s", col.DataType()))
	return 0
}

func text(b []byte) int64 {
	x := int64(len(b))
	for _, c := range b {
		x = x*31 + int64(int8(c))
	}
	return x
}

func main() {
	dir, java := os.Args[1], os.Args[2]
	runs, err := strconv.Atoi(os.Args[3])
	check(err)
	all := runtime.NumCPU()
	peer, sums := read(java)
	fmt.Printf("| what | stoa, one thread: processor | Avro 1.12.2 (Java): processor | factor | stoa, %d threads: clock | Avro: clock | factor |\n|---|---|---|---|---|---|---|\n", all)
	var sc *arrow.Schema
	var data []arrow.RecordBatch
	for i, c := range cases {
		if i == 0 || c.nullable != cases[i-1].nullable {
			sc, data = batches(c.nullable)
		}
		line := func(what string, f func(threads int)) {
			runtime.GOMAXPROCS(1)
			one := best(runs, func() { f(1) })
			runtime.GOMAXPROCS(all)
			many := best(runs, func() { f(all) })
			p := peer[what+" "+c.name]
			fmt.Printf("| %s %s, %s | %.3f s | %.3f s | %.1f × | %.3f s | %.3f s | %.1f × |\n", what, c.name, c.sum, one.cpu, p[0], p[0]/one.cpu, many.wall, p[1], p[1]/many.wall)
		}
		own, theirs := filepath.Join(dir, "stoa-"+c.name+".trv"), filepath.Join(dir, "java-"+c.name+".trv")
		line("write", func(int) { writeAll(own, c, sc, data) })
		pool := stoa.NewPool()
		line("scan", func(threads int) { scanAll(theirs, pool, threads, nil) })
		for _, name := range []string{own, theirs} {
			var t total
			scanAll(name, pool, 1, t.add)
			if got := fmt.Sprint(t.nulls, " ", t.sum); got != sums[c.name] {
				check(fmt.Errorf("%s: nulls and sum are %s, Avro read %s", name, got, sums[c.name]))
			}
		}
	}
	fmt.Println("Nulls and sums of all values are equal on both sides, of either's files.")
}

// read takes the lines that Bench.java printed: times by what and case, nulls and sums by case.
func read(name string) (times map[string][2]float64, sums map[string]string) {
	f, err := os.Open(name)
	check(err)
	defer f.Close()
	times, sums = map[string][2]float64{}, map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) != 4 {
			continue
		}
		if w[0] == "sum" {
			sums[w[1]] = w[2] + " " + w[3]
			continue
		}
		cpu, err := strconv.ParseFloat(w[2], 64)
		check(err)
		wall, err := strconv.ParseFloat(w[3], 64)
		check(err)
		times[w[0]+" "+w[1]] = [2]float64{cpu, wall}
	}
	return times, sums
}
