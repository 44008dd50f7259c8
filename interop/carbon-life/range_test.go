//go:build interop

package carbonlife

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"stoa/interop/fuzz"
)

// TestRanges: tables with a range column of seven types, made by either, with loads of several
// ranges by stoa and inserts by Spark. Spark reads all rows after each step, and by filters. It does not compact:
// CarbonData 2.3.0 gives rows twice when it compacts several ranges, of its own files, too (interop/README.md).
func TestRanges(t *testing.T) {
	seed := fuzz.Seed(t)
	j := newJudge(t)
	steps, count := map[string]int{}, 0
	for i, by := range []string{"id", "name", "day", "at", "ratio", "small", "big"} {
		l := &life{j: j, r: rand.New(rand.NewPCG(seed, uint64(i))), steps: steps}
		count++
		if err := l.ranges(fmt.Sprintf("rg%d_%d", seed, i), by, i%2 == 0); err != nil {
			l.failed(t, fmt.Sprintf("STOA_SEED=%d, by %s", seed, by), err)
		}
	}
	judged(t, j, count, steps)
}

func (l *life) ranges(name, by string, spark bool) error {
	t := &table{name: name, dir: name, rows: map[int]row{}, columns: []column{{"id", "int"}, {"name", "string"},
		{"price", "decimal(10,2)"}, {"day", "date"}, {"at", "timestamp"}, {"ratio", "double"}, {"small", "smallint"},
		{"big", "bigint"}, {"open", "boolean"}}, sorted: []string{"name", "id"}, ranged: by}
	if err := l.create(t, spark); err != nil {
		return err
	}
	load := operation{"stoa load --parallel 3", nil, func(l *life) error {
		return l.load(l.t.add(l.r, 20+l.r.IntN(30)), "--parallel", "3")
	}}
	for _, what := range []string{"", "spark insert", "", "stoa delete", "stoa compact --major", "", "spark insert",
		"stoa compact --major", "stoa update", "", "spark delete"} {
		o := load
		if what != "" {
			o, _ = named(what)
		}
		if err := l.step(o); err != nil {
			return err
		}
	}
	return l.end("stoa load", "spark insert", "spark runs stoa's DDL")
}
