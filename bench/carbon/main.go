// Command carbon scans the table that Bench.java had the real CarbonData write, and writes it anew, and prints the times beside those of
// CarbonData's own reader and writer. See run.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/pred"
)

const rows = 1 << 20

// key is the row that the point filter wants.
const key = 777_777

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

// sums adds up a batch as Bench.java does: numbers by their bits, texts by Java's hashCode, nulls as 1. CarbonData's readers give dates
// and timestamps as texts.
func sums(b arrow.RecordBatch) (total uint64) {
	for _, c := range b.Columns() {
		var value func(i int) uint64
		switch c := c.(type) {
		case *array.Int32:
			value = func(i int) uint64 { return uint64(int64(c.Value(i))) }
		case *array.Int64:
			value = func(i int) uint64 { return uint64(c.Value(i)) }
		case *array.Timestamp:
			value = func(i int) uint64 {
				return hash(c.Value(i).ToTime(arrow.Millisecond).Format("2006-01-02 15:04:05.000"))
			}
		case *array.Date32:
			value = func(i int) uint64 { return hash(c.Value(i).ToTime().Format(time.DateOnly)) }
		case *array.Float64:
			value = func(i int) uint64 { return math.Float64bits(c.Value(i)) }
		case *array.Decimal128:
			value = func(i int) uint64 { return c.Value(i).LowBits() }
		case *array.Boolean:
			value = func(i int) uint64 {
				if c.Value(i) {
					return 1
				}
				return 0
			}
		case *array.String:
			value = func(i int) uint64 { return hash(c.Value(i)) }
		default:
			check(fmt.Errorf("a column of type %s", c.DataType()))
		}
		for i := range c.Len() {
			if c.IsNull(i) {
				total++
			} else {
				total += value(i)
			}
		}
	}
	return total
}

// hash is String.hashCode of a text of ASCII characters.
func hash(s string) uint64 {
	var h int32
	for i := range len(s) {
		h = 31*h + int32(s[i])
	}
	return uint64(int64(h))
}

// scan opens the table and reads it; with a sum every value is looked at.
func scan(dir string, pool memory.Allocator, spec stoa.ScanSpec, sum bool) (n int64, total uint64) {
	ctx := context.Background()
	spec.Alloc = pool
	t, err := stoa.Open(ctx, dir, stoa.OpenOptions{})
	check(err)
	for b, err := range t.Scan(ctx, spec) {
		check(err)
		if n += b.NumRows(); sum {
			total += sums(b)
		}
	}
	check(t.Close())
	return n, total
}

// best is the least processor and wall time of several runs after one that does not count.
func best(runs int, f func()) (least, wall float64) {
	least, wall = 1e9, 1e9
	for i := range runs + 1 {
		runtime.GC()
		c, t := cpu(), time.Now()
		f()
		c, d := cpu()-c, time.Since(t).Seconds()
		if i > 0 {
			least, wall = min(least, c), min(wall, d)
		}
	}
	return least, wall
}

// peer is a line of Bench.java.
type peer struct {
	cpu, wall float64
	sum       string
}

func main() {
	dir := os.Args[1]
	runs, err := strconv.Atoi(os.Args[3])
	check(err)
	if p := os.Getenv("STOA_PROFILE"); p != "" {
		f, err := os.Create(p)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	java := read(os.Args[2])
	pool := stoa.NewPool()
	runtime.GOMAXPROCS(1)
	if _, ok := java["row"]; ok {
		reading(dir, pool, runs, java)
	}
	if _, ok := java["load"]; ok {
		writing(dir, runs, java)
	}
}

func reading(dir string, pool memory.Allocator, runs int, java map[string]peer) {
	filter, err := pred.Parse(fmt.Sprint("id = ", key))
	check(err)

	fmt.Println("| what | stoa | CarbonData 2.3.0 | factor |\n|---|---|---|---|")
	line := func(what, of string, spec stoa.ScanSpec, want int64) {
		n, total := scan(dir, pool, spec, true)
		p, ok := java[of]
		if sum := fmt.Sprintf("%016x", total); !ok || n != want || sum != p.sum {
			check(fmt.Errorf("%s: %d rows with the checksum %s, want %d with %s", of, n, sum, want, p.sum))
		}
		c, _ := best(runs, func() { scan(dir, pool, spec, false) })
		fmt.Printf("| %s | %.4f s | %.4f s | %.1f × |\n", what, c, p.cpu, p.cpu/c)
	}
	some := []string{"id", "low", "big", "ratio", "word", "name", "price", "flag"}
	line("full scan, its vector reader", "vector", stoa.ScanSpec{}, rows)
	line("full scan, its row reader", "row", stoa.ScanSpec{}, rows)
	line("without date and timestamp, vector", "vector8", stoa.ScanSpec{Columns: some}, rows)
	line("without date and timestamp, row", "row8", stoa.ScanSpec{Columns: some}, rows)
	line("`id = 777777`, the sort column", "point", stoa.ScanSpec{Filter: filter}, 1)
	runtime.GOMAXPROCS(2)
	_, wall := best(runs, func() { scan(dir, pool, stoa.ScanSpec{Parallel: 2}, false) })
	fmt.Printf("| full scan, two threads, wall time, its row reader | %.4f s | %.4f s | %.1f × |\n", wall, java["row"].wall, java["row"].wall/wall)
}

// read takes the lines that Bench.java printed.
func read(name string) map[string]peer {
	f, err := os.Open(name)
	check(err)
	defer f.Close()
	out := map[string]peer{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) != 4 {
			continue
		}
		c, err := strconv.ParseFloat(w[1], 64)
		check(err)
		t, err := strconv.ParseFloat(w[2], 64)
		check(err)
		out[w[0]] = peer{c, t, w[3]}
	}
	return out
}
