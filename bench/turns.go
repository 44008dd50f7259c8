package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// run measures something once, in seconds.
type run func() (float64, error)

// figure is what many runs of one thing came to.
type figure struct {
	seconds float64 // the least
	settled bool    // the three fastest runs are within 5 % of each other
}

const (
	fewest = 5    // runs of each thing
	within = 0.05 // of the fastest run
)

// settle measures several things in turn, so that what else the machine does meets all of them, until each has settled
// or has had its number of rounds.
func settle(names []string, runs map[string]run) (map[string]figure, error) {
	took := map[string][]float64{}
	out := map[string]figure{}
	for round := range *rounds {
		quiet := round >= fewest-1
		for _, n := range names {
			do := runs[n]
			if do == nil {
				return nil, fmt.Errorf("nothing measures %q", n)
			}
			s, err := do()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n, err)
			}
			took[n] = append(took[n], s)
			slices.Sort(took[n])
			f := figure{seconds: took[n][0]}
			f.settled = quiet && took[n][2] <= took[n][0]*(1+within)
			out[n] = f
			quiet = quiet && f.settled
		}
		if quiet {
			break
		}
	}
	return out, nil
}

// timed measures f by a clock; it does its work n times.
func timed(clock func() time.Duration, n int, f func() error) run {
	return func() (float64, error) {
		runtime.GC()
		begin := clock()
		err := f()
		return (clock() - begin).Seconds() / float64(n), err
	}
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

// limit measures what no reader can do without: to read the stored bytes into one buffer that stays in the cache, and
// to write as many bytes as the values take, to another one.
func limit(stored []string, decoded int64) run {
	in, out := make([]byte, 256<<10), make([]byte, 1<<20)
	return timed(processor, 1, func() error {
		for _, name := range stored {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			for err == nil {
				_, err = f.Read(in)
			}
			f.Close()
			if err != io.EOF {
				return err
			}
		}
		for left := decoded; left > 0; left -= int64(len(in)) {
			copy(out[left%4*int64(len(in)):], in[:min(left, int64(len(in)))])
		}
		return nil
	})
}

// filesBelow returns the files of a table.
func filesBelow(at string, wanted func(name string) bool) (out []string, err error) {
	err = filepath.WalkDir(at, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (wanted == nil || wanted(d.Name())) {
			out = append(out, path)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has none of the files that are read", at)
	}
	return out, err
}

// machine is what else a reader of the figures has to know.
type machine struct {
	load string  // of one, five and fifteen minutes
	copy float64 // bytes a second that one thread copies from and to memory
}

// look returns what the machine is like now.
func look() machine {
	var m machine
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	from, to := make([]byte, 64<<20), make([]byte, 64<<20)
	for range 7 {
		begin := time.Now()
		copy(to, from)
		m.copy = max(m.copy, float64(len(to))/time.Since(begin).Seconds())
	}
	return m
}

func (m machine) String() string {
	return fmt.Sprintf("load %s; one thread copies %.1f GB/s", m.load, m.copy/1e9)
}

// serve offers what this process can measure to another one: a line of JSON with the names, and then the seconds of
// each run that it asks for by name.
func serve(runs map[string]run, in io.Reader, out io.Writer) error {
	offers := map[string]offer{}
	for name := range runs {
		offers[name] = offer{}
	}
	if err := json.NewEncoder(out).Encode(offers); err != nil {
		return err
	}
	var name string
	for d := json.NewDecoder(in); ; {
		if err := d.Decode(&name); err != nil {
			return nil // whoever asked has gone
		}
		do := runs[name]
		if do == nil {
			return fmt.Errorf("nothing measures %q", name)
		}
		s, err := do()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := fmt.Fprintln(out, s); err != nil {
			return err
		}
	}
}
