//go:build interop

package kudu

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/format"
	"stoa/store"
)

// exactFrom returns, for each table, the time from which on snapshots are exact, as in the list "history".
func exactFrom(t *testing.T, place string) map[string]uint64 {
	t.Helper()
	how, err := stoa.Listing("history", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exact := map[string]uint64{}
	if _, err = how.List(t.Context(), format.Target{Tree: store.Local{}, Name: place}, format.OpenOptions{},
		func(v []string) {
			if name, event := v[0], v[5]; event == "exact" {
				at, err := strconv.ParseUint(v[6], 10, 64)
				if err != nil {
					t.Errorf("%q: %v", v, err)
				}
				exact[name] = max(exact[name], at)
			}
		}); err != nil {
		t.Fatal(err)
	}
	return exact
}

// TestDirForgets: a server that keeps history for only fifteen seconds merges rowsets, and so removes the older part of
// their history. Where Kudu then refuses its client, stoa must refuse, too, or read what the client had read in time.
func TestDirForgets(t *testing.T) {
	t.Parallel()
	s := newDirServer(t, "log")
	const age = 15
	s.start("--tablet_history_max_age_sec="+strconv.Itoa(age), "--undo_delta_block_gc_init_budget_millis=1000")
	fields := []field{typed(0, "id", "INT32", key), typed(1, "v", "INT32")}
	tally := map[string]int{}
	// how the history is removed: in a compaction; in one of rows that were deleted and inserted again; by itself
	kept := []string{"merged", "busy", "removed"}
	var moments []uint64
	was := map[string][]string{}
	moment := func() {
		for _, n := range kept {
			rows, err := s.scan(n)
			if err != nil {
				t.Fatal(err)
			}
			was[n+strconv.Itoa(len(moments))] = rows
		}
		moments = append(moments, s.now()+1)
		time.Sleep(50 * time.Millisecond)
	}
	apply := func(name, kind string, from, to, v int) {
		var ops []string
		for i := from; i < to; i++ {
			word := strconv.Itoa(v*1000 + i)
			if kind == "delete" {
				word = "-"
			}
			ops = append(ops, kind+"\t"+strconv.Itoa(i*3)+"\t"+word)
		}
		s.apply(name, ops, 1000, tally)
	}
	for _, n := range kept {
		s.make(n, fields, "range\tid")
	}
	s.make("clock", fields, "range\tid")
	apply("clock", "insert", 0, 1, 0)
	moment() // 0: nothing
	for _, n := range kept {
		apply(n, "insert", 0, 200, 1)
	}
	moment() // 1: the first rows
	for _, n := range kept {
		apply(n, "update", 0, 100, 2)
		apply(n, "delete", 150, 160, 0)
	}
	s.flushAll()
	moment() // 2: the first rows, changed
	time.Sleep((age + 2) * time.Second)
	for _, n := range kept[:2] {
		apply(n, "insert", 200, 420, 3)
	}
	for range 3 {
		apply("busy", "delete", 200, 420, 0)
		apply("busy", "insert", 200, 420, 4)
	}
	moment() // 3: late rows, too
	s.flushAll()
	s.compactRows()
	// and not after that: what the client reads is still on disk
	s.let([]string{"UndoDeltaBlockGCOp"}, "enable_undo_delta_block_gc")
	moment() // 4
	truths, refused := map[string][]string{}, 0
	for _, n := range kept {
		for i, at := range moments {
			rows, err := s.scan(n, at)
			switch {
			case err == nil:
				truths[n+strconv.Itoa(i)] = rows
			case strings.Contains(err.Error(), "ancient history mark"):
				refused++
			default:
				t.Fatal(err)
			}
		}
		rows, err := s.scan(n)
		if err != nil {
			t.Fatal(err)
		}
		truths[n] = rows
	}
	s.stop()
	place := copyDir(t, s.dir+"/tserver", s.dir+"/copies/tserver")
	rows, reported := 0, 0
	exact := exactFrom(t, place)
	for _, n := range kept {
		rows += check(t, place+"#"+n, n, nil, truths[n])
		for i, at := range moments {
			opts := map[string]string{"at": strconv.FormatUint(at, 10)}
			if want, ok := was[n+strconv.Itoa(i)]; ok && at >= exact[n] {
				rows += check(t, place+"#"+n, n+" at moment "+strconv.Itoa(i)+", which is exact", opts, want)
			}
			if want, ok := truths[n+strconv.Itoa(i)]; ok {
				rows += check(t, place+"#"+n, n+" at moment "+strconv.Itoa(i), opts, want)
				continue
			}
			if r, err := read(place+"#"+n, opts, stoa.ScanSpec{}); err == nil {
				if d := difference(r.rows, was[n+strconv.Itoa(i)]); d != "" {
					t.Errorf("%s at moment %d, which Kudu refuses to read: stoa reads %s",
						n, i, d)
				}
				rows += len(r.rows)
			} else if reported++; !strings.Contains(err.Error(), "history") && !outside(err) {
				t.Errorf("%s at moment %d: %v", n, i, err)
			}
		}
	}
	t.Logf("COUNT %s: rows compared %d, moments that Kudu refused %d, of these refused by stoa %d", t.Name(), rows,
		refused, reported)
	if refused == 0 {
		t.Error("Kudu refused no moment: this test proves nothing")
	}
}
