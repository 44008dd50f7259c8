//go:build interop

package carbonlife

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/interop/fuzz"
)

// TestLives has tables live, one a seed from STOA_SEED on, for as long as STOA_FUZZ says; without it three of them.
func TestLives(t *testing.T) {
	seed, long := fuzz.Seed(t), fuzz.For(t)
	j := newJudge(t)
	begin := time.Now() // Spark takes its time to start
	lives, steps, last := 0, map[string]int{}, seed
	for ; lives < 3 && long == 0 || time.Since(begin) < long; last++ {
		l := &life{j: j, r: rand.New(rand.NewPCG(last, 21)), steps: steps}
		lives++
		if err := l.live(fmt.Sprintf("t%d", last)); err != nil {
			t.Errorf("STOA_SEED=%d: %v\nits life:\n  %s", last, err, strings.Join(l.story, "\n  "))
			if dir := os.Getenv("STOA_KEEP"); dir != "" {
				t.Log(os.CopyFS(dir, os.DirFS(j.path(l.t.name))))
			}
			break
		}
		os.RemoveAll(j.path(l.t.name))
	}
	if lives == 0 || j.asked == 0 || j.compared == 0 || len(steps) == 0 {
		t.Errorf("nothing was judged: %d lives, %d statements, %d cells, %d operations", lives, j.asked, j.compared,
			len(steps))
	}
	t.Logf("COUNT lives: %d tables of seeds %d to %d, %d statements answered by CarbonData under Spark, %d commands "+
		"of stoa, %d cells compared, in %v", lives, seed, last, j.asked, j.ran, j.compared,
		time.Since(begin).Round(time.Second))
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		t.Logf("COUNT lives: %4d %s", steps[name], name)
	}
}

// life is the life of one table.
type life struct {
	j     *judge
	r     *rand.Rand
	t     *table
	story []string
	steps map[string]int
}

// live makes a table, changes it, and compares its rows after each step.
func (l *life) live(name string) error {
	if err := l.create(name); err != nil {
		return err
	}
	if err := l.j.same(l.t); err != nil {
		return err
	}
	for n := 8 + l.r.IntN(12); n > 0; n-- {
		at := l.r.IntN(len(operations) + len(alterations))
		o := slices.Concat(operations, alterations)[at]
		if o.fits != nil && !o.fits(l.t) {
			continue
		}
		if err := l.step(o); err != nil {
			return err
		}
	}
	for _, name := range []string{"stoa load", "spark insert", "stoa delete", "spark delete"} { // both still write
		for _, o := range operations {
			if o.name == name {
				if err := l.step(o); err != nil {
					return err
				}
			}
		}
	}
	_, err := l.j.sql("drop table " + l.t.name)
	return err
}

func (l *life) step(o operation) error {
	l.steps[o.name]++
	at := len(l.story)
	if err := o.do(l); err != nil {
		return fmt.Errorf("%s: %v", o.name, err)
	}
	if len(l.story) == at {
		l.story = append(l.story, o.name)
	}
	if err := l.j.same(l.t); err != nil {
		return fmt.Errorf("after %s: %v", o.name, err)
	}
	return nil
}

// sql has Spark do something.
func (l *life) sql(format string, a ...any) error {
	s := fmt.Sprintf(format, a...)
	l.story = append(l.story, "spark: "+s)
	_, err := l.j.sql(s)
	return err
}

// run has stoa do something.
func (l *life) run(args ...string) error {
	l.story = append(l.story, "stoa "+strings.Join(args, " "))
	_, err := l.j.run(args...)
	return err
}

func (l *life) path() string { return l.j.path(l.t.name) }

// create draws a table, which one of the two makes.
func (l *life) create(name string) error {
	kinds := []string{"string", "string", "decimal(10,2)", "date", "timestamp", "double", "smallint", "bigint",
		"boolean", "array<string>", "int"}
	l.t = &table{name: name, columns: []column{{"id", "int"}}, rows: map[int]row{}}
	for i := range 2 + l.r.IntN(5) {
		l.t.columns = append(l.t.columns, column{"c" + strconv.Itoa(i), kinds[l.r.IntN(len(kinds))]})
	}
	if l.r.IntN(2) == 0 {
		for _, c := range l.t.columns {
			if c.kind == "string" || c.kind == "int" || c.kind == "date" {
				l.t.sorted = append(l.t.sorted, c.name)
			}
		}
	}
	switch l.r.IntN(4) {
	case 0, 1:
		l.t.partition = "part"
		l.t.columns = append(l.t.columns, column{"part", "string"})
	case 2:
		l.t.bucketed = "id"
	}
	if l.r.IntN(2) == 0 {
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
		args = append(args, "--bucket", "3:"+l.t.bucketed)
	}
	l.story = append(l.story, "columns: "+strings.Join(lines, ", "))
	if err := l.run(args...); err != nil {
		return err
	}
	return l.sql("refresh table %s", name)
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
		if scope := []string{"local_sort", "global_sort", "no_sort"}[l.r.IntN(3)]; l.t.bucketed == "" {
			properties = append(properties, fmt.Sprintf("'sort_scope'='%s'", scope))
		}
	}
	if l.t.bucketed != "" {
		properties = append(properties, fmt.Sprintf("'bucket_number'='3', 'bucket_columns'='%s'", l.t.bucketed))
	}
	if l.r.IntN(3) == 0 {
		properties = append(properties, "'local_dictionary_enable'='false'")
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
