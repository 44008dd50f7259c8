// Command redfile measures RED1 against Parquet on the same rows, in one run: a scan of all columns against
// pyarrow, and look-ups of single rows by number, all columns, against parquet-go's SeekToRow and pyarrow's
// take.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go"

	"stoa"
	"stoa/bench/columns"
	"stoa/format"
	"stoa/format/redfile"
)

var (
	nRows   = flag.Int("rows", 1_000_000, "rows")
	python  = flag.String("python", "python3", "a Python with pyarrow and numpy")
	dir     = flag.String("data", "data", "folder of the data; made anew if it is not there")
	lookups = flag.Int("lookups", 10_000, "look-ups")
	takes   = flag.Int("takes", 100, "look-ups by pyarrow, which takes long")
	profile = flag.String("profile", "", "measure nothing, but write profiles of the processor to this folder: "+
		"of the scan of each file, and of the look-ups")
)

// The files of RED1: codec and page size.
var files = []struct{ name, codec, page string }{
	{"none-8k", "none", "8192"}, {"none-64k", "none", "65536"}, {"none-1m", "none", "1048576"},
	{"snappy-8k", "snappy", "8192"}, {"snappy-1m", "snappy", "1048576"},
}

func main() {
	flag.Parse()
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal("bench: ", err)
	}
}

func run(ctx context.Context) error {
	folder := filepath.Join(*dir, fmt.Sprint(*nRows))
	if err := prepare(ctx, folder); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	if *profile != "" {
		return profiles(ctx, folder)
	}
	peer, err := ask("scan", filepath.Join(folder, "snappy.parquet"))
	if err != nil {
		return err
	}
	fmt.Printf("%d rows of ten columns, one thread, best of five, all columns decoded to Arrow; pyarrow %s "+
		"reads Snappy Parquet in %.0f ms (%.0f ms of processor)\n\n", *nRows, peer.Version, 1e3*peer.Seconds,
		1e3*peer.CPU)
	fmt.Printf("| RED1 | bytes | stoa, ms | ratio | processor, ms | ratio |\n|---|---|---|---|---|---|\n")
	for _, f := range files {
		path := filepath.Join(folder, f.name+".red")
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s, sum, err := scan(ctx, path)
		if err != nil {
			return err
		}
		if sum != peer.Sum {
			return fmt.Errorf("%s: the sum of the keys is %d, pyarrow's %d", f.name, sum, peer.Sum)
		}
		fmt.Printf("| %s | %d | %.0f | %.2f | %.0f | %.2f |\n", f.name, info.Size(), 1e3*s.Seconds,
			peer.Seconds/s.Seconds, 1e3*s.CPU, peer.CPU/s.CPU)
	}
	return seeks(ctx, folder)
}

// profiles writes CPU profiles of five scans of each file, and of the look-ups.
func profiles(ctx context.Context, folder string) error {
	part := func(name string, f func(path string) error) error {
		out, err := os.Create(filepath.Join(*profile, name+".pprof"))
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		return f(filepath.Join(folder, strings.TrimPrefix(name, "rows-")+".red"))
	}
	for _, f := range files {
		if err := part(f.name, func(path string) error { _, _, err := scan(ctx, path); return err }); err != nil {
			return err
		}
	}
	for _, name := range []string{"rows-none-8k", "rows-snappy-8k"} {
		if err := part(name, func(path string) error {
			_,
				err := redSeeks(ctx, path, places())
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// cost is elapsed and CPU seconds; on a busy machine only the latter are meaningful.
type cost struct{ Seconds, CPU float64 }

func now() cost {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return cost{float64(time.Now().UnixNano()) / 1e9, cpu.Seconds()}
}

// since is the cost since begin, per n.
func since(begin cost, n int) cost {
	end := now()
	return cost{(end.Seconds - begin.Seconds) / float64(n), (end.CPU - begin.CPU) / float64(n)}
}

// least keeps the smaller value of each.
func (c *cost) least(o cost) {
	if c.Seconds == 0 || o.Seconds < c.Seconds {
		c.Seconds = o.Seconds
	}
	if c.CPU == 0 || o.CPU < c.CPU {
		c.CPU = o.CPU
	}
}

// scan returns the best of five scans and the sum of the keys.
func scan(ctx context.Context, path string) (best cost, sum uint64, err error) {
	t, err := stoa.Open(ctx, path, stoa.OpenOptions{})
	if err != nil {
		return best, 0, err
	}
	defer t.Close()
	pool := stoa.NewPool()
	for i := range 5 {
		runtime.GC()
		begin := now()
		rows, total := int64(0), uint64(0)
		for b, err := range t.Scan(ctx, stoa.ScanSpec{Alloc: pool}) {
			if err != nil {
				return best, 0, err
			}
			rows += b.NumRows()
			if i == 0 {
				for _, v := range b.Column(0).(*array.Int64).Values() {
					total += uint64(v)
				}
			}
		}
		best.least(since(begin, 1))
		if i == 0 {
			sum = total
		}
		if rows != int64(*nRows) {
			return best, 0, fmt.Errorf("%s: %d rows", path, rows)
		}
	}
	return best, sum, nil
}

// seeks measures look-ups of single rows.
func seeks(ctx context.Context, folder string) error {
	at := places()
	go1, err := parquetSeeks(filepath.Join(folder, "pages.parquet"), at)
	if err != nil {
		return err
	}
	py, err := ask("take", filepath.Join(folder, "pages.parquet"), fmt.Sprint(*takes), fmt.Sprint(*nRows))
	if err != nil {
		return err
	}
	py.Seconds, py.CPU = py.Seconds/float64(*takes), py.CPU/float64(*takes)
	fmt.Printf("\n%d look-ups of one row, all columns, pages of 8 KiB; µs each (processor). parquet-go "+
		"SeekToRow: %.0f (%.0f); pyarrow take (%d of them): %.0f (%.0f)\n\n",
		*lookups, 1e6*go1.Seconds, 1e6*go1.CPU, *takes, 1e6*py.Seconds, 1e6*py.CPU)
	fmt.Printf("| RED1 | stoa, µs (processor) | against parquet-go | against pyarrow |\n|---|---|---|---|\n")
	for _, name := range []string{"none-8k", "snappy-8k"} {
		s, err := redSeeks(ctx, filepath.Join(folder, name+".red"), at)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f (%.1f) | %.1f (%.1f) | %.0f (%.0f) |\n", name, 1e6*s.Seconds, 1e6*s.CPU,
			go1.Seconds/s.Seconds, go1.CPU/s.CPU, py.Seconds/s.Seconds, py.CPU/s.CPU)
	}
	return nil
}

// places returns the numbers of the rows that are looked up.
func places() []int64 {
	rnd := rand.New(rand.NewPCG(1, 1))
	at := make([]int64, *lookups)
	for i := range at {
		at[i] = rnd.Int64N(int64(*nRows))
	}
	return at
}

func redSeeks(ctx context.Context, path string, at []int64) (c cost, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	r, err := redfile.NewReader(f, info.Size(), format.OpenOptions{})
	if err != nil {
		return c, err
	}
	begin := now()
	for _, n := range at {
		b, err := r.Row(ctx, n, nil)
		if err != nil {
			return c, err
		}
		if got := b.Column(0).(*array.Int64).Value(0); got/3 != n {
			return c, fmt.Errorf("row %d has the key %d", n, got)
		}
		b.Release()
	}
	return since(begin, len(at)), nil
}

func parquetSeeks(path string, at []int64) (c cost, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return c, err
	}
	var groups []parquet.Rows
	var starts []int64
	first := int64(0)
	for _, g := range pf.RowGroups() {
		groups = append(groups, g.Rows())
		starts = append(starts, first)
		first += g.NumRows()
	}
	row := make([]parquet.Row, 1)
	begin := now()
	for _, n := range at {
		g := len(starts) - 1
		for starts[g] > n {
			g--
		}
		if err := groups[g].SeekToRow(n - starts[g]); err != nil {
			return c, err
		}
		if k, err := groups[g].ReadRows(row); k != 1 {
			return c, fmt.Errorf("row %d: %v", n, err)
		}
		if got := row[0][0].Int64(); got/3 != n {
			return c, fmt.Errorf("row %d has the key %d", n, got)
		}
	}
	return since(begin, len(at)), nil
}

// answer is the output of peer.py.
type answer struct {
	cost
	Sum     uint64
	Version string
}

func ask(args ...string) (a answer, err error) {
	cmd := exec.Command(*python, append([]string{"peer.py"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(out, &a)
}

// prepare writes the rows as RED1 and, through the peer, as Parquet.
func prepare(ctx context.Context, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "pages.parquet")); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	arrowFile := filepath.Join(folder, "rows.arrow")
	var writers []*stoa.Writer
	for _, r := range files {
		w, err := stoa.Create(ctx, filepath.Join(folder, r.name+".red"), columns.Schema,
			stoa.CreateOptions{To: "redfile", Opts: map[string]string{"compression": r.codec, "page-size": r.page}})
		if err != nil {
			return err
		}
		defer w.Abort(ctx)
		writers = append(writers, w)
	}
	if err := columns.Write(ctx, *nRows, arrowFile, writers); err != nil {
		return err
	}
	cmd := exec.Command(*python, "peer.py", "prepare", arrowFile, folder)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
