// Command bench measures stoa against its peers on the same rows, in one run, and prints one table of ratios.
//
// All read and write the same ten columns (package columns). Both sides decode every column, to Arrow memory or
// to the Java peer's own form, on one thread. The measure is the CPU time (user and kernel) of the whole process.
// stoa and its peers run in turn until the three fastest runs of each are within 5 % of each other; where they never
// are, no ratio is printed. Process start and the first opening are excluded. The checksums of every column's values
// must be equal on both sides, or the run fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"stoa"
	"stoa/bench/columns"
)

const everything = "scans,unshuffle,where,lookups,write,threads,trevni,carbon"

var (
	nRows  = flag.Int("rows", 2_000_000, "rows")
	python = flag.String("python", "python3", "a Python with the packages of requirements.txt")
	dir    = flag.String("data", "data", "folder of the data; made anew if it is not there")
	only   = flag.Bool("prepare", false, "only write the data")
	alone  = flag.Bool("serve", false, "measure what is asked for on standard input")
	old    = flag.String("compare", "", "another build of this program, to measure this one against")
	rounds = flag.Int("rounds", 40, "largest number of runs of each thing")
	parts  = flag.String("parts", everything, "what is measured, in this order")
	lookup = flag.String("lookup", "", "the program of ./lookup; empty: parquet-go is left out")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	if err := execute(context.Background()); err != nil {
		log.Fatal("bench: ", err)
	}
}

// part is a part of the table.
type part struct {
	name  string
	own   func(*bench) error // adds what stoa does to b.runs
	peers func(*bench) error // adds what its peers do, and compares checksums
	lines func() [][]line    // what is measured together, in turn
}

var all = []part{
	{"scans", (*bench).ownScans, (*bench).peerScans, scanLines},
	{"unshuffle", (*bench).ownUnshuffle, (*bench).peerUnshuffle, unshuffleLines},
	{"where", (*bench).ownWhere, (*bench).peerWhere, whereLines},
	{"lookups", (*bench).ownLookups, (*bench).peerLookups, lookupLines},
	{"write", (*bench).ownWrite, (*bench).peerWrite, writeLines},
	{"threads", (*bench).ownThreads, nil, threadLines},
	{"trevni", (*bench).ownTrevni, (*bench).peerTrevni, trevniLines},
	{"carbon", (*bench).ownCarbon, (*bench).peerCarbon, carbonLines},
}

// line is a row of the table: two names of runs, and what the ratio should be.
type line struct{ what, against, ours, theirs, limit, floor, aim string }

func execute(ctx context.Context) error {
	folder := filepath.Join(*dir, fmt.Sprint(*nRows))
	if *old != "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return compare(*old, self)
	}
	if !*alone {
		if err := prepare(ctx, folder); err != nil || *only {
			return err
		}
	}
	tmp, err := tempDir()
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, folder: folder, tmp: tmp, keys: randomKeys(10_000), runs: map[string]run{}}
	defer b.end()
	b.formula()
	runtime.GOMAXPROCS(1)
	if *alone {
		for _, p := range all {
			if wants(p.name) {
				if err := p.own(b); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
		}
		return serve(b.runs, os.Stdin, os.Stdout)
	}
	return b.table()
}

// table measures and prints.
func (b *bench) table() error {
	before := look()
	fmt.Printf("%d rows × 10 columns, seconds of the processor, one thread; before: %v\n\n", *nRows, before)
	fmt.Printf("| what | against | stoa | peer | ratio | floor | aim | limit |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range all {
		if !wants(p.name) {
			continue
		}
		if err := p.own(b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if p.peers != nil {
			if err := p.peers(b); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		for _, together := range p.lines() {
			if err := b.measure(together); err != nil {
				return err
			}
		}
	}
	after := look()
	fmt.Printf("\nafter: %v\n", after)
	if after.copy < 0.9*before.copy || before.copy < 0.9*after.copy {
		fmt.Println("Memory was not equally fast before and after: others use it, and the figures do not count.")
	}
	return nil
}

// measure measures some lines in turn, and prints them.
func (b *bench) measure(lines []line) error {
	var names []string
	for _, l := range lines {
		for _, n := range []string{l.ours, l.theirs, l.limit} {
			if n != "" && b.runs[n] != nil && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	figures, err := settle(names, b.runs)
	if err != nil {
		return err
	}
	for _, l := range lines {
		ours, theirs := figures[l.ours], figures[l.theirs]
		if b.runs[l.theirs] == nil && *lookup == "" && strings.HasPrefix(l.theirs, "parquet-go") {
			continue
		}
		ratio := fmt.Sprintf("%.2f×", theirs.seconds/ours.seconds)
		if !ours.settled || !theirs.settled {
			ratio = "busy, not published"
		}
		least := ""
		if l.limit != "" {
			least = unit(figures[l.limit].seconds)
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", l.what, l.against, unit(ours.seconds),
			unit(theirs.seconds), ratio, l.floor, l.aim, least)
	}
	return nil
}

func unit(s float64) string {
	if s < 0.001 {
		return fmt.Sprintf("%.1f µs", s*1e6)
	}
	return fmt.Sprintf("%.1f ms", s*1e3)
}

// bench is one run.
type bench struct {
	ctx    context.Context
	folder string // of the data
	tmp    string // of what is written
	keys   []int64
	sums   map[string]sum // of all rows, by the formula
	runs   map[string]run // what can be measured, by name
	open   []*stoa.Table
	peers  []*peer
	python *peer
}

func (b *bench) end() {
	for _, t := range b.open {
		t.Close()
	}
	for _, p := range b.peers {
		p.end()
	}
	os.RemoveAll(b.tmp)
}

// opened opens one of the data's tables for the rest of the run.
func (b *bench) opened(name string) (*stoa.Table, error) {
	t, err := stoa.Open(b.ctx, filepath.Join(b.folder, name), stoa.OpenOptions{})
	if err == nil {
		b.open = append(b.open, t)
	}
	return t, err
}

// start starts a peer; what it offers is named "NAME WHAT".
func (b *bench) start(name string, env []string, command string, args ...string) (*peer, error) {
	p, err := startPeer(name, env, command, args...)
	if err != nil {
		return nil, err
	}
	b.peers = append(b.peers, p)
	for what := range p.offers {
		b.runs[name+" "+what] = func() (float64, error) { return p.measure(what) }
	}
	return p, nil
}

// inPython starts pyarrow, DuckDB, polars and bitshuffle.
func (b *bench) inPython() (*peer, error) {
	if b.python != nil {
		return b.python, nil
	}
	var lines []string
	for _, k := range b.keys {
		lines = append(lines, fmt.Sprint(k))
	}
	keyFile := filepath.Join(b.tmp, "keys.txt")
	if err := os.WriteFile(keyFile, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		return nil, err
	}
	low, high := wanted()
	p, err := b.start("python", []string{"OMP_NUM_THREADS=1", "POLARS_MAX_THREADS=1"}, *python, "peer.py", "measure",
		b.folder, fmt.Sprint(low), fmt.Sprint(high), keyFile, *parts)
	b.python = p
	return p, err
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
func prepareFiles(ctx context.Context, folder string) (err error) {
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
		defer func() { err = errors.Join(err, w.Abort(ctx)) }()
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
