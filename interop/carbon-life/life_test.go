//go:build interop

package carbonlife

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/interop/fuzz"
)

// TestLives runs histories, one table per seed from STOA_SEED on, for as long as STOA_FUZZ says; by default three.
func TestLives(t *testing.T) {
	seed, long := fuzz.Seed(t), fuzz.For(t)
	j := newJudge(t)
	begin := time.Now() // starting Spark takes a while
	lives, steps, last := 0, map[string]int{}, seed
	for most := most(); (lives < 3 && long == 0 || time.Since(begin) < long) && most > 0; last++ {
		l := &life{j: j, r: rand.New(rand.NewPCG(last, 21)), steps: steps}
		lives++
		if err := l.live(fmt.Sprintf("t%d", last)); err != nil {
			most--
			l.failed(t, fmt.Sprintf("STOA_SEED=%d", last), err)
		}
	}
	judged(t, j, lives, steps)
	t.Logf("COUNT lives: %d tables of seeds %d to %d in %v", lives, seed, last, time.Since(begin).Round(time.Second))
}

// most returns how many tables may fail before the test ends: STOA_FINDS, by default one.
func most() int {
	if n, err := strconv.Atoi(os.Getenv("STOA_FINDS")); err == nil {
		return n
	}
	return 1
}

// failed reports a failed table, and copies it to the directory STOA_KEEP, if set.
func (l *life) failed(t *testing.T, name string, err error) {
	t.Helper()
	t.Errorf("%s: %v\nits life:\n  %s", name, err, strings.Join(l.story, "\n  "))
	if dir := os.Getenv("STOA_KEEP"); dir != "" {
		if err := os.CopyFS(filepath.Join(dir, strings.ReplaceAll(name, " ", "_")), os.DirFS(l.path())); err != nil {
			t.Error(err)
		}
	}
}

// judged logs what was done; if nothing was done, the test fails.
func judged(t *testing.T, j *judge, lives int, steps map[string]int) {
	t.Helper()
	if lives == 0 || j.asked == 0 || j.compared == 0 || len(steps) == 0 {
		t.Errorf("nothing was judged: %d lives, %d statements, %d cells, %d operations", lives, j.asked, j.compared,
			len(steps))
	}
	t.Logf("COUNT lives: %d tables, %d statements answered by CarbonData under Spark, %d commands of stoa, %d cells "+
		"compared", lives, j.asked, j.ran, j.compared)
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		t.Logf("COUNT lives: %4d %s", steps[name], name)
	}
}

// life is the history of one table.
type life struct {
	j     *judge
	r     *rand.Rand
	t     *table
	story []string
	steps map[string]int
	past  []moment
}

// live makes a table, changes it, and compares its rows after each step.
func (l *life) live(name string) error {
	if err := l.create(l.draw(name), l.r.IntN(2) == 0); err != nil {
		return err
	}
	if err := l.j.same(l.t); err != nil {
		return err
	}
	for n := 8 + l.r.IntN(12); n > 0; n-- {
		o := operations[l.r.IntN(len(operations))]
		if o.fits != nil && !o.fits(l.t) {
			continue
		}
		if err := l.step(o); err != nil {
			return err
		}
	}
	// both can still write
	return l.end("stoa load", "spark insert", "stoa delete", "spark delete", "spark runs stoa's DDL")
}

// end runs the named operations that fit, and drops the table.
func (l *life) end(names ...string) error {
	for _, name := range names {
		o, ok := named(name)
		if !ok {
			return fmt.Errorf("there is no operation %q", name)
		}
		if o.fits != nil && !o.fits(l.t) {
			continue
		}
		if err := l.step(o); err != nil {
			return err
		}
	}
	_, err := l.j.sql("drop table " + l.t.name)
	return err
}

func named(name string) (operation, bool) {
	for _, o := range operations {
		if o.name == name {
			return o, true
		}
	}
	return operation{}, false
}

// step runs an operation, and then compares what both read.
func (l *life) step(o operation) error {
	l.steps[o.name]++
	at := len(l.story)
	l.remember()
	if err := o.do(l); err != nil {
		return fmt.Errorf("%s: %v", o.name, err)
	}
	if len(l.story) == at {
		l.story = append(l.story, o.name)
	}
	err := l.j.same(l.t)
	if err == nil {
		err = l.filtered()
	}
	if err == nil {
		err = l.remembered()
	}
	if err != nil {
		return fmt.Errorf("after %s: %v", o.name, err)
	}
	return nil
}

// filtered has Spark count the rows with the value of one cell, which it finds by bounds, dictionaries and partitions.
// After a measure was dropped it cannot: see interop/README.md.
func (l *life) filtered() error {
	ids := l.t.where(func(int, row) bool { return true })
	if len(ids) == 0 || l.t.measures {
		return nil
	}
	c := l.t.columns[l.r.IntN(len(l.t.columns))]
	v := l.t.rows[ids[l.r.IntN(len(ids))]][c.name]
	if c.kind == "array<string>" {
		return nil
	}
	where := c.name + " = " + v.sql
	if v.value == nil {
		where = c.name + " is null"
	}
	// by value: a constant's text has its type, and a column may have got a wider one since
	same := l.t.where(func(_ int, x row) bool { return equal(x[c.name], v) })
	if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(v.value)); err == nil {
		// CarbonData skips files by the seconds of a constant, without its milliseconds
		second := at.Truncate(time.Second)
		where = fmt.Sprintf("%s >= timestamp'%s' and %[1]s < timestamp'%[3]s'", c.name,
			second.Format(time.DateTime), second.Add(time.Second).Format(time.DateTime))
		same = l.t.where(func(_ int, x row) bool {
			t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(x[c.name].value))
			return err == nil && t.Truncate(time.Second).Equal(second)
		})
	}
	return l.j.counts(l.t, where, len(same))
}

// sql runs a statement in Spark.
func (l *life) sql(format string, a ...any) error {
	s := fmt.Sprintf(format, a...)
	l.story = append(l.story, "spark: "+s)
	_, err := l.j.sql(s)
	return err
}

// run runs stoa.
func (l *life) run(args ...string) error {
	args = l.t.flags(args...)
	l.story = append(l.story, "stoa "+strings.Join(args, " "))
	_, err := l.j.run(args...)
	return err
}

func (l *life) path() string { return l.j.path(l.t.dir) }

// draw draws a table.
func (l *life) draw(name string) *table {
	kinds := []string{"string", "string", "decimal(10,2)", "date", "timestamp", "double", "smallint", "bigint",
		"boolean", "array<string>", "int"}
	t := &table{name: name, dir: name, columns: []column{{"id", "int"}}, rows: map[int]row{}}
	for i := range 2 + l.r.IntN(5) {
		t.columns = append(t.columns, column{"c" + strconv.Itoa(i), kinds[l.r.IntN(len(kinds))]})
	}
	if l.r.IntN(2) == 0 {
		for _, c := range t.columns {
			if c.kind == "string" || c.kind == "int" || c.kind == "date" {
				t.sorted = append(t.sorted, c.name)
			}
		}
	}
	switch l.r.IntN(4) {
	case 0, 1:
		t.partition = "part"
		t.columns = append(t.columns, column{"part", "string"})
	case 2:
		t.bucketed = "id"
	}
	return t
}

// buckets is the number of buckets of a table that has any.
const buckets = 3

// create has Spark or stoa make a table.
func (l *life) create(t *table, spark bool) error {
	l.t, t.known = t, map[string]bool{}
	if spark {
		return l.createBySpark()
	}
	var lines []string
	for _, c := range l.t.columns {
		lines = append(lines, c.name+" "+c.kind)
	}
	schema, err := l.j.write("schema.txt", []byte(strings.Join(lines, "\n")+"\n"))
	if err != nil {
		return err
	}
	args := []string{"create", l.path(), "--schema", schema}
	if len(l.t.sorted) > 0 {
		args = append(args, "--sort-columns", strings.Join(l.t.sorted, ","))
	}
	if l.t.partition != "" {
		args = append(args, "--partition", l.t.partition)
	}
	if l.t.bucketed != "" {
		args = append(args, "--bucket", fmt.Sprintf("%d:%s", buckets, l.t.bucketed))
	}
	for _, p := range l.properties() {
		args = append(args, "--property", p[0]+"="+p[1])
	}
	l.story = append(l.story, "columns: "+strings.Join(lines, ", "))
	if err := l.run(args...); err != nil {
		return err
	}
	return l.register()
}

// properties draws properties of a table that both know.
func (l *life) properties() (out [][2]string) {
	lists := slices.ContainsFunc(l.t.columns, func(c column) bool { return strings.HasPrefix(c.kind, "array") })
	for _, p := range [][2]string{{"local_dictionary_enable", "false"}, {"carbon.column.compressor", "zstd"},
		{"carbon.column.compressor", "gzip"}, {"table_blocksize", "1"}, {"table_page_size_inmb", "1"},
		{"table_blocklet_size", "8"}, {"local_dictionary_threshold", "1000"}, {"comment", "a life"}} {
		if twice := len(out) > 0 && out[len(out)-1][0] == p[0]; l.r.IntN(5) == 0 && !twice &&
			!(p[0] == "table_page_size_inmb" && lists && l.t.partition != "") {
			out = append(out, p)
		}
	}
	if l.t.ranged != "" {
		out = append(out, [2]string{"range_column", l.t.ranged})
	}
	return out
}

func (l *life) createBySpark() error {
	var columns, properties []string
	for _, c := range l.t.columns {
		if c.name != l.t.partition {
			columns = append(columns, c.name+" "+c.kind)
		}
	}
	if len(l.t.sorted) > 0 {
		properties = append(properties, fmt.Sprintf("'sort_columns'='%s'", strings.Join(l.t.sorted, ",")))
		scopes := []string{"local_sort", "no_sort", "global_sort"}
		if slices.ContainsFunc(l.t.columns, func(c column) bool { return c.kind == "timestamp" }) {
			scopes = scopes[:2] // compaction with a global sort loses the milliseconds
		}
		if scope := scopes[l.r.IntN(len(scopes))]; l.t.bucketed == "" {
			properties = append(properties, fmt.Sprintf("'sort_scope'='%s'", scope))
		}
	}
	if l.t.bucketed != "" {
		properties = append(properties, fmt.Sprintf("'bucket_number'='%d', 'bucket_columns'='%s'", buckets,
			l.t.bucketed))
	}
	for _, p := range l.properties() {
		properties = append(properties, fmt.Sprintf("'%s'='%s'", p[0], p[1]))
	}
	s := fmt.Sprintf("create table %s (%s)", l.t.name, strings.Join(columns, ", "))
	if l.t.partition != "" {
		s += fmt.Sprintf(" partitioned by (%s string)", l.t.partition)
	}
	s += " stored as carbondata"
	if len(properties) > 0 {
		s += " tblproperties(" + strings.Join(properties, ", ") + ")"
	}
	return l.sql("%s", s)
}
