package kudu_test

import (
	"errors"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestConservation: whatever part of a tablet is lost, the list has as many entries as before, of tables or lost
// tablets; the list and verify have error findings, and opening a tablet that is listed as lost fails. Undamaged
// directories have no such findings, although they have orphaned blocks.
func TestConservation(t *testing.T) {
	places := map[string]map[string][]byte{"testdata": load(t, "testdata/history")}
	if dir := corpusOr(""); dir != "" && !testing.Short() {
		places["file"], places["log"] = load(t, path.Join(dir, "kudu", "fs_file")),
			load(t, path.Join(dir, "kudu", "fs_log"))
	}
	for name, files := range places {
		t.Run(name, func(t *testing.T) { conserved(t, files) })
	}
}

func conserved(t *testing.T, files map[string][]byte) {
	tree := store.NewMemory(files)
	_, tablets := layout(t, tree)
	all := entries(t, tree, "")
	for _, e := range all {
		if bad := codes(e.Findings, region.Error); bad != "" {
			t.Errorf("%s, undamaged: %s", e.Table, bad)
		}
	}
	of := map[string]int{}
	for _, tb := range tablets {
		of[tb.TableID]++
	}
	for i, tb := range tablets {
		if of[tb.TableID] > 1 || len(tb.RowSets) == 0 || len(tablets) > 1 && i%9 != 4 {
			continue // only a sample; TestCorpusCatalog covers tables that have lost one of several tablets
		}
		for _, how := range []string{"removed", "cut", "only blocks left"} {
			if how == "only blocks left" && len(tablets) == 1 {
				continue // no server's directory is left then, which is an error
			}
			less := maps.Clone(files)
			switch how {
			case "cut":
				less[tb.Object] = less[tb.Object][:len(less[tb.Object])/2]
			default:
				delete(less, tb.Object)
			}
			if how == "only blocks left" {
				maps.DeleteFunc(less, func(name string, _ []byte) bool { return strings.Contains(name, tb.ID) })
			}
			tree := store.NewMemory(less)
			reported := ""
			left := entries(t, tree, "")
			for key, e := range left {
				reported += codes(e.Findings, region.Error)
				if _, ok := all[key]; ok {
					continue
				}
				if e.Rows >= 0 {
					t.Errorf("%s %s: got %d rows of the lost %s, want none", tb.Table, how, e.Rows, key)
				}
				if x, err := stoa.Open(t.Context(), "#"+key, stoa.OpenOptions{Tree: tree}); !errors.Is(err,
					fault.Corrupt) {
					t.Errorf("%s %s: opening the lost %s: got %v, want class Corrupt", tb.Table, how, key, err)
					if err == nil {
						x.Close()
					}
				}
			}
			if len(left) != len(all) || reported == "" {
				t.Errorf("%s %s: got %d tables listed, errors %q, want %d and an error", tb.Table, how, len(left),
					reported, len(all))
			}
			if bad, _ := findings(t, tree, "", ""); codes(bad, region.Error) == "" {
				t.Errorf("%s %s: verify: got no error, want one", tb.Table, how)
			}
		}
	}
}

// signsOf returns functions that select the files, other than blocks, that show that a tablet exists.
func signsOf(id string) map[string]func(name string) bool {
	in := func(dir string) func(string) bool {
		return func(name string) bool { return strings.Contains("/"+name, "/"+dir+"/"+id) }
	}
	return map[string]func(string) bool{"superblock": in("tablet-meta"), "consensus": in("consensus-meta"),
		"log": in("wals")}
}

// TestConservationOfSigns: with superblock, consensus metadata and log removed in every combination, a table is either
// listed, read and recovered unchanged, or the list, verify and opening it report an error: no row is missing silently.
// A tablet of which only blocks are left is listed, too.
func TestConservationOfSigns(t *testing.T) {
	places := map[string]map[string][]byte{"history": load(t, "testdata/history"), "file": load(t, "testdata/file")}
	if dir := corpusOr(""); dir != "" && !testing.Short() {
		places["log"] = kudu.Unpack(t, path.Join(dir, "kudu", "fs_log", "full_with_wal.tar.zst"))
	}
	lost, missing := 0, 0
	for place, files := range places {
		tree := store.NewMemory(files)
		tables := entries(t, tree, "")
		n := 0
		for key, e := range tables {
			if len(e.Parts) != 1 || n > 1 && key != "d_wal" {
				continue
			}
			n++
			all, err := scan(t, tree, "#"+key, nil, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			g, m := withoutSigns(t, files, key, e.Parts[0].Table, len(tables), len(all.cells))
			lost, missing = lost+g, missing+m
		}
		t.Logf("%s: %d tables", place, n)
	}
	if t.Logf("%d tables lost, %d with fewer rows", lost, missing); lost < 4 && !testing.Short() || lost < 1 {
		t.Errorf("got %d tables lost, want 4 or more", lost)
	}
}

// withoutSigns removes the signs of the only tablet, id, of a table with the given number of rows, in directories with
// the given number of tables. It returns how often the table was lost, and how often it had fewer rows.
func withoutSigns(t *testing.T, files map[string][]byte, table, id string, tables, rows int) (lost, missing int) {
	signs := signsOf(id)
	for set := 1; set < 1<<len(signs); set++ {
		less, name := maps.Clone(files), table+" without"
		for i, sign := range slices.Sorted(maps.Keys(signs)) {
			if set>>i&1 != 0 {
				name += " " + sign
				maps.DeleteFunc(less, func(name string, _ []byte) bool { return signs[sign](name) })
			}
		}
		if len(less) == len(files) {
			continue
		}
		tree := store.NewMemory(less)
		left, reported := map[string]format.Entry{}, ""
		for e, err := range kudu.Format.List(t.Context(), format.Target{Tree: tree}) {
			if left[e.Table] = e; err != nil {
				reported += err.Error()
			}
			reported += codes(e.Findings, region.Error)
		}
		_, listed := left[table]
		if len(left) < tables || !listed && reported == "" { // unclaimed blocks are an additional entry
			t.Errorf("%s: got %d tables listed, errors %.200s, want %d", name, len(left), reported, tables)
		}
		bad, _ := findings(t, tree, "", "")
		if !listed {
			lost++
			if codes(bad, region.Error) == "" {
				t.Errorf("%s: verify: got no error, want one", name)
			}
			continue
		}
		for _, recover := range []bool{false, true} {
			got, err := scanWith(t, tree, "#"+table, stoa.OpenOptions{Recover: recover}, stoa.ScanSpec{})
			fewer := err != nil || len(got.cells) < rows
			if fewer {
				missing++
			}
			if fewer && (codes(bad, region.Error) == "" || err == nil && codes(got.findings, region.Error) == "") {
				t.Errorf("%s, recover %t: got %d of %d rows, %v: verify reports %q, the table %q", name, recover,
					len(got.cells), rows, err, codes(bad, region.Error), codes(got.findings, region.Error))
			}
		}
	}
	return lost, missing
}

// TestMoments: a snapshot before a table's first operation, or after the last one here, is refused, and the error has
// both times; with partial=true the snapshot is read, and the problem reported. Snapshots in between are read.
func TestMoments(t *testing.T) {
	tree := store.NewMemory(load(t, "testdata/history"))
	read := func(at uint64, partial string) (scanned, error) {
		return scan(t, tree, "#d_major", map[string]string{"at": strconv.FormatUint(at, 10), "partial": partial},
			stoa.ScanSpec{})
	}
	all, err := scan(t, tree, "#d_major", nil, stoa.ScanSpec{})
	if err != nil || len(all.cells) == 0 {
		t.Fatal(err, len(all.cells))
	}
	_, err = read(1, "false")
	var first, last uint64
	if !errors.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
	words := strings.Fields(err.Error())
	for i, w := range words {
		switch w {
		case "from":
			first, _ = strconv.ParseUint(words[i+1], 10, 64)
		case "to":
			last, _ = strconv.ParseUint(words[i+1], 10, 64)
		}
	}
	if first == 0 || last <= first || !strings.Contains(err.Error(), "Z)") {
		t.Fatal(err)
	}
	for _, x := range []struct {
		at      uint64
		refused bool
		rows    int // -1: some
	}{{1, true, 0}, {first, true, 0}, {first + 1, false, -1}, {last, false, -1}, {last + 1, false, len(all.cells)},
		{math.MaxUint64 - 1, true, len(all.cells)}, {math.MaxUint64, true, len(all.cells)}} {
		got, err := read(x.at, "false")
		if x.refused != errors.Is(err, fault.Unsupported) || !x.refused &&
			(err != nil || x.rows >= 0 && len(got.cells) != x.rows || len(got.cells) == 0) {
			t.Errorf("at %d: got %d rows, %v, want refused %t", x.at, len(got.cells), err, x.refused)
		}
		if !x.refused {
			continue
		}
		got, err = read(x.at, "true")
		if err != nil || len(got.cells) != x.rows ||
			!strings.Contains(codes(got.findings, region.Warning), "kudu.snapshot.outside") {
			t.Errorf("at %d, partial: got %d rows, %v, %v, want %d and kudu.snapshot.outside", x.at, len(got.cells),
				err, got.findings, x.rows)
		}
	}
}

// TestBlocksOfMissingTablets: if a tablet's superblock is missing but its blocks are not, the blocks are reported. This
// is so even with partial=true, which means that tablets may be elsewhere, but not with unclaimed=true. Reading, verify
// and the list agree.
func TestBlocksOfMissingTablets(t *testing.T) {
	files := load(t, "testdata/log")
	tree := with(files, "wal/tablet-meta/5869a79cfc0e43cda859aab50a99b8f6", nil)
	for _, c := range []struct {
		tree     store.Tree
		opts     map[string]string
		reported bool
	}{
		{store.NewMemory(files), map[string]string{"partial": "true"}, false},
		{tree, map[string]string{"partial": "true"}, true},
		{tree, map[string]string{"partial": "true", "unclaimed": "true"}, false},
	} {
		tb := openedIn(t, c.tree, "#ranges", c.opts)
		all := map[string]string{"reading": codes(tb.Findings(), region.Error)}
		tg := format.Target{Tree: c.tree, Table: "ranges", Opts: c.opts}
		for x := range kudu.Format.Verify(t.Context(), tg, format.OpenOptions{Opts: c.opts}) {
			if x.Severity == region.Error {
				all["verify"] += x.Code
			}
		}
		tg.Table = ""
		for e, err := range kudu.Format.List(t.Context(), tg) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Table == "ranges" {
				all["list"] = codes(e.Findings, region.Error)
			}
		}
		for _, op := range []string{"reading", "verify", "list"} {
			if strings.Contains(all[op], "kudu.block.unclaimed") != c.reported {
				t.Errorf("%v: %s: got errors %q, want kudu.block.unclaimed: %t", c.opts, op, all[op], c.reported)
			}
		}
	}
}
