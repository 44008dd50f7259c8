// Command lookup measures parquet-go at finding rows by key: lookup FILE KEYS prints the processor's seconds of one look-up as JSON: the best of five times
// all keys, and the first.
//
// The key is the first column and rises. For each key the column index gives the page, the page the row, and the row is read with all
// columns. The file is opened once.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parquet-go/parquet-go"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal("lookup: ", err)
	}
}

// group is an open row group.
type group struct {
	key   parquet.ColumnChunk
	index parquet.ColumnIndex
	at    parquet.OffsetIndex
	rows  parquet.Rows
	pages parquet.Pages
}

func run(file, keys string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	var groups []group
	for _, g := range pf.RowGroups() {
		c := g.ColumnChunks()[0]
		x := group{key: c, rows: g.Rows(), pages: c.Pages()}
		if x.index, err = c.ColumnIndex(); err != nil {
			return err
		}
		if x.at, err = c.OffsetIndex(); err != nil {
			return err
		}
		groups = append(groups, x)
	}
	text, err := os.ReadFile(keys)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(text))
	var best, first float64
	for i := range 5 {
		begin := processor()
		for _, l := range lines {
			k, err := strconv.ParseInt(l, 10, 64)
			if err != nil {
				return err
			}
			if err := find(groups, k); err != nil {
				return fmt.Errorf("key %d: %v", k, err)
			}
		}
		took := (processor() - begin).Seconds() / float64(len(lines))
		if i == 0 {
			best, first = took, took
		}
		best = min(best, took)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"Seconds": best, "First": first})
}

func find(groups []group, k int64) error {
	want := parquet.Int64Value(k)
	row := make([]parquet.Row, 1)
	for _, g := range groups {
		n := g.index.NumPages()
		if k < g.index.MinValue(0).Int64() || k > g.index.MaxValue(n-1).Int64() {
			continue
		}
		i := parquet.Find(g.index, want, func(a, b parquet.Value) int { return int(min(1, max(-1, a.Int64()-b.Int64()))) })
		if i >= n {
			continue
		}
		first := g.at.FirstRowIndex(i)
		if err := g.pages.SeekToRow(first); err != nil {
			return err
		}
		p, err := g.pages.ReadPage()
		if err != nil {
			return err
		}
		values := make([]parquet.Value, p.NumValues())
		m, err := p.Values().ReadValues(values)
		if err != nil && err != io.EOF {
			return err
		}
		parquet.Release(p)
		for j, v := range values[:m] {
			if v.Int64() != k {
				continue
			}
			if err := g.rows.SeekToRow(first + int64(j)); err != nil {
				return err
			}
			if got, err := g.rows.ReadRows(row); got != 1 || row[0][0].Int64() != k {
				return fmt.Errorf("%d rows: %v", got, err)
			}
			return nil
		}
	}
	return fmt.Errorf("it is not there")
}

func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
