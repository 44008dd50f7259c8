// Command carbon scans the table that Bench.java had the real CarbonData write, and prints the times beside those of CarbonData's own
// reader. See run.
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

// sums adds up a batch as Bench.java does: numbers by their bits, texts by Java's hashCode, nulls as 1. day and at are what its readers
// give: days since 1970, and microseconds in the row reader (milliseconds × 1000).
func sums(b arrow.RecordBatch) (total uint64) {
	for _, c := range b.Columns() {
		var value func(i int) uint64
		switch c := c.(type) {
		case *array.Int32:
			value = func(i int) uint64 { return uint64(int64(c.Value(i))) }
		case *array.Int64:
			value = func(i int) uint64 { return uint64(c.Value(i)) }
		case *array.Timestamp:
			value = func(i int) uint64 { return uint64(int64(c.Value(i)) * micros) }
		case *array.Date32:
			value = func(i int) uint64 { return uint64(int64(c.Value(i))) }
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

const micros = 1000

// hash is String.hashCode of a text of ASCII characters.
func hash(s string) uint64 {
	var h int32
	for i := range len(s) {
		h = 31*h + int32(s[i])
	}
	return uint64(int64(h))
}

// scan opens the table and reads it; with a sum every value is looked at.
func scan(dir string, pool memory.Allocator, filter *pred.Expr, sum bool, parallel int) (n int64, total uint64) {
	ctx := context.Background()
	t, err := stoa.Open(ctx, dir, stoa.OpenOptions{})
	check(err)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Alloc: pool, Filter: filter, Parallel: parallel}) {
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
	filter, err := pred.Parse(fmt.Sprint("id = ", key))
	check(err)

	fmt.Println("| what | stoa | CarbonData 2.3.0 | factor |\n|---|---|---|---|")
	line := func(what, of string, filter *pred.Expr, sum bool, want int64) {
		var n int64
		var total uint64
		c, _ := best(runs, func() { n, total = scan(dir, pool, filter, sum, 1) })
		if n != want {
			check(fmt.Errorf("%d rows, want %d", n, want))
		}
		p, ok := java[of]
		if !ok {
			fmt.Printf("| %s | %.4f s | | |\n", what, c)
			return
		}
		if got := fmt.Sprintf("%016x", total); sum && got != p.sum {
			fmt.Printf("| %s: the sums differ: %s, %s of the peer | | | |\n", what, got, p.sum)
		}
		fmt.Printf("| %s | %.4f s | %.4f s | %.1f × |\n", what, c, p.cpu, p.cpu/c)
	}
	line("full scan, against its vector reader", "vector", nil, false, rows)
	line("full scan, against its row reader", "row", nil, false, rows)
	line("full scan and a sum over all values, against its row reader", "row", nil, true, rows)
	line("`id = 777777`, the sort column", "point", filter, true, 1)
	runtime.GOMAXPROCS(2)
	_, wall := best(runs, func() { scan(dir, pool, nil, false, 2) })
	fmt.Printf("| full scan, two threads, wall time, against its row reader | %.4f s | %.4f s | %.1f × |\n", wall, java["row"].wall, java["row"].wall/wall)
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
