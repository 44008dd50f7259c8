// Command bench measures stoa against its peers on the same rows, in one run, and prints one table of ratios.
//
// All read and write the same ten columns (package columns). Both sides decode every column, to Arrow memory or
// to the Java peer's own form, on one thread. The measure is the CPU time (user and kernel) of the whole process, the
// best of five. Process start and the first opening are excluded. The checksums of every column's values must be equal
// on both sides, or the run fails.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"stoa"
	"stoa/bench/columns"
)

var (
	nRows  = flag.Int("rows", 2_000_000, "rows")
	python = flag.String("python", "python3", "a Python with the packages of requirements.txt")
	dir    = flag.String("data", "data", "folder of the data; made anew if it is not there")
	only   = flag.Bool("prepare", false, "only write the data")
	parts  = flag.String("parts", "scans,unshuffle,where,lookups,write,threads,trevni,carbon",
		"what is measured, in this order")
	lookup = flag.String("lookup", "", "the program of ./lookup; empty: parquet-go is left out")
)

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
	if *only {
		return nil
	}
	b := &bench{ctx: ctx, folder: folder, keys: randomKeys(10_000)}
	if err := b.ask(); err != nil {
		return err
	}
	b.formula()
	fmt.Printf("%d rows × 10 columns, seconds of the processor, one thread, best of five\n\n", *nRows)
	fmt.Printf("| what | against | stoa | peer | ratio | floor | aim |\n|---|---|---|---|---|---|---|\n")
	for _, part := range []struct {
		name string
		run  func() error
	}{{"scans", b.scans}, {"unshuffle", b.unshuffle}, {"where", b.where}, {"lookups", b.lookups},
		{"write", b.write}, {"threads", b.threads},
		{"trevni", b.trevni}, {"carbon", b.carbon}} {
		if !wants(part.name) {
			continue
		}
		runtime.GOMAXPROCS(1)
		if err := part.run(); err != nil {
			return err
		}
	}
	return nil
}

// bench is one run.
type bench struct {
	ctx    context.Context
	folder string
	keys   []int64
	peers  map[string]peer
	sums   map[string]sum // of all rows, by the formula
}

// wants reports whether a part is to be measured.
func wants(part string) bool { return slices.Contains(strings.Split(*parts, ","), part) }

// formula computes the checksums of the rows of package columns, which every reader must have read.
func (b *bench) formula() {
	b.sums = map[string]sum{}
	for at := 0; at < *nRows; at += 1 << 16 {
		rec := columns.Rows(at, min(*nRows, at+1<<16))
		addBatch(b.sums, rec)
		rec.Release()
	}
}

// peer is a peer's output for one measurement.
type peer struct {
	Seconds float64
	Looked  int // keys looked up
	Sums    map[string]sum
}

// sets are the sets of columns that are scanned.
func sets() [][]string {
	var all []string
	for _, f := range columns.Schema.Fields() {
		all = append(all, f.Name)
	}
	return [][]string{all, {"key"}, {"low"}, {"high"}, {"nullable"}}
}

// ask has the peers measure.
func (b *bench) ask() error {
	var lines []string
	for _, k := range b.keys {
		lines = append(lines, fmt.Sprint(k))
	}
	keyFile := filepath.Join(b.folder, "keys.txt")
	if err := os.WriteFile(keyFile, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		return err
	}
	cols, err := json.Marshal(sets())
	if err != nil {
		return err
	}
	low, high := wanted()
	cmd := exec.Command(*python, "peer.py", "measure", b.folder, string(cols), fmt.Sprint(low), fmt.Sprint(high),
		keyFile, *parts)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, &b.peers)
}

// line prints one row of the table.
func line(what, against string, ours, theirs float64, floor, aim string) {
	unit := func(s float64) string {
		if s < 0.001 {
			return fmt.Sprintf("%.1f µs", s*1e6)
		}
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	fmt.Printf("| %s | %s | %s | %s | %.2f× | %s | %s |\n", what, against, unit(ours), unit(theirs), theirs/ours,
		floor, aim)
}

// best returns the least of five runs, in seconds of clock.
func best(clock func() time.Duration, f func() error) (float64, error) {
	low := time.Duration(1 << 62)
	for range 5 {
		runtime.GC()
		begin := clock()
		if err := f(); err != nil {
			return 0, err
		}
		low = min(low, clock()-begin)
	}
	return low.Seconds(), nil
}

// processor returns the CPU time of this process, of all threads.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

var start = time.Now()

func wall() time.Duration { return time.Since(start) }

// prepare has the rows written in all formats that the parts need, unless the files exist.
func prepare(ctx context.Context, folder string) error {
	if err := prepareFiles(ctx, folder); err != nil {
		return err
	}
	for _, what := range []string{"trevni", "carbon"} {
		if wants(what) {
			if err := prepareJava(ctx, what, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareFiles writes the rows as CFiles and, through the peer, as Parquet.
func prepareFiles(ctx context.Context, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "pages.parquet")); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	arrowFile := filepath.Join(folder, "rows.arrow")
	var writers []*stoa.Writer
	for name, o := range map[string]map[string]string{"cfile": nil,
		"keyed": {"value-index.key": "true", "block-size": "16384"}} {
		w, err := stoa.Create(ctx, filepath.Join(folder, name)+"/", columns.Schema,
			stoa.CreateOptions{To: "cfile", Opts: o})
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

// sameSums returns an error unless both have the same columns with the same checksums.
func sameSums(who string, ours, theirs map[string]sum) error {
	if len(ours) != len(theirs) || len(ours) == 0 {
		return fmt.Errorf("checksums of %d columns, %s has them of %d", len(ours), who, len(theirs))
	}
	for c, s := range ours {
		if t, ok := theirs[c]; !ok || s != t {
			return fmt.Errorf("column %s: %+v, %s has %+v", c, s, who, t)
		}
	}
	return nil
}

// wanted returns the keys of 0.1 % of the rows, in the middle: [low, high).
func wanted() (low, high int64) {
	from := int64(*nRows) / 2
	return 3 * from, 3 * (from + int64(*nRows)/1000)
}

// randomKeys returns n existing keys in random order.
func randomKeys(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		r := columns.Mix(uint64(i)+1) % uint64(*nRows)
		out[i] = keyOf(r)
	}
	return out
}

func keyOf(r uint64) int64 { return int64(r)*3 + int64(columns.Mix(r)%3) }
