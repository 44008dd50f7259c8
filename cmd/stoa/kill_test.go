//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/store"
)

// killed are the conversions to be killed: the output, the flags, and, if it is not the output itself, the path of its
// table. Outputs with such a path are never replaced, so there is no old output.
var killed = []struct{ out, flags, table string }{
	{"out.cfile/", "--to cfile --opt block-size=4096", ""}, {"out.cfile", "--columns id --opt block-size=512", ""},
	{"out.red", "--opt row-group-rows=5000", ""},
	{"out.trv", "--to trevni", ""}, {"out.avro.trv", "--to trevni-avro", ""}, {"out.carbondata", "", ""},
	{"out.parquet", "--opt row-group-rows=5000", ""},
	{"out.arrow", "", ""}, {"out.csv", "", ""}, {"out.jsonl", "", ""},
	{"out.kudu/", "--to kudu-fs --opt table=t --opt key=id --opt time=1700000000000 --opt rowset-size=99kB", "tserver"},
	{"out.backup/", "--to kudu-backup --opt table=t --opt key=id --opt time=1700000000000 --opt part-rows=5000", "*/*"},
}

// TestKilled kills convert at random times between its first and its last write: the output is the complete old or new
// one, and the next run leaves no temporary files. STOA_LONG=1: 200 kills a format.
func TestKilled(t *testing.T) {
	kills := 1
	if os.Getenv("STOA_LONG") != "" {
		kills = 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	src := killSource(t)
	for _, k := range killed {
		t.Run(k.out+strings.ReplaceAll(k.flags, " ", "_"), func(t *testing.T) {
			c := &killing{t: t, r: r, dir: t.TempDir(), src: src, name: k.out, table: k.table,
				flags: strings.Fields(k.flags)}
			c.run(kills)
		})
	}
}

const killRows = 60_000

func killSource(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "src.csv")
	var b bytes.Buffer
	b.WriteString("id,name,price\n")
	for i := range killRows {
		fmt.Fprintf(&b, "%d,name %d,%g\n", i, i*7919%1000, float64(i)/8)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	arrow := strings.TrimSuffix(name, "csv") + "src.arrow"
	if st := run(context.Background(), []string{"convert", name, "-o", arrow, "-q"}, strings.NewReader(""),
		io.Discard, os.Stderr); st != 0 {
		t.Fatalf("convert: got status %d, want 0", st)
	}
	return arrow
}

type killing struct {
	t         *testing.T
	r         *rand.Rand
	dir       string
	src, name string
	table     string // the table's path in the output; "": the output itself
	flags     []string
	old, new  string        // the sums of the outputs
	writing   time.Duration // from the first write to the last
}

func (c *killing) out() string { return filepath.Join(c.dir, c.name) }

// command returns a conversion of the first limit rows.
func (c *killing) command(limit int) *exec.Cmd {
	out := c.out()
	if strings.HasSuffix(c.name, "/") {
		out += "/"
	}
	args := append([]string{"convert", c.src, "-o", out, "-q", "--force", "-n", strconv.Itoa(limit)}, c.flags...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	return cmd
}

// temps returns the temporary files next to the output.
func (c *killing) temps() (out []string) {
	entries, _ := os.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), store.TempPrefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// waitFirst waits for the command's first write, and reports whether there is one before it ends.
func (c *killing) waitFirst(done <-chan error) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		if len(c.temps()) > 0 {
			return true
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func (c *killing) finish(limit int) time.Duration {
	cmd := c.command(limit)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	ended := make(chan error, 1)
	go func() { err := cmd.Wait(); ended <- err; done <- err }()
	c.waitFirst(done)
	first := time.Now()
	if err := <-ended; err != nil {
		c.t.Fatalf("%v: %s", err, errs.String())
	}
	return time.Since(first)
}

func (c *killing) run(kills int) {
	runs := 3 // the fastest counts
	if testing.Short() {
		runs = 1
	}
	for i := range runs {
		if c.table != "" {
			os.RemoveAll(c.out())
		}
		if d := c.finish(killRows); i == 0 || d < c.writing {
			c.writing = d
		}
	}
	c.new = c.sum()
	os.RemoveAll(c.out())
	kept := filepath.Join(c.t.TempDir(), "old")
	if c.table == "" {
		c.finish(10)
		c.old = c.sum()
		c.copy(c.out(), kept)
	}
	const bins = 10
	var histogram [bins]int
	during, replaced := 0, 0
	n := 0
	for ; n < kills || during < kills*3/4 && n < 3*kills; n++ { // three quarters should hit while it writes
		os.RemoveAll(c.out())
		if c.table == "" {
			c.copy(kept, c.out())
		}
		wait := time.Duration(c.r.Int64N(int64(c.writing) + 1))
		state := c.kill(wait)
		if len(c.temps()) > 0 {
			during++
			histogram[min(bins-1, int(wait*bins/c.writing))]++
		}
		if state == c.new {
			replaced++
		}
		if c.table != "" {
			os.RemoveAll(c.out())
		}
		c.finish(10)
		if left := c.temps(); len(left) > 0 {
			c.t.Fatalf("the next run left %v, want nothing", left)
		}
	}
	c.t.Logf("%s: %d kills, %d of them between the first and the last write (%s), by tenths of that %v; %d left the "+
		"new output", c.name, n, during, c.writing.Round(time.Millisecond), histogram, replaced)
}

// kill kills a conversion after its first write and a wait, and returns the sum of the output.
func (c *killing) kill(wait time.Duration) string {
	cmd := c.command(killRows)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if c.waitFirst(done) {
		time.Sleep(wait)
		cmd.Process.Kill()
		<-done
	}
	state := c.sum()
	if state != c.old && state != c.new && c.intact() { // some outputs contain the time or a unique ID
		state = c.new
	}
	if state != c.old && state != c.new {
		c.t.Fatalf("killed %s after the first write: the output is neither the old nor the new one; %v", wait,
			c.temps())
	}
	return state
}

// intact reports whether deep verification passes the output and it has all rows.
func (c *killing) intact() bool {
	var out, errs bytes.Buffer
	if st := run(context.Background(), []string{"verify", "--deep", c.out()}, strings.NewReader(""), &out,
		&errs); st != 0 {
		return false
	}
	out.Reset()
	st := run(context.Background(), []string{"count", filepath.Join(c.out(), c.table)}, strings.NewReader(""), &out,
		&errs)
	return st == 0 && strings.TrimSpace(out.String()) == strconv.Itoa(killRows)
}

// sum returns a hash of the output; "" if there is none.
func (c *killing) sum() string {
	h := sha256.New()
	var names []string
	filepath.WalkDir(c.out(), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, p)
		}
		return nil
	})
	slices.Sort(names)
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n", strings.TrimPrefix(n, c.out()), len(b))
		h.Write(b)
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (c *killing) copy(from, to string) {
	if err := os.RemoveAll(to); err != nil {
		c.t.Fatal(err)
	}
	filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			c.t.Fatal(err)
		}
		out := to + strings.TrimPrefix(p, strings.TrimSuffix(from, "/"))
		if d.IsDir() {
			return os.MkdirAll(out, 0o755)
		}
		b, err := os.ReadFile(p)
		if err == nil {
			err = os.WriteFile(out, b, 0o644)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		return nil
	})
}
