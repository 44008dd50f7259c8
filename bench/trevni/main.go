// Command trevni writes and scans 1 M rows of 10 columns with stoa, as Bench.java does with Avro's Trevni, and prints both side by side.
// See run.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

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

// batches are the rows of Bench.java.
func batches() (*arrow.Schema, []arrow.RecordBatch) {
	p := arrow.PrimitiveTypes
	var fields []arrow.Field
	for i, t := range []arrow.DataType{p.Int32, p.Int32, p.Int64, p.Int64, p.Float32, p.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Boolean} {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: t})
	}
	sc := arrow.NewSchema(fields, nil)
	var out []arrow.RecordBatch
	for from := 0; from < rows; from += 1 << 16 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := int64(from); i < int64(from)+1<<16; i++ {
			h := mix(i)
			b.Field(0).(*array.Int32Builder).Append(int32(i / 3))
			b.Field(1).(*array.Int32Builder).Append(int32(h))
			b.Field(2).(*array.Int64Builder).Append(h >> 20)
			b.Field(3).(*array.Int64Builder).Append(1700000000000000 + 1000*i)
			b.Field(4).(*array.Float32Builder).Append(float32(h&0xffff) / 8)
			b.Field(5).(*array.Float64Builder).Append(float64(h>>30) / 7)
			b.Field(6).(*array.StringBuilder).Append(fmt.Sprint("word", h&1023))
			b.Field(7).(*array.StringBuilder).Append(fmt.Sprint("s", i))
			b.Field(8).(*array.BinaryBuilder).Append(strconv.AppendUint(nil, uint64(h), 16))
			b.Field(9).(*array.BooleanBuilder).Append(h&4 == 0)
		}
		out = append(out, b.NewRecordBatch())
	}
	return sc, out
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

// best is the least time of several runs.
func best(runs int, f func()) float64 {
	least := 1e9
	for range runs {
		runtime.GC()
		t := cpu()
		f()
		least = min(least, cpu()-t)
	}
	return least
}

// setup is a way to store the file.
type setup struct{ codec, sum string }

var cases = []setup{{"null", "null"}, {"snappy", "crc32"}, {"deflate", "crc32"}}

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

// scanAll decodes every column of every row, and closes t.
func scanAll(t *stoa.Table, pool memory.Allocator, parallel int) {
	n := int64(0)
	for b, err := range t.Scan(context.Background(), stoa.ScanSpec{Alloc: pool, Parallel: parallel}) {
		check(err)
		n += b.NumRows()
	}
	if n != rows {
		check(fmt.Errorf("%d rows", n))
	}
	check(t.Close())
}

func main() {
	dir, java := os.Args[1], os.Args[2]
	runs, err := strconv.Atoi(os.Args[3])
	check(err)
	runtime.GOMAXPROCS(1)
	sc, data := batches()
	peer := read(java)
	fmt.Println("| what | codec | stoa | Avro 1.12.2 (Java) | factor |\n|---|---|---|---|---|")
	for _, c := range cases {
		line := func(what string, s float64) {
			p := peer[what+" "+c.codec]
			fmt.Printf("| %s | %s, %s | %.3f s | %.3f s | %.1f × |\n", what, c.codec, c.sum, s, p, p/s)
		}
		line("write", best(runs, func() { writeAll(filepath.Join(dir, "stoa-"+c.codec+".trv"), c, sc, data) }))
		pool := stoa.NewPool()
		line("scan", best(runs, func() { // of the file that the peer wrote
			t, err := stoa.Open(context.Background(), filepath.Join(dir, "java-"+c.codec+".trv"), stoa.OpenOptions{})
			check(err)
			scanAll(t, pool, 1)
		}))
	}
}

// read takes the lines that Bench.java printed.
func read(name string) map[string]float64 {
	f, err := os.Open(name)
	check(err)
	defer f.Close()
	out := map[string]float64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) == 3 {
			x, err := strconv.ParseFloat(w[2], 64)
			check(err)
			out[w[0]+" "+w[1]] = x
		}
	}
	return out
}
