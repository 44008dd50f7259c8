package kudu_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
)

// censusIn returns the states of a census, by table and by tablet, the tables that are complete, and the codes of its
// errors.
func censusIn(t *testing.T, files map[string][]byte) (byTable, byTablet map[string][]string, complete map[string]bool,
	errs string) {
	t.Helper()
	how, err := stoa.Listing("census", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	byTable, byTablet, complete = map[string][]string{}, map[string][]string{}, map[string]bool{}
	found, err := how.List(context.Background(), format.Target{Tree: store.NewMemory(files)}, format.OpenOptions{},
		func(v []string) {
			complete[v[0]] = v[2] == "true"
			byTable[v[0]] = append(byTable[v[0]], v[7])
			byTablet[v[3]] = append(byTablet[v[3]], v[7])
		})
	if err != nil {
		t.Fatal(err)
	}
	return byTable, byTablet, complete, codes(found, region.Error)
}

// A census of a real server and its master is complete. Anything removed is reported as missing, on the evidence of the
// catalogue, the partition schema, or the remains.
func TestCorpusCensus(t *testing.T) {
	whole, f, tablets := archive(t, "fs_file")
	byTable, _, complete, errs := censusIn(t, whole)
	if errs != "" || len(byTable) != len(tablets) {
		t.Fatalf("%d tables of %d, %s", len(byTable), len(tablets), errs)
	}
	for name, states := range byTable {
		if !complete[name] || slices.Compact(slices.Sorted(slices.Values(states)))[0] != "whole" {
			t.Errorf("%s: %v", name, states)
		}
	}
	tb := tablets["d_wal"]
	without := func(what ...string) map[string][]byte {
		files := maps.Clone(whole)
		maps.DeleteFunc(files, func(name string, _ []byte) bool {
			return strings.HasPrefix(name, "tserver/") &&
				slices.ContainsFunc(what, func(w string) bool { return strings.Contains(name, w) })
		})
		if len(files) == len(whole) {
			t.Fatalf("%v: nothing was removed", what)
		}
		return files
	}
	expect := func(what string, files map[string][]byte, tablet, state, codes string) {
		t.Helper()
		byTable, byTablet, complete, errs := censusIn(t, files)
		if !slices.Contains(byTablet[tablet], state) || complete[tb.Table] || !strings.Contains(errs, codes) {
			t.Errorf("%s: %v, %v, complete %v, %s", what, byTablet[tablet], byTable[tb.Table], complete[tb.Table], errs)
		}
		for name := range byTable {
			if name != tb.Table && name != "" && !complete[name] {
				t.Errorf("%s: %s is not complete", what, name)
			}
		}
	}
	expect("the superblock", without("tablet-meta/"+tb.ID), tb.ID, "lost", "kudu.table.incomplete")
	expect("all but the blocks", without(tb.ID), tb.ID, "missing", "kudu.table.incomplete")
	alone := without("tablet-meta/" + tb.ID)
	maps.DeleteFunc(alone, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
	expect("the superblock and the master", alone, tb.ID, "lost", "kudu.table.incomplete")
	block := fmt.Sprintf("%016d", tb.RowSets[0].Columns[0].ID)
	p, err := f.PlaceOf(t.Context(), tb, tb.RowSets[0].Columns[0].BlockRef)
	if err != nil {
		t.Fatal(err)
	}
	expect("block "+block, without(p.At.Object), tb.ID, "damaged", "kudu.table.incomplete")
	expect("the log", without("wals/"+tb.ID), tb.ID, "damaged", "kudu.table.incomplete")

	// a copy of the server is another replica of each tablet, and one intact replica is enough
	files := maps.Clone(whole)
	for name, b := range whole {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			files["twin/"+rest] = b
		}
	}
	if byTable, _, complete, errs := censusIn(t, files); errs != "" || !complete[tb.Table] ||
		!slices.Equal(byTable[tb.Table], []string{"whole", "whole"}) {
		t.Errorf("a copy: %v, %s", byTable[tb.Table], errs)
	}
	delete(files, "twin/"+strings.TrimPrefix(p.At.Object, "tserver/"))
	if byTable, _, complete, errs := censusIn(t, files); errs != "" || !complete[tb.Table] ||
		!slices.Equal(slices.Sorted(slices.Values(byTable[tb.Table])), []string{"damaged", "whole"}) {
		t.Errorf("a damaged copy: %v, %s", byTable[tb.Table], errs)
	}
}

// TestCorpusCensusOfLostChanges: of superblocks with fewer rowsets than there were, and with any MemRowSet as the last
// one that was flushed, the census calls none whole whose log has changes that verify cannot apply, other than changes
// of flushed rows, which are not read for a census.
func TestCorpusCensusOfLostChanges(t *testing.T) {
	files, _, tablets := archive(t, "fs_file")
	tried, lost := 0, 0
	for _, tb := range tablets {
		if len(tb.RowSets) == 0 {
			continue
		}
		for keep := range len(tb.RowSets) {
			for last := range tb.LastDurableMRS + 2 {
				old := *tb
				old.RowSets, old.LastDurableMRS = tb.RowSets[:keep], last-1
				tree := maps.Clone(files)
				tree[tb.Object] = pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", old.Append(nil))
				bad, _ := findings(t, store.NewMemory(tree), "", tb.Table)
				sees := slices.ContainsFunc(bad, func(x region.Finding) bool {
					return x.Code == "kudu.wal.change.lost" && !strings.Contains(x.Message, "cannot be placed")
				})
				tried++
				if !sees {
					continue
				}
				lost++
				if _, states, _, _ := censusIn(t, tree); slices.Contains(states[tb.ID], "whole") {
					t.Errorf("%s, the first %d rowsets, MemRowSet %d: whole, but verify finds %q",
						tb.Table, keep, last-1, codes(bad, region.Error))
				}
			}
		}
	}
	if t.Logf("%d superblocks, %d with lost changes", tried, lost); lost == 0 {
		t.Error("no superblock loses a change")
	}
}
