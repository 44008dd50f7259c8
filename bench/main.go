// Command bench measures stoa against pyarrow on the same rows, in one run, and prints ratios.
//
// Both sides read every column into Arrow memory, one thread, best of five, process start and file opening of the first
// run excluded; a checksum over the values is equal on both sides or the run fails.
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
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

var (
	nRows  = flag.Int("rows", 2_000_000, "rows")
	python = flag.String("python", "python3", "a Python with pyarrow and numpy")
	dir    = flag.String("data", "data", "folder of the data; made anew if it is not there")
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
	runtime.GOMAXPROCS(1)
	var all []string
	for _, f := range schema.Fields() {
		all = append(all, f.Name)
	}
	fmt.Printf("%d rows, one thread, best of five, all columns decoded to Arrow\n\n", *nRows)
	fmt.Printf("| columns | stoa, CFile | fresh buffers | pyarrow, Snappy Parquet | ratio | ratio, fresh | pyarrow, uncompressed | ratio |\n|---|---|---|---|---|---|---|---|\n")
	for _, cols := range append([][]string{all}, singles(all)...) {
		if err := line(ctx, folder, cols); err != nil {
			return err
		}
	}
	return nil
}

func singles(all []string) [][]string {
	var out [][]string
	for _, c := range all {
		out = append(out, []string{c})
	}
	return out
}

// prepare writes the rows as a directory of CFiles and, through the peer, as Parquet.
func prepare(ctx context.Context, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "none.parquet")); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	arrowFile := filepath.Join(folder, "rows.arrow")
	f, err := os.Create(arrowFile)
	if err != nil {
		return err
	}
	aw, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	cw, err := stoa.Create(ctx, filepath.Join(folder, "cfile")+"/", schema, stoa.CreateOptions{To: "cfile"})
	if err != nil {
		return err
	}
	defer cw.Abort(ctx)
	const step = 100_000
	for at := 0; at < *nRows; at += step {
		b := rows(at, min(*nRows, at+step))
		if err := aw.Write(b); err != nil {
			return err
		}
		if err := cw.Write(ctx, b); err != nil {
			return err
		}
		b.Release()
	}
	if err := aw.Close(); err != nil {
		return err
	}
	if err := f.Close(); err != nil && !strings.Contains(err.Error(), "already closed") {
		return err
	}
	if _, err := cw.Close(ctx); err != nil {
		return err
	}
	cmd := exec.Command(*python, "peer.py", "prepare", arrowFile, folder)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// peer is what peer.py prints.
type peer struct {
	Seconds float64
	Way     string
	Sums    map[string]sum
}

func line(ctx context.Context, folder string, cols []string) error {
	t, err := stoa.Open(ctx, filepath.Join(folder, "cfile"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	sums := map[string]sum{}
	if err := check(ctx, t, cols, sums); err != nil {
		return err
	}
	pooled, err := scan(ctx, t, cols, stoa.NewPool())
	if err != nil {
		return err
	}
	fresh, err := scan(ctx, t, cols, nil)
	if err != nil {
		return err
	}
	snappy, err := ask(filepath.Join(folder, "snappy.parquet"), cols)
	if err != nil {
		return err
	}
	none, err := ask(filepath.Join(folder, "none.parquet"), cols)
	if err != nil {
		return err
	}
	for _, c := range cols {
		if sums[c] != snappy.Sums[c] || sums[c] != none.Sums[c] {
			return fmt.Errorf("column %s: stoa read %+v, pyarrow %+v", c, sums[c], snappy.Sums[c])
		}
	}
	name := cols[0]
	if len(cols) > 1 {
		name = fmt.Sprintf("all %d", len(cols))
	}
	fmt.Printf("| %s | %.1f ms | %.1f ms | %.1f ms | %.2f× | %.2f× | %.1f ms | %.2f× |\n", name, 1000*pooled, 1000*fresh, 1000*snappy.Seconds,
		snappy.Seconds/pooled, snappy.Seconds/fresh, 1000*none.Seconds, none.Seconds/pooled)
	return nil
}

// scan is the best of five, in seconds.
func scan(ctx context.Context, t *stoa.Table, cols []string, alloc memory.Allocator) (float64, error) {
	best := 0.0
	for range 5 {
		runtime.GC()
		start := time.Now()
		n := int64(0)
		for b, err := range t.Scan(ctx, stoa.ScanSpec{Columns: cols, Alloc: alloc}) {
			if err != nil {
				return 0, err
			}
			n += b.NumRows()
		}
		if took := time.Since(start).Seconds(); best == 0 || took < best {
			best = took
		}
		if n != int64(*nRows) {
			return 0, fmt.Errorf("%d rows came", n)
		}
	}
	return best, nil
}

// check sums the values up, outside of the measurement.
func check(ctx context.Context, t *stoa.Table, cols []string, sums map[string]sum) error {
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Columns: cols}) {
		if err != nil {
			return err
		}
		for i, c := range cols {
			s := sums[c]
			s.add(b.Column(i))
			sums[c] = s
		}
	}
	return nil
}

func ask(path string, cols []string) (peer, error) {
	cmd := exec.Command(*python, "peer.py", "scan", path, "1", strings.Join(cols, ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return peer{}, err
	}
	var p peer
	return p, json.Unmarshal(out, &p)
}
