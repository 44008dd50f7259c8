// Command lookup measures how parquet-go finds rows by key. lookup FILE KEYS prints, as JSON, what it measures, with
// the checksums of all columns of these rows, as in ../sum.go. Then it reads names from standard input, a JSON string a
// line, and prints the CPU seconds per look-up of one pass over all keys: "lookup" in a file that has been searched
// before, "lookup, the first time" in one that was just opened.
//
// The key is the first column, in ascending order. For each key the column index yields the page, the page the row,
// and the row is read with all columns.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"runtime"
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
	text, err := os.ReadFile(keys)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(text))
	pf, groups, err := open(file)
	if err != nil {
		return err
	}
	sums := make([]sum, len(pf.Schema().Columns()))
	if err := pass(groups, lines, func(row parquet.Row) {
		for _, v := range row {
			sums[v.Column()].add(v)
		}
	}); err != nil {
		return err
	}
	byName := map[string]sum{}
	for i, path := range pf.Schema().Columns() {
		byName[path[0]] = sums[i]
	}
	of := map[string]any{"Sums": byName}
	offers := map[string]any{"lookup": of, "lookup, the first time": of}
	if err := json.NewEncoder(os.Stdout).Encode(offers); err != nil {
		return err
	}
	var name string
	for in := json.NewDecoder(os.Stdin); in.Decode(&name) == nil; {
		used := groups
		if name != "lookup" {
			if _, used, err = open(file); err != nil {
				return err
			}
		}
		runtime.GC()
		begin := processor()
		if err := pass(used, lines, nil); err != nil {
			return err
		}
		fmt.Println((processor() - begin).Seconds() / float64(len(lines)))
	}
	return nil
}

// open opens a file, for as long as the program runs.
func open(file string) (*parquet.File, []group, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, nil, err
	}
	groups, err := openGroups(pf)
	return pf, groups, err
}

// pass finds the rows of all keys.
func pass(groups []group, keys []string, see func(parquet.Row)) error {
	for _, l := range keys {
		k, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			return err
		}
		if err := find(groups, k, see); err != nil {
			return fmt.Errorf("key %d: %v", k, err)
		}
	}
	return nil
}

// openGroups opens the row groups of a file, and the indexes of their first columns.
func openGroups(pf *parquet.File) (groups []group, err error) {
	for _, g := range pf.RowGroups() {
		c := g.ColumnChunks()[0]
		x := group{key: c, rows: g.Rows(), pages: c.Pages()}
		if x.index, err = c.ColumnIndex(); err != nil {
			return nil, err
		}
		if x.at, err = c.OffsetIndex(); err != nil {
			return nil, err
		}
		groups = append(groups, x)
	}
	return groups, nil
}

// sum is the checksum of ../sum.go.
type sum struct {
	Rows, Nulls int64
	Total       uint64
}

func (s *sum) add(v parquet.Value) {
	s.Rows++
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			s.Total++
		}
	case parquet.Int32:
		s.Total += uint64(int64(v.Int32()))
	case parquet.Int64:
		s.Total += uint64(v.Int64())
	case parquet.Double:
		s.Total += math.Float64bits(v.Double())
	case parquet.FixedLenByteArray: // the decimal, big-endian
		x := uint64(int64(int8(v.ByteArray()[0])))
		for _, c := range v.ByteArray()[1:] {
			x = x<<8 | uint64(c)
		}
		s.Total += x
	case parquet.ByteArray:
		s.Total += uint64(len(v.ByteArray()))
		for _, c := range v.ByteArray() {
			s.Total += uint64(c)
		}
	default:
		s.Nulls++
	}
}

// find reads the row of a key, with all columns, and passes it to see, if that is not nil.
func find(groups []group, k int64, see func(parquet.Row)) error {
	want := parquet.Int64Value(k)
	row := make([]parquet.Row, 1)
	for _, g := range groups {
		n := g.index.NumPages()
		if k < g.index.MinValue(0).Int64() || k > g.index.MaxValue(n-1).Int64() {
			continue
		}
		i := parquet.Find(g.index, want,
			func(a, b parquet.Value) int { return int(min(1, max(-1, a.Int64()-b.Int64()))) })
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
			if see != nil {
				see(row[0])
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
