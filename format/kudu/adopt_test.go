package kudu_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// savedOf recovers the entries of a place that may have rows of a table: the table, and tablets without a superblock.
func savedOf(t *testing.T, files map[string][]byte, table string) (rows []string) {
	t.Helper()
	tree := store.NewMemory(files)
	for name, e := range entries(t, tree, "") {
		if name != table && e.Kind != "lost tablet" {
			continue
		}
		tb, err := stoa.Open(t.Context(), "#"+name, stoa.OpenOptions{Tree: tree, Recover: true})
		if err != nil {
			continue // its rows are another's
		}
		for b, err := range tb.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, lines(b)...)
		}
		if !slices.ContainsFunc(tb.Findings(), func(x region.Finding) bool { return x.Severity >= region.Error }) {
			t.Errorf("%s is recovered as if it were whole", name)
		}
		tb.Close()
	}
	slices.Sort(rows)
	return rows
}

// TestCorpusSuperblocksGone: however many superblocks of a table of four tablets are gone, with or without the logs and
// the master, all of its rows are recovered, each once, as long as anything tells the
// schema; a copy of the server's directories changes nothing.
func TestCorpusSuperblocksGone(t *testing.T) {
	dir := corpus(t)
	for _, run := range []string{"fs_file", "fs_log"} {
		tried := 0
		whole, _, _ := archive(t, run)
		_, all := layout(t, store.NewMemory(whole))
		var ids []string
		for _, tb := range all {
			if tb.Table == "part" {
				ids = append(ids, tb.ID)
			}
		}
		want := expected(t, dir, "part", "final")
		if len(ids) != 4 || len(want) != 400 {
			t.Fatal(ids, len(want))
		}
		for set := 1; set < 1<<len(ids); set++ {
			if n := set & 3; testing.Short() && set != 15 && n != 1 {
				continue
			}
			for _, gone := range []string{"superblock", "superblock and log", "all but blocks"} {
				for _, master := range []bool{true, false} {
					files := maps.Clone(whole)
					for name := range whole {
						for i, id := range ids {
							if set>>i&1 == 1 && (strings.HasSuffix(name, "tablet-meta/"+id) ||
								gone != "superblock" && strings.Contains(name, "wals/"+id) ||
								gone == "all but blocks" && strings.HasSuffix(name, "consensus-meta/"+id)) {
								delete(files, name)
							}
						}
						if !master && strings.HasPrefix(name, "master/") {
							delete(files, name)
						}
					}
					if set == 1<<len(ids)-1 && gone != "superblock" && !master {
						continue // nothing tells the schema
					}
					tried++
					for _, again := range []bool{false, true} {
						if again && tried%5 > 0 {
							continue
						}
						if again { // a copy of the server
							for name, b := range maps.Clone(files) {
								if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
									files["twin/"+rest] = b
								}
							}
						}
						if got := savedOf(t, files, "part"); !slices.Equal(got, want) {
							t.Errorf("%s: %s of tablets %04b gone, master %t, copy %t: got %d rows, %d different",
								run, gone, set, master, again, len(got), len(slices.Compact(got)))
						}
					}
				}
			}
		}
	}
}

// TestCorpusLostTabletsByID: the tablets of a table without superblocks can be recovered by their ids, with or without
// a master, which knows the table's name: each of its rows is in one of them.
func TestCorpusLostTabletsByID(t *testing.T) {
	want := expected(t, corpus(t), "part", "final")
	whole, _, _ := archive(t, "fs_log")
	_, all := layout(t, store.NewMemory(whole))
	for _, master := range []bool{true, false} {
		files, ids := maps.Clone(whole), []string{}
		for _, tb := range all {
			if tb.Table == "part" {
				ids = append(ids, tb.ID)
			}
		}
		for name := range whole {
			lost := slices.ContainsFunc(ids, func(id string) bool { return strings.HasSuffix(name, "tablet-meta/"+id) })
			if lost || !master && strings.HasPrefix(name, "master/") {
				delete(files, name)
			}
		}
		var got []string
		for _, id := range ids {
			tb, err := stoa.Open(t.Context(), "#"+id, stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
			if err != nil {
				t.Fatalf("master %t: %v", master, err)
			}
			for b, err := range tb.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, lines(b)...)
			}
			tb.Close()
		}
		if slices.Sort(got); len(ids) != 4 || !slices.Equal(got, want) {
			t.Errorf("master %t: %d tablets have %d rows, want %d", master, len(ids), len(got), len(want))
		}
	}
}
