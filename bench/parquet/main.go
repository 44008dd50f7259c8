// Command parquet measures how stoa and pyarrow write and read Parquet, and the sizes of tables of several shapes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/bench/columns"
	"stoa/pred"
)

var (
	rows   = flag.Int("rows", 2_000_000, "rows of the ten columns")
	shapes = flag.Int("shapes", 200_000, "rows of the tables of several shapes")
	rounds = flag.Int("rounds", 7, "how often each is measured; the least counts")
	python = flag.String("python", "python3", "Python with pyarrow")
	codecs = []string{"none", "snappy", "zstd"}
)

// peer is pyarrow's measurements.
type peer struct {
	Write, Scan, Where float64
	Duck               float64 // DuckDB's export to Arrow
	Rows, Items        int64   // of lists
	Bytes              int64
	Lo, Hi             int64
	Sum                uint64
}

func main() {
	flag.Parse()
	dir, err := os.MkdirTemp("", "bench-parquet")
	if err == nil {
		defer os.RemoveAll(dir)
		if err = ten(context.Background(), dir); err == nil {
			err = lists(context.Background(), dir)
		}
		if err == nil {
			err = sizes(context.Background(), dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ten measures the ten columns: pyarrow and stoa in turn, codec by codec.
func ten(ctx context.Context, dir string) error {
	arrowFile := filepath.Join(dir, "ten.arrow")
	if err := columns.Write(ctx, *rows, arrowFile, nil); err != nil {
		return err
	}
	t, err := stoa.Open(ctx, arrowFile, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	var batches []arrow.RecordBatch
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Batch: 64 << 10}) {
		if err != nil {
			return err
		}
		b.Retain()
		batches = append(batches, b)
	}
	fmt.Printf("| %d rows, ten columns, processor time | pyarrow, ms | stoa, ms | ratio | bytes, pyarrow | stoa |\n"+
		"|---|---|---|---|---|---|\n", *rows)
	for _, codec := range codecs {
		var p peer
		if err := ask(&p, "ten", arrowFile, dir, codec, fmt.Sprint(*rounds)); err != nil {
			return err
		}
		place := filepath.Join(dir, "stoa."+codec+".parquet")
		wrote, err := least(func() error { return write(ctx, place, t.Schema(), batches, codec) })
		if err != nil {
			return err
		}
		info, err := os.Stat(place)
		if err != nil {
			return err
		}
		line := func(what string, theirs float64, ours time.Duration, more string) {
			fmt.Printf("| %s, %s | %.1f | %.1f | %.2f× | %s |\n", what, codec, theirs*1e3, ours.Seconds()*1e3,
				theirs/ours.Seconds(), more)
		}
		line("write", p.Write, wrote, fmt.Sprintf("%d | %d", p.Bytes, info.Size()))
		for _, file := range []string{place, filepath.Join(dir, "pyarrow."+codec+".parquet")} {
			what := map[bool]string{true: "our file", false: "pyarrow's file"}[file == place]
			took, err := least(func() error { return scan(ctx, file, p.Sum) })
			if err != nil {
				return err
			}
			line("scan of "+what, p.Scan, took, " | ")
			if file != place {
				line("scan of it, against DuckDB's Arrow export", p.Duck, took, " | ")
			}
			where := fmt.Sprintf("key >= %d and key < %d", p.Lo, p.Hi)
			if took, err = least(func() error { return filter(ctx, file, where, int64(*rows/1000)) }); err != nil {
				return err
			}
			line("0.1 % by sorted key, "+what, p.Where, took, " | ")
		}
	}
	return nil
}

// lists measures a column of lists that pyarrow wrote: scans, and levels per second.
func lists(ctx context.Context, dir string) error {
	var p peer
	if err := ask(&p, "lists", dir, fmt.Sprint(*rows/2), fmt.Sprint(*rounds)); err != nil {
		return err
	}
	took, err := least(func() error {
		return scanOf(ctx, filepath.Join(dir, "lists.parquet"), p.Sum, func(a arrow.Array) []int64 {
			l := a.(*array.List)
			from, to := l.Offsets()[0], l.Offsets()[l.Len()]
			return l.ListValues().(*array.Int64).Int64Values()[from:to]
		})
	})
	if err != nil {
		return err
	}
	for name, theirs := range map[string]float64{"pyarrow": p.Scan, "DuckDB": p.Duck} {
		fmt.Printf("lists of int64, %d rows, %d items, Snappy: %s %.1f ms, stoa %.1f, %.2f×; %.0f M levels/s\n", p.Rows,
			p.Items, name, theirs*1e3, took.Seconds()*1e3, theirs/took.Seconds(), 2*float64(p.Items)/took.Seconds()/1e6)
	}
	return nil
}

// least returns the least CPU time of some rounds.
func least(f func() error) (best time.Duration, err error) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for i := range *rounds {
		before := used()
		if err := f(); err != nil {
			return 0, err
		}
		if took := used() - before; i == 0 || took < best {
			best = took
		}
	}
	return best, nil
}

func ask(out any, args ...string) error {
	cmd := exec.Command(*python, append([]string{"peer.py"}, args...)...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("peer.py %s: %w", args[0], err)
	}
	if s, ok := out.(*string); ok {
		*s = string(b)
		return nil
	}
	return json.Unmarshal(b, out)
}

func write(ctx context.Context, place string, sc *arrow.Schema, batches []arrow.RecordBatch, codec string) error {
	w, err := stoa.Create(ctx, place, sc, stoa.CreateOptions{NoCheck: true,
		Opts: map[string]string{"compression": codec}})
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			return err
		}
	}
	_, err = w.Close(ctx)
	return err
}

// scan reads all columns into Arrow and compares the sum of the keys with the peer's.
func scan(ctx context.Context, file string, want uint64) error {
	return scanOf(ctx, file, want, func(a arrow.Array) []int64 { return a.(*array.Int64).Int64Values() })
}

// scanOf does so for the values of the first column.
func scanOf(ctx context.Context, file string, want uint64, values func(arrow.Array) []int64) error {
	t, err := stoa.Open(ctx, file, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	sum := uint64(0)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
		for _, x := range values(b.Column(0)) {
			sum += uint64(x)
		}
	}
	if sum != want {
		return fmt.Errorf("%s: the first column's sum is %d, want %d", file, sum, want)
	}
	return nil
}

func filter(ctx context.Context, file, where string, want int64) error {
	t, err := stoa.Open(ctx, file, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	e, err := pred.Parse(where)
	if err != nil {
		return err
	}
	n := int64(0)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Filter: e}) {
		if err != nil {
			return err
		}
		n += b.NumRows()
	}
	if n != want {
		return fmt.Errorf("%s: %d rows pass, want %d", file, n, want)
	}
	return nil
}

// sizes writes tables of several shapes with the defaults of both.
func sizes(ctx context.Context, dir string) error {
	var names string
	if err := ask(&names, "shapes", dir, fmt.Sprint(*shapes)); err != nil {
		return err
	}
	fmt.Printf("\n| %d rows: stoa's bytes, and as a part of pyarrow's | none | Snappy | zstd |\n|---|---|---|---|\n",
		*shapes)
	for i, name := range strings.Split(strings.TrimSpace(names), "\n") {
		fmt.Printf("| %s |", name)
		t, err := stoa.Open(ctx, filepath.Join(dir, fmt.Sprint(i, ".arrow")), stoa.OpenOptions{})
		if err != nil {
			return err
		}
		for _, codec := range codecs {
			ours := filepath.Join(dir, "ours.parquet")
			if _, err := stoa.Convert(ctx, t, stoa.ScanSpec{}, ours,
				stoa.CreateOptions{Opts: map[string]string{"compression": codec}}); err != nil {
				return err
			}
			a, err := os.Stat(ours)
			if err != nil {
				return err
			}
			b, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%d.%s.pyarrow.parquet", i, codec)))
			if err != nil {
				return err
			}
			os.Remove(ours)
			fmt.Printf(" %d, %.2f |", a.Size(), float64(a.Size())/float64(b.Size()))
		}
		fmt.Println()
		t.Close()
	}
	return nil
}
