//go:build interop

package carbonlife

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stoa/interop/fuzz"
)

// TestStreams: tables with streaming segments, which stoa writes and both hand off, with ordinary loads between, by
// seed. Spark reads all rows after each step, by filters too, and at the end closes the streaming itself.
func TestStreams(t *testing.T) {
	seed := fuzz.Seed(t)
	j := newJudge(t)
	steps := map[string]int{}
	for i := range uint64(3) {
		l := &life{j: j, r: rand.New(rand.NewPCG(seed+i, 22)), steps: steps}
		if err := l.streams(fmt.Sprintf("st%d", seed+i), i%2 == 0); err != nil {
			l.failed(t, fmt.Sprintf("STOA_SEED=%d", seed+i), err)
		}
	}
	judged(t, j, 3, steps)
}

func (l *life) streams(name string, spark bool) error {
	t := &table{name: name, dir: name, rows: map[int]row{}, columns: []column{{"id", "int"}, {"name", "string"},
		{"price", "decimal(10,2)"}, {"day", "date"}, {"at", "timestamp"}, {"ratio", "double"}, {"size", "smallint"},
		{"big", "bigint"}, {"open", "boolean"}, {"digits", "decimal(30,5)"}}}
	if l.r.IntN(2) == 0 {
		t.sorted = []string{"name", "size"}
	}
	if err := l.create(t, spark); err != nil {
		return err
	}
	if err := l.sql("alter table %s set tblproperties('streaming'='true')", name); err != nil {
		return err
	}
	rows := func(flags ...string) operation {
		return operation{"stoa load " + strings.Join(flags, " "), nil, func(l *life) error {
			return l.load(l.t.add(l.r, 1+l.r.IntN(30)), flags...)
		}}
	}
	stream := rows("--opt", "layout=rows")
	handoff := []operation{
		{"stoa compact --streaming", nil, func(l *life) error { return l.run("compact", l.path(), "--streaming") }},
		{"spark compact streaming", nil, func(l *life) error { return l.compact("streaming", "") }},
	}
	insert, _ := named("spark insert")
	clean, _ := named("stoa clean")
	for range 2 {
		for _, o := range []operation{stream, insert, rows("--opt", "layout=rows", "--opt", "compression=zstd"), rows(),
			handoff[l.r.IntN(2)], stream, stream, handoff[l.r.IntN(2)], clean} {
			if err := l.step(o); err != nil {
				return err
			}
		}
	}
	if err := l.step(stream); err != nil {
		return err
	}
	closed := operation{"spark compact close_streaming", nil, func(l *life) error {
		return l.compact("close_streaming", "")
	}}
	if l.r.IntN(2) == 0 {
		closed = operation{"stoa compact --close-streaming", nil, func(l *life) error {
			if err := l.run("compact", l.path(), "--close-streaming"); err != nil {
				return err
			}
			return l.run("set-property", l.path(), "streaming=false")
		}}
	}
	if err := l.step(closed); err != nil {
		return err
	}
	if err := l.again(); err != nil { // Spark knows from the metastore whether the table is one of streams
		return err
	}
	return l.end("stoa load", "spark insert", "stoa delete", "spark delete", "spark compact major")
}
