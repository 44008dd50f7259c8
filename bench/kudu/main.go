// Command kudu measures stoa against Kudu's own offline tools on the same directory, in one run.
//
// See ../README.md for what is counted on either side. The checksums of all columns that stoa read must equal the
// formula's, or the run fails.
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
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"stoa"
)

var (
	rows    = flag.Int("rows", 1_500_000, "rows")
	dir     = flag.String("dir", "", "the tablet server's folder, with wal/ and data/")
	home    = flag.String("kudu", "", "folder of Kudu's programs")
	child   = flag.String("scan", "", "scan this table in this process and print a JSON line")
	threads = flag.Int("threads", 1, "of a scan")
	ordered = flag.Bool("ordered", false, "in the order of the key")
	check   = flag.Bool("check", false, "sum the values up instead of measuring")
	profile = flag.String("cpuprofile", "", "where a profile of the scans goes")
	times   = flag.Int("times", 10, "scans")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	err := error(nil)
	if *child != "" {
		err = scanHere(context.Background())
	} else {
		err = compare()
	}
	if err != nil {
		log.Fatal("bench: ", err)
	}
}

// measured is what one side needed for a table.
type measured struct {
	First, Best       float64 // seconds: a process's first scan, and the best of several
	FirstCPU, BestCPU float64 // of all threads
	Memory            int64   // peak, in bytes
	Sums              []sum   `json:",omitempty"`
}

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// scanHere opens the table and reads all of it, several times. The first time includes opening.
func scanHere(ctx context.Context) error {
	runtime.GOMAXPROCS(*threads)
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	var m measured
	start, used := time.Now(), cpu()
	t, err := stoa.Open(ctx, *dir+"#"+*child, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	spec := stoa.ScanSpec{Unordered: !*ordered, Parallel: *threads, Alloc: stoa.NewPool()}
	for i := range *times {
		if i > 0 {
			start, used = time.Now(), cpu()
		}
		n := int64(0)
		for b, err := range t.Scan(ctx, spec) {
			if err != nil {
				return err
			}
			n += b.NumRows()
			if *check {
				m.Sums = append(m.Sums, make([]sum, int(b.NumCols())-len(m.Sums))...)
				for c, a := range b.Columns() {
					if err := m.Sums[c].add(a); err != nil {
						return err
					}
				}
			}
		}
		took, work := time.Since(start).Seconds(), cpu()-used
		if i == 0 {
			m.First, m.FirstCPU = took, work
		}
		if i == 0 || took < m.Best {
			m.Best = took
		}
		if i == 0 || work < m.BestCPU {
			m.BestCPU = work
		}
		if n != int64(*rows) {
			return fmt.Errorf("%d rows came", n)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// ours runs scanHere in a process of its own.
func ours(table string, args ...string) (m measured, err error) {
	cmd := exec.Command(os.Args[0], append([]string{"-rows", fmt.Sprint(*rows), "-dir", *dir, "-scan", table},
		args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, err
	}
	m.Memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	return m, nil
}

// kudu runs Kudu's command on the directory, discards its output, and returns its log.
func kudu(args ...string) (stderr string, wall, used float64, memory int64, err error) {
	cmd := exec.Command(filepath.Join(*home, "bin", "kudu"),
		append(args, "--fs_wal_dir="+*dir+"/wal", "--fs_data_dirs="+*dir+"/data")...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+*home+"/lib", "SASL_PATH="+*home+"/lib/sasl2")
	var b strings.Builder
	cmd.Stderr = &b
	start := time.Now()
	err = cmd.Run()
	wall = time.Since(start).Seconds()
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if err != nil {
		err = fmt.Errorf("kudu %s: %w: %.2000s", strings.Join(args, " "), err, b.String())
	}
	return b.String(), wall, float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, u.Maxrss << 10, err
}

// tabletScan runs `kudu perf tablet_scan` on all tablets, one after another. The command times its scans itself.
func tabletScan(tablets []string, ordered bool) (m measured, err error) {
	seen := 0
	for _, t := range tablets {
		text, _, _, memory, err := kudu("perf", "tablet_scan", t, fmt.Sprint("--num_iters=", *times),
			fmt.Sprint("--ordered_scan=", ordered))
		if err != nil {
			return m, err
		}
		m.Memory = max(m.Memory, memory)
		best, bestCPU := 0.0, 0.0
		for i := range *times {
			var real, user, sys float64
			var n int
			_, after, ok := strings.Cut(text, fmt.Sprintf("scanning tablet (iter %d): ", i))
			if _, err := fmt.Sscanf(after, "real %fs\tuser %fs\tsys %fs", &real, &user, &sys); !ok || err != nil {
				return m, fmt.Errorf("kudu perf tablet_scan says %.500s", text)
			}
			if i == 0 {
				m.First, m.FirstCPU = m.First+real, m.FirstCPU+user+sys
				before, _, _ := strings.Cut(text, "Time spent scanning tablet (iter 0)")
				fmt.Sscanf(before[strings.LastIndex(before, "] scanned ")+2:], "scanned %d rows", &n)
				seen += n
			}
			if i == 0 || real < best {
				best = real
			}
			if i == 0 || user+sys < bestCPU {
				bestCPU = user + sys
			}
		}
		m.Best, m.BestCPU = m.Best+best, m.BestCPU+bestCPU
	}
	if seen != *rows {
		return m, fmt.Errorf("kudu perf tablet_scan read %d rows", seen)
	}
	return m, nil
}

// dump runs `kudu local_replica dump rowset` on all tablets. The time to start and to open the directory, measured
// with the same command for no rows, is subtracted.
func dump(tablets []string) (m measured, err error) {
	for _, t := range tablets {
		_, none, noneCPU, _, err := kudu("local_replica", "dump", "rowset", t, "--nrows=0", "--dump_metadata=false")
		if err != nil {
			return m, err
		}
		_, wall, used, memory, err := kudu("local_replica", "dump", "rowset", t, "--dump_metadata=false")
		if err != nil {
			return m, err
		}
		m.First, m.FirstCPU, m.Memory = m.First+wall-none, m.FirstCPU+used-noneCPU, max(m.Memory, memory)
	}
	m.Best, m.BestCPU = m.First, m.FirstCPU
	return m, nil
}

// tabletsOf returns the ids of a table's tablets.
func tabletsOf(table string) (ids []string, err error) {
	cmd := exec.Command(filepath.Join(*home, "bin", "kudu"), "local_replica", "list", "--list_detail",
		"--fs_wal_dir="+*dir+"/wal", "--fs_data_dirs="+*dir+"/data")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+*home+"/lib", "SASL_PATH="+*home+"/lib/sasl2")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	id := ""
	for l := range strings.SplitSeq(string(out), "\n") {
		if v, ok := strings.CutPrefix(l, "Tablet: "); ok {
			id = strings.TrimSpace(v)
		} else if strings.HasPrefix(strings.TrimSpace(l), "Table name: "+table+" ") {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("kudu local_replica list names no tablet of %s: %.500s", table, out)
	}
	return ids, nil
}

func compare() error {
	want := expected(*rows)
	fmt.Printf("%d rows, %d columns, 2 tablets, %s; every column decoded; start of processes excluded\n\n", *rows,
		len(columns), runtime.GOARCH)
	for _, table := range []string{"asc", "shuffled"} {
		got, err := ours(table, "-check", "-times", "1")
		if err != nil {
			return err
		}
		for c, s := range got.Sums {
			if len(got.Sums) != len(want) || s != want[c] {
				return fmt.Errorf("table %s, column %s: stoa read %+v, the formula says %+v", table, columns[c], s,
					want[c])
			}
		}
		tablets, err := tabletsOf(table)
		if err != nil {
			return err
		}
		if err := report(table, tablets); err != nil {
			return err
		}
	}
	return nil
}

// report measures a table and prints its lines.
func report(table string, tablets []string) error {
	text, err := dump(tablets)
	if err != nil {
		return err
	}
	fmt.Printf("table %s\n\n| | first scan | best of %d | CPU | peak memory | × tablet_scan: first | best | CPU "+
		"| × dump rowset: first | CPU |\n|---|---|---|---|---|---|---|---|---|---|\n", table, *times)
	line := func(name string, m measured, peer *measured) {
		ratios := "| | | "
		if peer != nil {
			ratios = fmt.Sprintf("%.2f | %.2f | %.2f", peer.First/m.First, peer.Best/m.Best, peer.BestCPU/m.BestCPU)
		}
		fmt.Printf("| %s | %.0f ms | %.0f ms | %.0f ms | %d MB | %s | %.0f | %.0f |\n", name, 1000*m.First,
			1000*m.Best, 1000*m.BestCPU, m.Memory>>20, ratios, text.First/m.First, text.FirstCPU/m.BestCPU)
	}
	line("kudu local_replica dump rowset", text, nil)
	for _, order := range []bool{false, true} {
		peer, err := tabletScan(tablets, order)
		if err != nil {
			return err
		}
		name := map[bool]string{false: "any order", true: "in the order of the key"}[order]
		line("kudu perf tablet_scan, "+name, peer, nil)
		for _, n := range []int{1, 2} {
			m, err := ours(table, "-threads", fmt.Sprint(n), fmt.Sprint("-ordered=", order))
			if err != nil {
				return err
			}
			line(fmt.Sprintf("stoa, %s, %d %s", name, n, map[int]string{1: "thread", 2: "threads"}[n]), m, &peer)
		}
	}
	fmt.Println()
	return nil
}
