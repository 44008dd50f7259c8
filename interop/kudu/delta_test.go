//go:build interop

package kudu

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// deltaColumns are those of the tables with a history: one of each storage width.
func deltaColumns() []column {
	return []column{
		{Name: "k", Type: "INT64", Key: true, BlockSize: 512},
		{Name: "a", Type: "INT32", BlockSize: 512},
		{Name: "s", Type: "STRING", Nullable: true, BlockSize: 512, Enc: "DICT_ENCODING"},
		{Name: "d", Type: "DOUBLE", Nullable: true, BlockSize: 512},
		{Name: "m", Type: "DECIMAL128", Nullable: true, Prec: 38, Scale: 10},
		{Name: "b", Type: "BOOL"},
		{Name: "t", Type: "INT8", Nullable: true, Enc: "RLE"},
		{Name: "x", Type: "BINARY", Nullable: true, Enc: "PLAIN_ENCODING"},
		{Name: "u", Type: "UNIXTIME_MICROS"},
		{Name: "f", Type: "FLOAT", Nullable: true},
	}
}

// a set is one change as these tests mean it; list turns it into what a delta file holds.
// Kudu numbers the columns of a new table from 10 in debug builds and from 0 in release builds: ids are read from `fs list`.
func list(cols []column, ids []int, row int, at uint64, kind byte, cells map[int]cell) change {
	c := change{Row: uint64(row), Time: at, Kind: kind}
	for i := range cols {
		v, ok := cells[i]
		if !ok {
			continue
		}
		x := colChange{ID: ids[i], Null: v == nil}
		if v != nil {
			x.Raw = stored(cols[i].Type, v)
		}
		c.Cols = append(c.Cols, x)
	}
	return c
}

// A past is what a row set looked like: base rows, and changes in the order of the file. Cells stand beside the encoded form.
type past struct {
	base       [][]cell
	redo, undo []meant
}

type meant struct {
	row   int
	at    uint64
	kind  byte
	cells map[int]cell
}

// state is the table at a snapshot: operations with a time < at have happened.
func (p past) state(at uint64) []string {
	rows := make([][]cell, len(p.base))
	for i := range rows {
		rows[i] = slices.Clone(p.base[i])
	}
	dead := make([]bool, len(rows))
	apply := func(m meant) {
		switch m.kind {
		case 2:
			dead[m.row] = true
			return
		case 3:
			dead[m.row] = false
		}
		for i, v := range m.cells {
			rows[m.row][i] = v
		}
	}
	for _, m := range p.redo {
		if m.at < at {
			apply(m)
		}
	}
	for _, m := range p.undo {
		if m.at >= at {
			apply(m)
		}
	}
	var out []string
	for i, r := range rows {
		if !dead[i] {
			out = append(out, wiredRow(r))
		}
	}
	return out
}

// happenings gives a table a life: inserts, updates in memory, a flush, and two rounds of updates and deletes, each flushed.
// The states after each step are kept with their times.
type moment struct {
	at   uint64
	rows []string
}

func liveThrough(s *server, names []string, start func(name string) [][]cell, seed func(name string) int, cols []column) map[string][]moment {
	out := map[string][]moment{}
	state := map[string][][]cell{}
	gone := map[string][]bool{}
	for _, n := range names {
		s.create(n, cols)
	}
	keep := func() {
		at := s.now() + 1
		for _, n := range names {
			var rows []string
			for i, r := range state[n] {
				if !gone[n][i] {
					rows = append(rows, wiredRow(r))
				}
			}
			out[n] = append(out[n], moment{at, rows})
		}
		time.Sleep(20 * time.Millisecond)
	}
	update := func(salt, every int, which ...int) {
		for _, n := range names {
			var rows [][]cell
			for i, r := range state[n] {
				if gone[n][i] || i%every != salt%every {
					continue
				}
				r = slices.Clone(r)
				for _, c := range which {
					r[c] = value(cols[c], seed(n)+100*salt+c, i)
				}
				state[n][i] = r
				rows = append(rows, r)
			}
			s.mustWrite(n, "update", rows) // sets all columns; those that did not change are set to what they were
		}
	}
	for _, n := range names {
		state[n] = slices.Clone(start(n))
		gone[n] = make([]bool, len(state[n]))
		s.mustWrite(n, "insert", state[n])
	}
	keep()
	update(1, 5, 1, 2, 4)
	keep()
	s.flushRows(names...)
	update(2, 3, 3, 5, 6, 7)
	keep()
	s.flushDeltas(1, names...)
	update(3, 4, 1, 8, 9, 2)
	for _, n := range names {
		var rows [][]cell
		for i := seed(n) % 7; i < len(state[n]); i += 9 {
			rows, gone[n][i] = append(rows, state[n][i][:1]), true
		}
		s.mustWrite(n, "delete", rows)
	}
	keep()
	s.flushDeltas(2, names...)
	return out
}

// TestDeltaHarnessWithKudusOwnFiles: the blocks of a table and of its twin with another history change places; at each
// moment of the twin's life the table must then look like the twin.
func TestDeltaHarnessWithKudusOwnFiles(t *testing.T) {
	s := newServer(t)
	s.start()
	cols := deltaColumns()
	tab := newTable("d", 700, 5, cols...)
	lives := liveThrough(s, []string{"d", "d_twin"}, func(n string) [][]cell {
		if n == "d" {
			return tab.a
		}
		return tab.b
	}, func(n string) int { return len(n) * 1000 }, cols)
	s.stop()
	blocks := s.blocks()
	mine, theirs := byKind(blocks["d"]), byKind(blocks["d_twin"])
	if len(mine["redo"]) != 2 || len(theirs["redo"]) != 2 || len(mine["undo"]) != 1 {
		t.Fatalf("blocks: %v", blocks)
	}
	for kind, list := range mine {
		for i, b := range list {
			s.replace(b, s.read(theirs[kind][i]))
		}
	}
	s.start()
	for i, m := range lives["d_twin"] {
		got, err := s.scan("d", m.at)
		if err != nil {
			t.Fatal(err)
		}
		if d := firstDifference(got, m.rows); d != "" {
			t.Errorf("moment %d: %s", i, d)
		}
		if firstDifference(got, lives["d"][i].rows) == "" {
			t.Errorf("moment %d: it looks as before", i)
		}
	}
	got, err := s.scan("d")
	if err != nil {
		t.Fatal(err)
	}
	last := lives["d_twin"][len(lives["d_twin"])-1].rows
	if d := firstDifference(got, last); d != "" {
		t.Error(d)
	}
	if err := s.ksck("d"); err != nil {
		t.Error(err)
	}
}

// byKind sorts a table's blocks: columns in the schema's order, deltas in that of their ids.
func byKind(list []block) map[string][]block {
	out := map[string][]block{}
	for _, b := range list {
		k := b.Kind
		if k == "column" {
			k = "column " + b.Column
		}
		out[k] = append(out[k], b)
	}
	for _, l := range out {
		slices.SortFunc(l, func(a, b block) int { return int(int64(a.ID) - int64(b.ID)) })
	}
	return out
}

// timeRange reads the times out of what `fs list` says of a delta block.
func timeRange(t testing.TB, b block) (lo, hi uint64) {
	if _, err := fmt.Sscanf(b.DeltaStats, "ts range=[%d, %d]", &lo, &hi); err != nil {
		t.Fatalf("%q: %v", b.DeltaStats, err)
	}
	return
}
