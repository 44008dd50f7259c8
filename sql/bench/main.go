// Command bench compares queries over CFile sets, read by stoa, with the same over Parquet (Snappy), read by DuckDB: in
// one process, in turn, the least processor time and the least time by the clock of so many runs.
package main

import (
	"context"
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

func main() {
	scale := flag.String("scale", "1", "scale of TPC-H")
	dir := flag.String("dir", "data", "where the tables are kept")
	runs := flag.Int("runs", 3, "runs of each query")
	flag.Parse()
	if err := bench(*scale, *dir, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(scale, dir string, runs int) error {
	dir = filepath.Join(dir, "sf"+scale)
	queries, err := prepare(scale, dir)
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
		fmt.Printf("\nTPC-H, scale %s, %d threads: processor seconds (by the clock)\n\n", scale, threads)
		fmt.Printf("| query | CFile by stoa | Parquet by DuckDB | times |\n|---|---:|---:|---:|\n")
		sum := 0.0
		for i, q := range queries {
			a, b := least(), least()
			for range runs {
				if err := a.run(ours, q); err != nil {
					return fmt.Errorf("query %d: %w", i+1, err)
				}
				if err := b.run(theirs, q); err != nil {
					return fmt.Errorf("query %d: %w", i+1, err)
				}
			}
			sum += math.Log(b.cpu / a.cpu)
			fmt.Printf("| %d | %.3f (%.3f) | %.3f (%.3f) | %.2f |\n", i+1, a.cpu, a.wall, b.cpu, b.wall, b.cpu/a.cpu)
		}
		fmt.Printf("| geometric mean | | | %.2f |\n", math.Exp(sum/float64(len(queries))))
		ours.Close()
		theirs.Close()
	}
	return nil
}

// prepare makes the tables, unless they are there, and gives the queries.
func prepare(scale, dir string) (queries []string, err error) {
	var out strings.Builder
	ctx := context.Background()
	s, err := session.Open(ctx, verbs.NewApp(strings.NewReader(""), &out, os.Stderr),
		&verbs.SQLFlags{Threads: 2, DamageFlags: verbs.DamageFlags{Damaged: "fail"}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := os.Stat(dir + "/whole"); err != nil {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
		script := "CALL dbgen(sf = " + scale + ");"
		for _, t := range tables {
			script += "COPY " + t + " TO '" + dir + "/" + t + ".parquet' (FORMAT parquet, COMPRESSION snappy);"
			script += "COPY " + t + " TO '" + dir + "/" + t + ".cfiles/' (FORMAT cfile);"
		}
		if err := s.Script(ctx, script); err != nil {
			return nil, err
		}
		if err := os.WriteFile(dir+"/whole", nil, 0o666); err != nil {
			return nil, err
		}
	}
	return s.Texts(ctx, "SELECT query FROM tpch_queries() ORDER BY query_nr")
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

// measured is the least that was measured, in seconds.
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

// processor is the processor time of the process so far, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
