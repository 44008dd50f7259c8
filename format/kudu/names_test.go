package kudu_test

import (
	"maps"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestCorpusOtherName: a superblock that calls its table otherwise than those of the other tablets does not rename it:
// the table keeps its name and its rows, and a warning has both names.
func TestCorpusOtherName(t *testing.T) {
	dir := corpus(t)
	want := expected(t, dir, "part", "final")
	for _, run := range []string{"fs_file", "fs_log"} {
		whole, _, _ := archive(t, run)
		_, all := layout(t, store.NewMemory(whole))
		for _, tb := range all {
			if tb.Table != "part" {
				continue
			}
			files := maps.Clone(whole)
			maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
			name := "tserver/wal/tablet-meta/" + tb.ID
			files[name] = kudu.Renamed(files[name], map[string]string{"part": "trap"})
			wholeTable(t, files, "#part", want)
			found, _ := findings(t, store.NewMemory(files), "tserver", "part")
			said := false
			for _, x := range found {
				said = said || x.Code == "kudu.table.names" && x.Severity == region.Warning && x.Part == tb.ID &&
					strings.Contains(x.Message, "part") && strings.Contains(x.Message, "trap")
			}
			if !said {
				t.Errorf("%s: %+v", tb.ID, found)
			}
		}
	}
}

// TestCorpusIdleBlocks: whether a bloom file or an ad-hoc index is damaged or gone, no row is lost, and that is a
// warning.
func TestCorpusIdleBlocks(t *testing.T) {
	dir := corpus(t)
	files, f, tablets := archive(t, "fs_file")
	tb, tried := tablets["ck"], 0
	want := expected(t, dir, "ck", "final")
	for i := range tb.RowSets {
		for _, b := range tb.RowSets[i].Blocks() {
			if !b.Idle() {
				continue
			}
			p, err := f.PlaceOf(t.Context(), tb, b.BlockRef)
			if err != nil {
				t.Fatal(err)
			}
			old := files[p.At.Object]
			for _, x := range [][]byte{nil, {}, old[:len(old)/2], flipped(old, int64(len(old)/2))} {
				tree := with(files, p.At.Object, x)
				got, errs := findings(t, tree, "tserver", "ck")
				if w, e := codes(got, region.Warning), codes(got, region.Error); w == "" || e != "" {
					t.Errorf("%s of %d bytes: warnings %q, errors %q, %v", b.Kind, len(x), w, e, errs)
				}
				s, err := scan(t, tree, "#ck", nil, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(b.Kind, len(x), err)
				}
				compare(t, s.lines(), want)
				tried++
			}
		}
	}
	if tried < 8 {
		t.Errorf("%d blocks were damaged", tried)
	}
}

// TestCorpusBlocksGone: without any block, of a disk with data that died, a tablet whose log begins with its first
// operation is recovered as a whole, and one whose log does not has no rows: its updates are of rows that are lost.
func TestCorpusBlocksGone(t *testing.T) {
	dir := corpus(t)
	for _, run := range []string{"fs_file", "fs_log"} {
		whole, _, tablets := archive(t, run)
		for _, below := range []string{"tserver/data/", "tserver/data/data/"} {
			files := maps.Clone(whole)
			maps.DeleteFunc(files, func(name string, _ []byte) bool {
				return strings.HasPrefix(name, below) && !strings.HasSuffix(name, "_instance") ||
					strings.HasPrefix(name, "master/") || below == "tserver/data/" && strings.HasPrefix(name, below)
			})
			some := 0
			for _, table := range []string{"d_wal", "d_raw", "d_alter", "part", "ck", "autoinc"} {
				got, err := scanWith(t, store.NewMemory(files), "#"+table, stoa.OpenOptions{Recover: true},
					stoa.ScanSpec{Damaged: stoa.SkipRows})
				if len(got.cells) > 0 {
					compare(t, got.lines(), expected(t, dir, table, "final"))
					some++
				}
				if err == nil && len(got.lost) == 0 && !strings.Contains(codes(got.findings, region.Error), "kudu.") {
					t.Errorf("%s: %s is recovered as if it were whole", run, table)
				}
			}
			if some < 5 || len(tablets) < 20 {
				t.Errorf("%s: %d tables have rows", run, some)
			}
		}
	}
}
