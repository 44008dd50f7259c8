package attack

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// count checks the verb count: if it exits with 0, it prints the original number of rows.
func (c *trial) count() {
	got := c.verb("count", "count", "-f", "json")
	var n struct{ Rows int }
	if got.Status == fine && json.Unmarshal(got.Stdout, &n) == nil && n.Rows != len(c.f.ref) && !c.f.text &&
		!c.loose() {
		c.find("silent", "count ended with 0 and gave %d rows, expected %d", n.Rows, len(c.f.ref))
	}
}

// few reads the first rows and single ones.
func (c *trial) few(r *rand.Rand) {
	row, n := r.IntN(len(c.f.ref)+1), 1+r.IntN(20)
	got := c.verb("head", "head", "-n", strconv.Itoa(n), "-f", "jsonl")
	if got.Status == fine {
		c.part("head", c.f.ref[:min(n, len(c.f.ref))], linesOf(got.Stdout))
	}
	if row == len(c.f.ref) {
		return
	}
	got = c.verb("get", "get", "--row", strconv.Itoa(row), "-f", "jsonl")
	if got.Status == fine {
		c.part("get --row", c.f.ref[row:row+1], linesOf(got.Stdout))
	}
	if k := cellsOf(c.f.ref[row]); len(k) > 1 && k[0].name == "id" {
		got = c.verb("get key", "get", "--key", k[0].value, "-f", "jsonl")
		if got.Status == fine {
			var want []string // a real table may have a key twice
			for _, l := range c.f.ref {
				if cellsOf(l)[0] == k[0] {
					want = append(want, l)
				}
			}
			if !c.asCat(k[0], linesOf(got.Stdout)) {
				c.part("get --key", want, linesOf(got.Stdout))
			}
		}
	}
}

// asCat reports whether rows are the rows with this key in the output of a cat that exited with 0 and was excused: a
// key in a page without a checksum may have changed, and then two rows may have it.
func (c *trial) asCat(key cell, out []string) bool {
	var want []string
	for _, l := range c.rows {
		if cells := cellsOf(l); len(cells) > 0 && cells[0] == key {
			want = append(want, l)
		}
	}
	return c.rows != nil && c.excused && slices.Equal(want, out)
}

// changes checks that every change refuses a table that cat refuses, and that none of its bytes changes. It runs last,
// because a table that cat reads may be modified.
func (c *trial) changes() {
	if c.says("cat") == fine || c.status["cat"] == died {
		return
	}
	place := c.f.at(c.dir)
	before := c.bytes()
	for _, args := range [][]string{{"load", place, c.f.at(c.f.dir)}, {"merge-index", place},
		{"compact", place, "--major"}, {"add-column", place, "fresh", "int"},
		{"drop-column", place, "id"}, {"rename", place, "other", "--column", "id"},
		{"set-property", place, "comment=x"},
		{"truncate", place, "--yes"}, {"load", place, c.f.at(c.f.dir), "--overwrite"}, {"clean", place},
		{"delete", place, "--where", "id is not null"}} {
		got := c.a.stoa.run(append(args, "--no-progress")...)
		if c.a.seen[args[0]+" "+strconv.Itoa(got.Status)]++; got.Status == fine {
			c.find("change", "cat ended with %d, %s with 0", c.status["cat"], args[0])
		}
		if !maps.Equal(before, c.bytes()) {
			c.find("change", "cat ended with %d, %s with %d, and files have changed", c.status["cat"], args[0],
				got.Status)
			return
		}
	}
}

// bytes returns the files of the copy except locks, which remain after a change has begun.
func (c *trial) bytes() map[string]string {
	out := map[string]string{}
	names, err := filesOf(c.dir)
	for _, n := range names {
		if b, rerr := os.ReadFile(filepath.Join(c.dir, n)); rerr == nil && !strings.HasSuffix(n, ".lock") {
			out[n] = string(b)
		}
	}
	if err != nil {
		c.find("change", "the copy cannot be read: %v", err)
	}
	return out
}

// part checks that these rows are the original ones, or differ only as much as allowed.
func (c *trial) part(name string, want, out []string) {
	if c.loose() || strings.Join(want, "\n") == strings.Join(out, "\n") {
		return
	}
	if c.renamed(want, out) || c.orphaned() && len(out) == len(want) && c.foreignRows(out) == 0 {
		c.excused = true
		return
	}
	if strange := c.foreignRows(out); c.allowed() == 0 || strange > c.allowed() || len(out) != len(want) && !c.f.text {
		if n := c.deletions(); n > 0 && c.foreignRows(out) <= n {
			c.excused = true
			return
		}
		c.find("silent", "%s ended with 0, and %s", name, difference(want, out))
		return
	}
	c.excused = true
}

// ls checks the verb ls: it lists the table with the original number of rows, or reports an error.
func (c *trial) ls() {
	got := c.verb("ls", "ls", "-f", "json")
	if c.f.text || c.loose() {
		return
	}
	// both answer from what is read on opening; ls of a directory also reports files beside the table
	open := c.verb("schema", "schema")
	if file := len(c.f.files) == 1; got.Status == fine && open.Status == damage ||
		got.Status == damage && open.Status == fine && file {
		c.find("verdict", "ls ended with %d, schema with %d: %s", got.Status, open.Status,
			short(append(got.Stdout, open.Stderr...)))
	}
	if got.Status != fine {
		return
	}
	var list []struct {
		Name string
		Rows *int
	}
	if err := json.Unmarshal(got.Stdout, &list); err != nil {
		c.find("word", "ls ended with 0 and printed no JSON: %v", err)
		return
	}
	if len(list) == 0 {
		c.find("conservation", "ls ended with 0 and listed nothing")
	}
	if len(list) == 1 && list[0].Rows != nil && *list[0].Rows != len(c.f.ref) && !c.f.changed {
		c.find("silent", "ls ended with 0 and gave %d rows, expected %d", *list[0].Rows, len(c.f.ref))
	}
}

// converts converts the table to another format, alone and with convert --all.
func (c *trial) converts(r *rand.Rand) {
	to := []string{"jsonl", "arrow", "parquet"}[r.IntN(3)]
	out := filepath.Join(c.dir, "..", "out."+to)
	os.Remove(out)
	got := c.verb("convert", "convert", "-o", out)
	if got.Status == fine {
		c.readBack("convert to "+to, out)
	} else if _, err := os.Stat(out); err == nil && got.Status != damage {
		// parts that are missing are reported, and the others written
		c.find("output", "convert ended with %d and left an output", got.Status)
	}
	os.Remove(out)
	if got.Status == cannot && c.a.verb(c.f, c.f.dir, "convert", "-o", out).Status == cannot {
		delete(c.status, "convert") // the target does not accept the intact table either
	}
	os.Remove(out)
	if !c.f.able["convert all"] {
		return
	}
	dir := filepath.Join(c.dir, "..", "all")
	defer os.RemoveAll(dir)
	got = c.verb("convert all", "convert", "--all", "-o", dir, "--to", "arrow")
	if got.Status != fine {
		return
	}
	files, _ := filesOf(dir) // files of a partitioned table are in subdirectories
	files = slices.DeleteFunc(files, func(name string) bool { return !strings.HasSuffix(name, ".arrow") })
	if len(files) == 0 {
		c.find("conservation", "convert --all ended with 0 and wrote nothing")
	}
	if len(files) == 1 {
		c.readBack("convert --all", filepath.Join(dir, files[0]))
	}
}

func (c *trial) readBack(name, file string) {
	if strings.HasSuffix(file, ".jsonl") {
		b, _ := os.ReadFile(file)
		c.whole(name, linesOf(b))
		return
	}
	got := c.a.stoa.run("cat", file, "-f", "jsonl")
	if c.refusesName(got) {
		return
	}
	// the string was not UTF-8 in the original either, as cat reported
	altered := got.Status == damage && c.altered["cat"] && bytes.Contains(got.Stderr, []byte("output.values.utf8"))
	if got.Status != fine && !altered {
		c.find("output", "%s ended with 0, and its output cannot be read: %s", name, short(got.Stderr))
		return
	}
	c.whole(name, linesOf(got.Stdout))
}

// diff checks the verb diff, which compares the copy with the original.
func (c *trial) diff() {
	got := c.a.stoa.run(append([]string{"diff", c.f.at(c.f.dir), c.f.at(c.dir)}, c.f.reading...)...)
	c.a.seen["diff "+strconv.Itoa(got.Status)]++
	if got.Status == died {
		c.find("alive", "diff %s", got.died)
	}
	// diff compares columns by name
	if got.Status == fine && c.status["cat"] == fine && c.excused && !c.ordered {
		c.find("verdict", "diff ended with 0, and the rows differ")
	}
	if got.Status == use && c.status["cat"] == fine {
		c.find("status", "diff: %s", short(got.Stderr))
	}
}

// says returns the status of a verb as a verdict on the place, -2 if it was not run. If verify found no error, a verb
// that exited with 3 because its output, text or Arrow, cannot hold a string that is not UTF-8 does not count against
// the place.
func (c *trial) says(name string) int {
	v, ok := c.status[name]
	switch {
	case !ok:
		return -2
	case v == damage && c.altered[name] && c.status["verify"] == fine:
		return fine
	}
	return v
}

// oneVerdict: the statuses of all verbs agree with each other.
func (c *trial) oneVerdict() {
	s := c.says
	if s("verify") == fine {
		for _, v := range []string{"cat", "recover", "cat skip-rows", "cat null-cells", "count", "head", "get",
			"ls", "convert", "convert all", "stats", "advise", "describe", "explain"} {
			// describe also shows files that are not part of the table; CarbonData's marks them
			if v == "describe" && len(c.f.files) > 1 && c.f.format() != "carbon" {
				continue
			}
			// the files no longer form one table
			if s(v) == use && c.f.maker != nil && (c.f.maker.loose || c.f.maker.parts) {
				continue
			}
			if strings.HasPrefix(v, "get") && c.loose() { // the row may have been in a file that is missing
				continue
			}
			if c.refused[v] {
				continue
			}
			if s(v) > fine && !(c.f.text && strings.HasPrefix(v, "get")) { // the row is gone without a trace
				c.find("verdict", "verify ended with 0, %s with %d", v, s(v))
			}
		}
	}
	if s("verify deep") == fine && s("cat") > fine && !c.refused["cat"] {
		c.find("verdict", "verify --deep ended with 0, cat with %d", s("cat"))
	}
	if s("verify") == damage && s("recover") == fine { // as the help says
		c.find("verdict", "verify ended with 3, recover with 0")
	}
	if s("cat") == damage {
		for _, v := range []string{"verify", "verify deep"} {
			if s(v) >= fine && s(v) != damage {
				c.find("verdict", "cat ended with 3, %s with %d", v, s(v))
			}
		}
		if s("recover") == fine {
			c.find("verdict", "cat ended with 3, recover with 0")
		}
	}
	if c.misspelled { // opening notices it
		for _, v := range []string{"verify", "verify quick", "verify deep", "ls", "schema", "recover", "count"} {
			if s(v) >= fine && s(v) != damage {
				c.find("verdict", "a name is not UTF-8, and %s ended with %d", v, s(v))
			}
		}
	}
	if s("verify quick") == damage && s("verify") != damage || s("verify") == damage && s("verify deep") >= fine &&
		s("verify deep") != damage {
		c.find("verdict", "verify --quick ended with %d, verify with %d, verify --deep with %d", s("verify quick"),
			s("verify"), s("verify deep"))
	}
}
