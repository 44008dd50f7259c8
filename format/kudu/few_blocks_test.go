package kudu_test

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/store"
)

// TestCorpusFewBlocksGone: whichever blocks of a tablet are gone, it is rebuilt from its log if that is complete, from
// the first operation on; if the log has lost its end, what is left of the blocks is read.
func TestCorpusFewBlocksGone(t *testing.T) {
	dir := corpus(t)
	whole, _, tablets := archive(t, "fs_file")
	for _, table := range []string{"d_wal", "d_raw", "d_major", "d_alter"} {
		tb := tablets[table]
		want := expected(t, dir, table, "final")
		var blocks []string
		f, all := layout(t, store.NewMemory(whole))
		for _, places := range blocksOf(t, f, all, table) {
			for _, at := range places {
				blocks = append(blocks, at.Object)
			}
		}
		slices.Sort(blocks)
		if blocks = slices.Compact(blocks); len(blocks) < 10 {
			t.Fatal(table, len(blocks))
		}
		log := "tserver/wal/wals/" + tb.ID + "/wal-000000001"
		for n := 0; n < len(blocks); n += 1 + len(blocks)/5 {
			files := maps.Clone(whole)
			delete(files, blocks[n])
			delete(files, blocks[(n*7+3)%len(blocks)])
			if got := savedOf(t, files, table); !slices.Equal(got, want) {
				t.Errorf("%s without %s: %d rows, want %d", table, filepath.Base(blocks[n]), len(got), len(want))
			}
			files[log] = files[log][:len(files[log])/3] // far before what was flushed
			rest, err := stoa.Open(t.Context(), "#"+table,
				stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			if found := rest.Findings(); reported(found, "kudu.tablet.rebuilt", "") {
				t.Errorf("%s: rebuilt from a log that lacks flushed operations: %+v", table, found)
			}
			rest.Close()
		}
	}
}

// TestCorpusFewBlocksGoneOfReplicas: of two servers that have a tablet, each lacks blocks and has the complete log. The
// rows are those of one alone.
func TestCorpusFewBlocksGoneOfReplicas(t *testing.T) {
	dir := corpus(t)
	whole, f, tablets := archive(t, "fs_file")
	both := otherServer(t, whole, f, "twin")
	for _, table := range []string{"d_wal", "d_raw", "d_rowset"} {
		files := maps.Clone(both)
		maps.DeleteFunc(files, func(name string, _ []byte) bool {
			return strings.HasSuffix(name, "/consensus-meta/"+tablets[table].ID)
		})
		want := expected(t, dir, table, "final")
		var blocks []string
		f, all := layout(t, store.NewMemory(whole))
		for _, places := range blocksOf(t, f, all, table) {
			for _, at := range places {
				blocks = append(blocks, strings.TrimPrefix(at.Object, "tserver/"))
			}
		}
		slices.Sort(blocks)
		blocks = slices.Compact(blocks)
		for what, gone := range map[string][2][]string{
			"the same one":       {blocks[1:2], blocks[1:2]},
			"others":             {blocks[:1], blocks[len(blocks)-1:]},
			"all, and one":       {blocks, blocks[2:3]},
			"one, and all":       {blocks[3:4], blocks},
			"all of both":        {blocks, blocks},
			"of one server only": {blocks[:2], nil},
		} {
			left := maps.Clone(files)
			for i, root := range []string{"tserver/", "twin/"} {
				for _, name := range gone[i] {
					delete(left, root+name)
				}
			}
			if got := savedOf(t, left, table); !slices.Equal(got, want) {
				t.Errorf("%s, gone: %s: %d rows, want %d", table, what, len(got), len(want))
			}
		}
	}
}

// TestCorpusLogOfAnotherReplica: of two servers that have a tablet, one has its blocks, of which some are damaged, or
// an older log; the other one has none, and the complete log. The rows are those of that log, and nothing says that
// the tablet is behind. If neither has the complete log, the blocks are read, and the tablet is.
func TestCorpusLogOfAnotherReplica(t *testing.T) {
	dir := corpus(t)
	whole, f, tablets := archive(t, "fs_file")
	both := otherServer(t, whole, f, "twin")
	for _, table := range []string{"d_alter", "d_wal", "d_rowset"} {
		id := tablets[table].ID
		log := "/wal/wals/" + id + "/wal-000000001"
		files := maps.Clone(both)
		maps.DeleteFunc(files, func(name string, _ []byte) bool {
			return strings.HasSuffix(name, "/consensus-meta/"+id)
		})
		want := expected(t, dir, table, "final")
		var blocks []string
		f, all := layout(t, store.NewMemory(whole))
		for _, places := range blocksOf(t, f, all, table) {
			for _, at := range places {
				blocks = append(blocks, strings.TrimPrefix(at.Object, "tserver/"))
			}
		}
		slices.Sort(blocks)
		blocks = slices.Compact(blocks)
		for _, name := range blocks {
			delete(files, "twin/"+name)
		}
		if files["twin"+log] == nil || files["tserver"+log] == nil {
			t.Fatal("no logs of " + table)
		}
		damaged := 0
		for n, name := range blocks {
			left := maps.Clone(files)
			b := slices.Clone(left["tserver/"+name])
			b[len(b)/2] ^= 0x55
			left["tserver/"+name] = b
			if n%3 == 1 { // only one of the two servers has the log
				delete(left, "tserver"+log)
			}
			damaged++
			if got := savedOf(t, left, table); !slices.Equal(got, want) {
				t.Errorf("%s, %s is damaged: %d rows, want %d", table, name, len(got), len(want))
			}
		}
		for _, size := range []int{0, len(files["tserver"+log]) / 2} {
			left := maps.Clone(files)
			if left["tserver"+log] = left["tserver"+log][:size]; size == 0 {
				delete(left, "tserver"+log)
			}
			got := savedOf(t, left, table)
			behind := func(files map[string][]byte) bool {
				tb, err := stoa.Open(t.Context(), "#"+table,
					stoa.OpenOptions{Tree: store.NewMemory(files), Recover: true})
				if err != nil {
					t.Fatal(err)
				}
				defer tb.Close()
				return reported(tb.Findings(), "kudu.replica.behind", "")
			}
			if !slices.Equal(got, want) || behind(left) {
				t.Errorf("%s, a log of %d bytes: %d rows, want %d; behind: %t", table, size, len(got), len(want),
					behind(left))
			}
			at := batchesOf(left["twin"+log])
			left["twin"+log] = slices.Concat(left["twin"+log][:at[0]], left["twin"+log][at[2]:])
			if table == "d_wal" && !behind(left) {
				t.Errorf("%s, a log of %d bytes and one without its beginning: nothing says that it is behind", table,
					size)
			}
		}
		if damaged < 10 {
			t.Error(table, damaged)
		}
	}
}

// TestCorpusLogWithoutSuperblock: of two servers that have a tablet, one lacks the log, and so the operations that were
// not flushed, and the other has the complete log alone, without a superblock. The rows are those of the log.
func TestCorpusLogWithoutSuperblock(t *testing.T) {
	dir := corpus(t)
	whole, f, tablets := archive(t, "fs_file")
	both := otherServer(t, whole, f, "twin")
	fewer := 0
	for _, table := range []string{"d_alter", "d_wal", "d_rowset", "d_raw", "d_major"} {
		id := tablets[table].ID
		want := expected(t, dir, table, "final")
		blocks := map[string]bool{}
		_, all := layout(t, store.NewMemory(whole))
		for _, places := range blocksOf(t, f, all, table) {
			for _, at := range places {
				blocks[strings.TrimPrefix(at.Object, "tserver/")] = true
			}
		}
		left := maps.Clone(both)
		maps.DeleteFunc(left, func(name string, _ []byte) bool {
			of, twin := strings.CutPrefix(name, "twin/")
			return strings.HasSuffix(name, "/consensus-meta/"+id) || twin && blocks[of] ||
				twin && strings.HasSuffix(of, "/tablet-meta/"+id) || !twin && strings.Contains(name, "/wals/"+id+"/")
		})
		alone := maps.Clone(left)
		maps.DeleteFunc(alone, func(name string, _ []byte) bool { return strings.HasPrefix(name, "twin/") })
		if !slices.Equal(savedOf(t, alone, table), want) {
			fewer++
		}
		if got := savedOf(t, left, table); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", table, len(got), len(want))
		}
	}
	if fewer == 0 {
		t.Error("no table had operations that were not flushed")
	}
}

// batchesOf returns where the batches of a segment of a log begin.
func batchesOf(b []byte) (at []int) {
	next := 12 + int(binary.LittleEndian.Uint32(b[8:]))
	for next+16 <= len(b) && binary.LittleEndian.Uint32(b[next:]) > 0 {
		at = append(at, next)
		next += 16 + int(binary.LittleEndian.Uint32(b[next:]))
	}
	return at
}
