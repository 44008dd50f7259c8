//go:build interop

package kudu

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// deltaColumns returns the columns of the tables with a history: one of each storage width.
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

// list is one change as stored in a delta file. The columns' ids are read from `fs list`.
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

// A past is the history of a row set: base rows, and changes in the order of the file. Cells are kept beside the
// encoded form.
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

// state is the table at a snapshot: operations with a time < at are applied.
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

// A moment is a table's content at a time.
type moment struct {
	at   uint64
	rows []string
}

// liveThrough gives tables a history: inserts, updates in memory, a flush, and two rounds of updates and deletes,
// each flushed.
func liveThrough(s *server, names []string, start func(name string) [][]cell, seed func(name string) int,
	cols []column) map[string][]moment {
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
			s.mustWrite(n, "update", rows) // sets all columns, unchanged ones to the same value
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

// TestDeltaHarnessWithKudusOwnFiles: the blocks of a table are replaced with those of a twin with another history; at
// each of the twin's moments the table must then look like the twin.
func TestDeltaHarnessWithKudusOwnFiles(t *testing.T) {
	t.Parallel()
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

// byKind sorts a table's blocks: columns in schema order, deltas by id.
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

// timeRange returns the times that `fs list` prints for a delta block.
func timeRange(t testing.TB, b block) (lo, hi uint64) {
	if _, err := fmt.Sscanf(b.DeltaStats, "ts range=[%d, %d]", &lo, &hi); err != nil {
		t.Fatalf("%q: %v", b.DeltaStats, err)
	}
	return
}

// invent makes another history for a row set of n rows: every kind of change that a row can have, by row number.
// u is a pair of times after the insertion and before the flush; r1 and r2 are the times of the two REDO files.
// Kudu itself writes no REINSERT into a REDO file; it reads one, but its compactions lose the row. So it is optional.
func invent(cols []column, base [][]cell, inserted uint64, u, r1, r2 [2]uint64, reinserts bool) (undo, redo1,
	redo2 []meant) {
	some := func(row, salt int, which ...int) map[int]cell {
		m := map[int]cell{}
		for _, c := range which {
			m[c] = value(cols[c], 7000+100*salt+c, row)
		}
		return m
	}
	var everything []int
	for c := 1; c < len(cols); c++ {
		everything = append(everything, c)
	}
	nulls := func(row int) map[int]cell {
		m := map[int]cell{}
		for c := range cols {
			if cols[c].Nullable {
				m[c] = nil
			}
		}
		return m
	}
	for row := range base {
		add := func(to *[]meant, at uint64, kind byte, cells map[int]cell) {
			*to = append(*to, meant{row, at, kind, cells})
		}
		switch row % 12 {
		case 0:
			add(&undo, u[0], 1, some(row, 1, 1, 3, 4))
			add(&redo2, r2[0], 1, some(row, 2, 2, 5))
		case 1:
			add(&redo1, r1[0], 1, some(row, 3, 1))
		case 2:
			add(&redo1, r1[0], 2, nil)
			if reinserts {
				add(&redo2, r2[0], 3, some(row, 4, everything...))
			}
		case 3:
			add(&redo1, r1[1], 2, nil)
		case 4: // deleted at u0, inserted again at u1
			add(&undo, u[1], 2, nil)
			add(&undo, u[0], 3, some(row, 5, everything...))
		case 5:
			add(&redo1, r1[0], 1, some(row, 6, 1, 6, 7))
			add(&redo1, r1[1], 1, some(row, 7, 7, 8))
			add(&redo2, r2[1], 1, some(row, 8, 1, 9))
		case 6:
			add(&redo2, r2[0], 2, nil)
		case 8:
			add(&undo, u[1], 1, some(row, 9, 2, 7))
			add(&undo, u[0], 1, some(row, 10, 2, 8))
		case 9:
			add(&redo1, r1[0], 1, nulls(row))
			add(&redo2, r2[0], 1, some(row, 11, 2, 4))
		case 10:
			add(&redo1, r1[0], 2, nil)
			if reinserts {
				add(&redo1, r1[1], 3, some(row, 12, everything...))
				add(&redo2, r2[1], 1, some(row, 13, everything...))
			}
		case 11:
			add(&redo2, r2[1], 1, map[int]cell{2: []byte(fmt.Sprintf("long %0*d", 50+row%900, row)), 7: []byte{},
				3: nil})
		}
		add(&undo, inserted, 2, nil)
	}
	return
}

// TestDeltas replaces Kudu's UNDO and REDO files with ours; the server must then show our history at every time.
func TestDeltas(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	cols := deltaColumns()
	tabs := []table{newTable("deltas_v2", 1500, 5, cols...), newTable("deltas_v1", 1500, 6, cols...),
		newTable("reinserts", 600, 8, cols...), newTable("bad_redo", 300, 7, cols...)}
	names := []string{"deltas_v2", "deltas_v1", "reinserts", "bad_redo"}
	touch := func(salt, every int) {
		for _, x := range tabs {
			var rows [][]cell
			for i := salt; i < len(x.a); i += every {
				r := slices.Clone(x.a[i])
				r[1] = value(cols[1], salt, i)
				rows = append(rows, r)
			}
			s.mustWrite(x.name, "update", rows)
			time.Sleep(10 * time.Millisecond)
			s.mustWrite(x.name, "update", rows[:1])
		}
	}
	for _, x := range tabs {
		s.create(x.name, x.cols)
		s.mustWrite(x.name, "insert", x.a)
	}
	u := s.now() + 4096
	time.Sleep(50 * time.Millisecond)
	s.flushRows(names...)
	touch(1, 3)
	s.flushDeltas(1, names...)
	touch(2, 5)
	s.flushDeltas(2, names...)
	s.stop()
	blocks := s.blocks()
	pasts := map[string]past{}
	times := map[string][]uint64{}
	files, entries := 0, 0
	for i, x := range tabs {
		kinds := byKind(blocks[x.name])
		if len(kinds["redo"]) != 2 || len(kinds["undo"]) != 1 {
			t.Fatalf("%s: blocks %v", x.name, kinds)
		}
		ids := make([]int, len(cols))
		for c := range cols {
			ids[c] = kinds["column "+cols[c].Name][0].ColumnID
		}
		_, inserted := timeRange(t, kinds["undo"][0])
		var r1, r2 [2]uint64
		r1[0], r1[1] = timeRange(t, kinds["redo"][0])
		r2[0], r2[1] = timeRange(t, kinds["redo"][1])
		if r1[0] == r1[1] || r2[0] == r2[1] || u <= inserted || u+4096 >= r1[0] || r1[1] >= r2[0] {
			t.Fatal("times", inserted, u, r1, r2)
		}
		undo, redo1, redo2 := invent(cols, x.a, inserted, [2]uint64{u, u + 4096}, r1, r2, x.name == "reinserts")
		pasts[x.name] = past{x.a, slices.Concat(redo1, redo2), undo}
		times[x.name] = []uint64{inserted, inserted + 1, u, u + 1, u + 4097, r1[0], r1[0] + 1, r1[1], r1[1] + 1,
			r2[0], r2[0] + 1, r2[1], r2[1] + 1}
		for _, f := range []struct {
			b    block
			undo bool
			list []meant
		}{{kinds["undo"][0], true, undo}, {kinds["redo"][0], false, redo1}, {kinds["redo"][1], false, redo2}} {
			var entriesOf []change
			for _, m := range f.list {
				entriesOf = append(entriesOf, list(cols, ids, m.row, m.at, m.kind, m.cells))
			}
			if x.name == "bad_redo" && !f.undo { // the harness must notice one wrong byte in one entry
				for j := range entriesOf {
					if n := len(entriesOf[j].Cols); n > 0 && len(entriesOf[j].Cols[0].Raw) == 4 {
						entriesOf[j].Cols[0].Raw[0] ^= 1
						break
					}
				}
			}
			file, err := writeDelta(f.undo, entriesOf, fileOptions{Version: []int{2, 1, 2, 2}[i], IndexBlock: 256})
			if err != nil {
				t.Fatalf("%s: our writer: %v", x.name, err)
			}
			s.replace(f.b, file)
			files++
			entries += len(entriesOf)
		}
	}
	s.start()
	shots := 0
	for _, x := range tabs {
		var wrong []string
		p := pasts[x.name]
		for _, at := range times[x.name] {
			got, err := s.scan(x.name, at)
			if err != nil {
				t.Fatal(x.name, err)
			}
			if d := firstDifference(got, p.state(at)); d != "" {
				wrong = append(wrong, fmt.Sprintf("snapshot at %d: %s", at, d))
			} else {
				shots++
			}
		}
		got, err := s.scan(x.name)
		if err != nil {
			t.Fatal(x.name, err)
		}
		if d := firstDifference(got, p.state(1<<63)); d != "" {
			wrong = append(wrong, "latest: "+d)
		} else {
			shots++
		}
		if x.name == "bad_redo" {
			if len(wrong) == 0 {
				t.Error("bad_redo: a wrong byte in an entry went unnoticed")
			} else {
				t.Logf("bad_redo: noticed: %s", wrong[0])
			}
			continue
		}
		report(t, x.name, wrong)
	}
	if err := s.ksck(names...); err != nil {
		t.Error(err)
	}
	t.Logf("COUNT %s: %d snapshots served as our %d delta files (%d entries) tell", t.Name(), shots, files, entries)

	// Kudu merges our deltas, and our UNDO history, into files of its own.
	s.flag("tablet_delta_store_minor_compact_max", "2")
	s.flag("tablet_delta_store_major_compact_min_ratio", "0.001")
	s.flag("enable_major_delta_compaction", "true")
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		m := s.metrics("delta_major_compact_rs_duration")
		if m["deltas_v2"]["delta_major_compact_rs_duration"] > 0 &&
			m["deltas_v1"]["delta_major_compact_rs_duration"] > 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("Kudu did not compact our deltas within 90 seconds: %v", m)
			break
		}
	}
	time.Sleep(time.Second)
	s.flag("enable_major_delta_compaction", "false")
	same := 0
	for _, x := range tabs[:2] {
		for _, at := range append(times[x.name], 0) {
			var got []string
			var err error
			if at > 0 {
				got, err = s.scan(x.name, at)
			} else {
				at = 1 << 63
				got, err = s.scan(x.name)
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := firstDifference(got, pasts[x.name].state(at)); d != "" {
				t.Errorf("%s: after Kudu's major compaction of our deltas, at %d: %s", x.name, at, d)
			} else {
				same++
			}
		}
	}
	t.Logf("COUNT %s: %d snapshots unchanged after Kudu compacted our deltas into its own", t.Name(), same)
}
