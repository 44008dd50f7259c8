// Command bench compares queries over CFile sets, read by stoa, with the same queries over Parquet (Snappy), read by
// DuckDB: in one process, in turn, the least CPU time and the least elapsed time of some runs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stoa/cmd/stoa/verbs"
	"stoa/sql/session"
)

var tables = []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"}

// plain are queries of one kind each, run before those of TPC-H.
var plain = []struct{ name, text string }{
	{"count, two sums", "SELECT count(*), sum(l_quantity), sum(l_orderkey) FROM lineitem"},
	{"group by strings", "SELECT l_shipmode, count(*), sum(l_extendedprice), avg(l_discount) FROM lineitem GROUP BY 1"},
	{"filter of 0.1 %", "SELECT * FROM lineitem WHERE l_orderkey BETWEEN 3000 AND 3600"},
	{"distinct strings", "SELECT count(DISTINCT l_comment) FROM lineitem"},
	{"join", "SELECT count(*), sum(o_totalprice) FROM lineitem JOIN orders ON l_orderkey = o_orderkey"},
}

func main() {
	dir := flag.String("tpch", "", "what interop/sql/tpch.sh made")
	runs := flag.Int("runs", 3, "runs of each query")
	flag.Parse()
	if err := bench(*dir, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(dir string, runs int) error {
	queries, err := prepare(dir)
	if err != nil {
		return err
	}
	for _, threads := range []int{1, 2} {
		ours, err := views(threads, func(t string) string { return "'" + dir + "/" + t + ".cfiles'" })
		if err != nil {
			return err
		}
		theirs, err := views(threads, func(t string) string { return "read_parquet('" + dir + "/" + t + ".parquet')" })
		if err != nil {
			return err
		}
		fmt.Printf("\n%d threads: processor seconds (by the clock)\n\n", threads)
		fmt.Printf("| query | CFile by stoa | Parquet by DuckDB | times |\n|---|---:|---:|---:|\n")
		for _, q := range plain {
			if _, err := compare(ours, theirs, q.name, q.text, runs); err != nil {
				return err
			}
		}
		sum := 0.0
		for i, q := range queries {
			times, err := compare(ours, theirs, fmt.Sprintf("TPC-H %d", i+1), q, runs)
			if err != nil {
				return err
			}
			sum += math.Log(times)
		}
		fmt.Printf("| geometric mean of TPC-H | | | %.2f |\n", math.Exp(sum/float64(len(queries))))
		ours.Close()
		theirs.Close()
	}
	return nil
}

// compare runs a query in turn on both, prints the ratio of CPU times, and returns it.
func compare(ours, theirs *session.Session, name, query string, runs int) (float64, error) {
	a, b := least(), least()
	for range runs {
		if err := a.run(ours, query); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if err := b.run(theirs, query); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Printf("| %s | %.3f (%.3f) | %.3f (%.3f) | %.2f |\n", name, a.cpu, a.wall, b.cpu, b.wall, b.cpu/a.cpu)
	return b.cpu / a.cpu, nil
}

// prepare makes the CFile sets, unless they exist, and returns the queries.
func prepare(dir string) (queries []string, err error) {
	ctx := context.Background()
	for _, t := range tables {
		out := filepath.Join(dir, t+".cfiles")
		if _, err := os.Stat(out); err == nil {
			continue
		}
		args := []string{"convert", filepath.Join(dir, t+".parquet"), "-o", out + "/", "--to", "cfile"}
		status, err := verbs.Run(ctx, args, strings.NewReader(""), io.Discard, os.Stderr)
		if status != 0 {
			return nil, err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "queries.json"))
	if err != nil {
		return nil, err
	}
	return queries, json.Unmarshal(text, &queries)
}

func views(threads int, of func(table string) string) (*session.Session, error) {
	s, err := session.Open(context.Background(), verbs.NewApp(strings.NewReader(""), io.Discard, os.Stderr),
		&verbs.SQLFlags{Threads: threads, DamageFlags: verbs.DamageFlags{Damaged: "fail"}})
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if err := s.Statement(context.Background(), "CREATE VIEW "+t+" AS FROM "+of(t)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// measured is the least time of some runs, in seconds.
type measured struct{ cpu, wall float64 }

func least() *measured { return &measured{math.Inf(1), math.Inf(1)} }

func (m *measured) run(s *session.Session, query string) error {
	begin, cpu := time.Now(), processor()
	if err := s.Statement(context.Background(), strings.TrimRight(strings.TrimSpace(query), ";")); err != nil {
		return err
	}
	m.cpu, m.wall = min(m.cpu, processor()-cpu), min(m.wall, time.Since(begin).Seconds())
	return nil
}

// processor is the CPU time of the process so far, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
