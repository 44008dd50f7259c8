package kudu_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
)

// copied returns the files of a place with a copy of its tablet server, at twin/.
func copied(files map[string][]byte) map[string][]byte {
	out := maps.Clone(files)
	for name, b := range files {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			out["twin/"+rest] = b
		}
	}
	return out
}

// sameRows recovers tables of a place, and compares their rows with the expected ones. The place's list has them.
func sameRows(t *testing.T, what string, files map[string][]byte, tables ...string) {
	t.Helper()
	tree := store.NewMemory(files)
	listed := entries(t, tree, "")
	for _, table := range tables {
		want := expected(t, corpus(t), table, "final")
		tb, err := stoa.Open(t.Context(), "#"+table, stoa.OpenOptions{Tree: tree, Recover: true})
		if err != nil {
			t.Errorf("%s: %s: %v", what, table, err)
			continue
		}
		var rows []string
		for b, err := range tb.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, lines(b)...)
		}
		tb.Close()
		if slices.Sort(rows); !slices.Equal(rows, want) || listed[table].Table == "" {
			t.Errorf("%s: %s: got %d rows, want %d", what, table, len(rows), len(want))
		}
	}
}

// TestCorpusHalvesOfCopies: what one of two copies of a server lacks is read from the other, whatever is missing in
// the other: a copy never costs rows. Whole directories of two copies make a whole server, in which nothing is wrong.
func TestCorpusHalvesOfCopies(t *testing.T) {
	tables := []string{"ck", "btree", "d_wal", "part"}
	if testing.Short() {
		tables = tables[2:]
	}
	for _, run := range []string{"fs_file", "fs_log"} {
		whole, _, _ := archive(t, run)
		both := copied(whole)
		without := func(parts ...string) map[string][]byte {
			files := maps.Clone(both)
			n := len(files)
			maps.DeleteFunc(files, func(name string, _ []byte) bool {
				return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(name, p) })
			})
			if len(files) == n {
				t.Fatalf("%v: nothing was removed", parts)
			}
			return files
		}
		for _, parts := range [][]string{
			{"tserver/data/"}, {"twin/data/"}, {"twin/data/data/"}, {"tserver/data/data/"},
			{"tserver/data/", "twin/wal/tablet-meta/"}, {"tserver/data/data/", "twin/wal/"},
			{"twin/data/", "tserver/wal/tablet-meta/", "tserver/wal/consensus-meta/"},
			{"tserver/wal/wals/", "twin/data/"}, {"twin/wal/wals/", "tserver/wal/tablet-meta/", "twin/data/data/"},
		} {
			files, what := without(parts...), run+" without "+strings.Join(parts, ", ")
			sameRows(t, what, files, tables...)
			for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(files)},
				format.OpenOptions{Depth: format.Quick}) {
				if x.Severity >= region.Error {
					t.Errorf("%s: %+v", what, x)
				}
			}
		}
		var blocks []string
		for name := range whole {
			if strings.HasPrefix(name, "tserver/data/data/") && !strings.HasSuffix(name, "_instance") &&
				!strings.HasSuffix(name, ".metadata") {
				blocks = append(blocks, strings.TrimPrefix(name, "tserver/"))
			}
		}
		slices.Sort(blocks)
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 20))
			r.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
			for _, how := range []string{"gone", "cut short"} {
				files := maps.Clone(both)
				for i, b := range blocks {
					name := []string{"tserver/", "twin/"}[i%2] + b
					if how == "gone" {
						delete(files, name)
						delete(files, strings.TrimSuffix(name, ".data")+".metadata")
					} else {
						files[name] = files[name][:len(files[name])*2/3]
					}
				}
				sameRows(t, run+": half of the blocks "+how, files, tables...)
			}
		}
	}
}

// TestCorpusEarlierCopy: blocks that a server has lost are read from an earlier copy of its directories, whose
// superblocks do not have the later delta files.
func TestCorpusEarlierCopy(t *testing.T) {
	for _, run := range []string{"fs_file", "fs_log"} {
		whole, f, tablets := archive(t, run)
		files := copied(whole)
		n := 0
		for _, table := range []string{"d_raw", "d_wal"} {
			tb := tablets[table]
			earlier := *tb
			earlier.RowSets = slices.Clone(tb.RowSets)
			delete(files, "twin/wal/wals/"+tb.ID+"/wal-000000001")
			for i := range earlier.RowSets {
				s := &earlier.RowSets[i]
				if len(s.Redo) == 0 {
					continue
				}
				s.Redo = s.Redo[:len(s.Redo)-1]
				for _, b := range s.Columns {
					p, err := f.PlaceOf(t.Context(), tb, b.BlockRef)
					if err != nil {
						t.Fatal(err)
					}
					delete(files, p.At.Object)
					delete(files, strings.TrimSuffix(p.At.Object, ".data")+".metadata")
					n++
				}
			}
			name := "twin/" + strings.TrimPrefix(tb.Object, "tserver/")
			files[name] = pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", earlier.Append(nil))
		}
		if n < 10 {
			t.Fatalf("%s: only %d blocks are lost", run, n)
		}
		sameRows(t, run, files, "d_raw", "d_wal")
	}
}

// TestCorpusOtherServerDamaged: that directories of another server, with other tables, are gone is no finding about a
// table that is whole without it.
func TestCorpusOtherServerDamaged(t *testing.T) {
	files, _, tablets := archive(t, "fs_file")
	other, _, _ := archive(t, "fs_log")
	for name, b := range other {
		if rest, ok := strings.CutPrefix(name, "tserver/wal/"); ok {
			files["other/wal/"+rest] = b
		}
	}
	tree := store.NewMemory(files)
	n := 0
	for _, e := range slices.Sorted(maps.Keys(tablets)) {
		for _, x := range openedIn(t, tree, "#"+tablets[e].TableID, nil).Findings() {
			if x.Severity >= region.Error {
				t.Errorf("%s: %+v", e, x)
			}
		}
		n++
	}
	if found := openedIn(t, tree, "#"+tablets["ck"].TableID, nil).Findings(); n != 24 || len(found) > 0 {
		t.Errorf("%d tables, %+v", n, found)
	}
	bad := 0
	for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: tree}, format.OpenOptions{Depth: format.Quick}) {
		if x.Code == "kudu.layout.missing" {
			bad++
		}
	}
	if bad == 0 {
		t.Error("nothing tells of the other server")
	}
}
