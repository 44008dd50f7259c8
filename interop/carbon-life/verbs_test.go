//go:build interop

package carbonlife

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestVerbs runs short histories around each operation: on a plain table, a sorted one, one with a partition and one
// with buckets, made by stoa or CarbonData. Before it, both write and delete rows; after it, both write, delete and
// compact. STOA_VERB is a pattern of the wanted operations, STOA_LIVES the number of histories for each (2).
func TestVerbs(t *testing.T) {
	j := newJudge(t)
	only := regexp.MustCompile(os.Getenv("STOA_VERB"))
	steps, count, done := map[string]int{}, 0, map[string]bool{}
	lives := each()
	for i, o := range slices.Concat(placements, alterations, rowOperations) {
		if done[o.name] || !only.MatchString(o.name) {
			continue
		}
		done[o.name] = true
		for k := range lives {
			shape := (i + 2*k) % 4
			if o.fits != nil && !o.fits(shaped(shape)) {
				if shape = 2; !o.fits(shaped(shape)) {
					shape = k
				}
			}
			began := time.Now()
			l := &life{j: j, r: rand.New(rand.NewPCG(uint64(i), uint64(k))), steps: steps}
			count++
			name := fmt.Sprintf("%s, %s, made by %s", o.name, shapes[shape], []string{"Spark", "stoa"}[k%2])
			if err := l.short(o, fmt.Sprintf("v%d_%d", i, k), shape, k%2 == 0); err != nil {
				l.failed(t, name, err)
				continue
			}
			t.Logf("%s: %v", name, time.Since(began).Round(time.Second))
		}
	}
	judged(t, j, count, steps)
}

// each returns STOA_LIVES, the number of histories of each kind, by default two.
func each() int {
	if n, err := strconv.Atoi(os.Getenv("STOA_LIVES")); err == nil {
		return n
	}
	return 2
}

var shapes = []string{"plain", "sorted", "with a partition", "with buckets"}

// shaped returns a table of one of four shapes: plain, sorted, with a partition, with buckets.
func shaped(shape int) *table {
	t := &table{columns: []column{{"id", "int"}, {"name", "string"}, {"price", "decimal(10,2)"}, {"day", "date"},
		{"at", "timestamp"}, {"ratio", "double"}, {"size", "int"}, {"open", "boolean"}}, rows: map[int]row{}}
	switch shape {
	case 1:
		t.sorted = []string{"name", "id"}
	case 2:
		t.partition = "part"
		t.columns = append(t.columns, column{"part", "string"})
	case 3:
		t.bucketed = "id"
	}
	return t
}

// short runs a short history around an operation.
func (l *life) short(o operation, name string, shape int, spark bool) error {
	t := shaped(shape)
	t.name, t.dir = name, name
	if err := l.create(t, spark); err != nil {
		return err
	}
	if err := l.all("spark insert", "stoa load", "spark delete"); err != nil {
		return err
	}
	if err := l.step(o); err != nil {
		return err
	}
	err := l.all("spark insert", "stoa load", "spark delete", "stoa delete", "spark compact major", "stoa clean")
	if err == nil {
		err = l.j.same(l.t)
	}
	if err == nil {
		l.remember()
		err = l.all("spark insert", "stoa load", "stoa delete")
	}
	if err == nil {
		err = l.remembered()
	}
	if err != nil {
		return fmt.Errorf("after %s, both going on: %v", o.name, err)
	}
	return l.end()
}

// all runs the named operations, without comparing what both read afterwards.
func (l *life) all(names ...string) error {
	for _, name := range names {
		o, ok := named(name)
		if !ok {
			return fmt.Errorf("there is no operation %q", name)
		}
		if o.fits != nil && !o.fits(l.t) {
			continue
		}
		l.steps[name]++
		if err := o.do(l); err != nil {
			return fmt.Errorf("%s: %v", name, err)
		}
	}
	return nil
}
