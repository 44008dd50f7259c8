package kudu_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// foreign returns the files with a data directory's instance file as another server's.
func foreign(files map[string][]byte) map[string][]byte {
	out := maps.Clone(files)
	for name, b := range files {
		if path.Base(name) == "block_manager_instance" {
			f, _ := kudu.InstanceOf(b)
			out[name] = kudu.Renamed(b, map[string]string{f: strings.Repeat("5", 32)})
		}
	}
	return out
}

// TestForeignDataDirectory: blocks are not taken from a data directory that the superblocks do not list, although it
// has blocks with the ids that they name; beside the server's own directory it changes no row. It is always reported.
func TestForeignDataDirectory(t *testing.T) {
	for dir, table := range map[string]string{"testdata/file": "autoinc", "testdata/log": "ranges",
		"testdata/history": "d_major"} {
		files := load(t, dir)
		opts := map[string]string{"partial": "true"}
		want, err := scan(t, store.NewMemory(files), "#"+table, opts, stoa.ScanSpec{})
		if err != nil || len(want.cells) == 0 {
			t.Fatal(dir, err)
		}
		other := foreign(files)
		got, err := scan(t, store.NewMemory(other), "#"+table, opts, stoa.ScanSpec{})
		if !errors.Is(err, fault.Corrupt) || len(got.cells) > 0 {
			t.Errorf("%s: %d rows of another server, %v", dir, len(got.cells), err)
		}
		bad, _ := findings(t, store.NewMemory(other), "", "")
		if s := codes(bad, region.Error); !strings.Contains(s, "kudu.datadir.foreign") {
			t.Errorf("%s: %s", dir, s)
		}
		both := maps.Clone(files)
		for name, b := range other {
			if rest, ok := strings.CutPrefix(name, "data/"); ok {
				if path.Base(name) != "block_manager_instance" && len(b) > 100 && path.Ext(name) != ".metadata" {
					b = flipped(b, int64(len(b)/2))
				}
				both["a/"+rest], both["z/"+rest] = b, b // sorted before and after the server's own
			}
		}
		got, err = scan(t, store.NewMemory(both), "#"+table, opts, stoa.ScanSpec{})
		if err != nil || fmt.Sprint(got.lines()) != fmt.Sprint(want.lines()) {
			t.Errorf("%s: beside another server's: %d of %d rows, %v", dir, len(got.cells), len(want.cells), err)
		}
		if s := codes(got.findings, region.Error); !strings.Contains(s, "kudu.datadir.foreign") {
			t.Errorf("%s: beside another server's: %s", dir, s)
		}
	}
}

// TestBlockTwice: another container has a sound block with the id of a block. The rows are those of the right block or,
// if nothing tells which it is, lost; they are never those of the other.
func TestBlockTwice(t *testing.T) {
	files := load(t, "testdata/log")
	f, tablets := layout(t, store.NewMemory(files))
	type block struct {
		id    uint64
		bytes []byte
	}
	var blocks []block
	tables := map[string][]string{}
	opts := map[string]string{"partial": "true"}
	for _, tb := range tablets {
		for i := range tb.RowSets {
			for _, b := range tb.RowSets[i].Blocks() {
				p, err := f.PlaceOf(t.Context(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, block{b.ID, files[p.At.Object][p.At.Off:p.At.End()]})
			}
		}
		if want, err := scan(t, store.NewMemory(files), "#"+tb.Table, opts, stoa.ScanSpec{}); err == nil {
			tables[tb.Table] = want.lines()
		}
	}
	right, told := 0, 0
	for _, x := range blocks {
		for _, y := range blocks {
			for _, name := range []string{"0", "f"} { // before and after all others
				two := maps.Clone(files)
				name = "data/data/" + strings.Repeat(name, 32)
				two[name+".data"] = y.bytes
				two[name+".metadata"] = kudu.ContainerFile(2, "kudu.BlockRecordPB",
					kudu.Record(x.id, 1, 0, int64(len(y.bytes))))
				for table, want := range tables {
					got, err := scan(t, store.NewMemory(two), "#"+table, opts, stoa.ScanSpec{})
					switch {
					case err == nil && slices.Equal(got.lines(), want):
						right++
					case errors.Is(err, fault.Corrupt):
						told++
					default:
						t.Errorf("block %d, and block %d under its id: %d of %d rows, %v", x.id, y.id, len(got.cells),
							len(want), err)
					}
				}
			}
		}
	}
	t.Logf("%d right, %d told", right, told)
	if right < 10*told {
		t.Errorf("only %d times the right block was found, %d times not", right, told)
	}
}

// TestCopiesThatDiffer: two copies of a server are read as one. If a sound block of one is another block than that with
// the same id in the other, verify says so.
func TestCopiesThatDiffer(t *testing.T) {
	files := load(t, "testdata/history")
	var names []string
	for name, b := range files {
		if len(path.Base(name)) == 16 && len(b) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, x := range names {
		two := map[string][]byte{}
		for name, b := range files {
			two["a/"+name], two["b/"+name] = b, b
		}
		before, _ := findings(t, store.NewMemory(two), "", "")
		if codes(before, region.Error) != "" {
			t.Fatal(codes(before, region.Error))
		}
		for k := 1; k < len(names); k += 9 {
			y := names[(i+k)%len(names)]
			if two["b/"+x] = files[y]; bytes.Equal(files[x], files[y]) {
				continue
			}
			if bad, _ := findings(t, store.NewMemory(two), "", ""); len(bad) <= len(before) {
				t.Errorf("%s in the place of %s is not reported", y, x)
			}
		}
	}
}

// TestRowsOfBlocksWithoutRecords: where no record says which blocks are in a container, no more rows are said to be in
// them than the rowsets had.
func TestRowsOfBlocksWithoutRecords(t *testing.T) {
	files := load(t, "testdata/log")
	_, tablets := layout(t, store.NewMemory(files))
	rows := int64(0)
	for _, tb := range tablets {
		rows += max(0, tb.Rows())
	}
	for name := range files {
		if path.Ext(name) == ".metadata" {
			delete(files, name)
		}
	}
	all, _ := findings(t, store.NewMemory(files), "", "")
	told := 0
	for _, x := range all {
		var blocks, n int64
		if x.Code != "kudu.block.unclaimed" {
			continue
		}
		if _, err := fmt.Sscanf(x.Message, "%d blocks hold columns of at least %d rows", &blocks, &n); err != nil {
			t.Fatal(x.Message, err)
		}
		if told++; n <= 0 || n > rows {
			t.Errorf("%d rows, but the rowsets had %d", n, rows)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
