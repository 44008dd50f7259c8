package kudu_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
)

// Three copies of a server's directory with different damage: every table is read completely. Blocks damaged in all
// three are lost, and reported.
func TestCorpusReplicas(t *testing.T) {
	dir := corpus(t)
	one := load(t, filepath.Join(dir, "fs_log"))
	f, tablets := layout(t, store.NewMemory(one))
	copies := map[string][]byte{}
	for _, root := range []string{"a", "b", "c"} {
		for name, b := range one {
			copies[root+"/"+name] = b
		}
	}
	hit := func(files map[string][]byte, root, object string, at int64) {
		files[root+"/"+object] = flipped(files[root+"/"+object], at)
	}
	for i, table := range tableNames(tablets) {
		files := maps.Clone(copies)
		n := 0
		blocks := blocksOf(t, f, tablets, table)
		for _, kind := range slices.Sorted(maps.Keys(blocks)) {
			for k, at := range blocks[kind] {
				n++
				root := string("abc"[(n+i)%3])
				other := string("abc"[(n+i+1)%3])
				hit(files, root, at.Object, at.Off+20) // the first page
				if !slices.Contains([]string{"undo", "redo", "adhoc-index", "k", "id"}, kind) {
					// the footer, but not of blocks that identify rowsets as twins
					hit(files, other, at.Object, at.End()-20)
				}
				if kind != "bloom" && at.Len > 9000 && k == 0 && n%2 == 0 { // somewhere inside
					hit(files, string("abc"[(n+i+2)%3]), at.Object, at.Off+at.Len*2/3)
				}
			}
		}
		rows, lost, err := readAll(t, store.NewMemory(files), "#"+table, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil {
			t.Fatal(table, err)
		}
		if len(lost) > 0 {
			t.Errorf("%s: %d losses, the first: %+v", table, len(lost), lost[0])
		}
		compare(t, rows, final(t, dir, table))
	}

	// the same page in all three
	files := maps.Clone(copies)
	at := blocksOf(t, f, tablets, "key_int32")["v"][0]
	for _, root := range []string{"a", "b", "c"} {
		hit(files, root, at.Object, at.Off+40)
	}
	tree := store.NewMemory(files)
	rows, lost, err := readAll(t, tree, "#key_int32", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if err != nil {
		t.Fatal(err)
	}
	if gone := missing(t, rows, expected(t, dir, "key_int32", "final")); len(gone) == 0 ||
		int64(len(gone)) != lostRows(t, lost) {
		t.Errorf("%d rows are missing: %+v", len(gone), lost)
	}
	if _, _, err = readAll(t, tree, "#key_int32", nil, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Error(err)
	}

	// one copy is without its containers' records, another without superblocks
	files = maps.Clone(copies)
	for name := range copies {
		if filepath.Ext(name) == ".metadata" && name[0] == 'a' || name[0] == 'b' &&
			slices.ContainsFunc(tablets, func(tb *kudu.Tablet) bool { return "b/"+tb.Object == name }) {
			delete(files, name)
		}
	}
	rows, lost, err = readAll(t, store.NewMemory(files), "#d_raw", nil, stoa.ScanSpec{})
	if err != nil || len(lost) > 0 {
		t.Fatal(err, lost)
	}
	compare(t, rows, expected(t, dir, "d_raw", "final"))
}

// TestCorpusFillByKey: the rowsets of two servers that flushed independently are not twins, because their changes have
// different times; cells are then found by key. The replicas are made from two runs of the generator, with the same
// rows at the end.
func TestCorpusFillByKey(t *testing.T) {
	dir := corpus(t)
	one, two := load(t, filepath.Join(dir, "fs_file")), load(t, filepath.Join(dir, "fs_log"))
	f, tablets := layout(t, store.NewMemory(one))
	_, others := layout(t, store.NewMemory(two))
	for _, table := range []string{"d_raw", "d_major", "ck", "d_alter", "key_all"} {
		tb, files := twoServers(one, two, tablets, others, table)
		n := 0
		blocks := blocksOf(t, f, tablets, table)
		for _, column := range slices.Sorted(maps.Keys(blocks)) {
			if i := tb.Schema.FindName(column); i < 0 || tb.Schema.NumKeys == 1 && i == 0 {
				continue
			}
			for k, at := range blocks[column] {
				switch n++; (n + k) % 4 {
				case 0: // a page
					files["a/"+at.Object] = flipped(files["a/"+at.Object], at.Off+20)
				case 1: // the footer
					files["a/"+at.Object] = flipped(files["a/"+at.Object], at.End()-20)
				case 2: // all of it
					delete(files, "a/"+at.Object)
				case 3:
					b := files["a/"+at.Object]
					files["a/"+at.Object] = append(bytes.Clone(b[:at.Off+16]),
						bytes.Repeat([]byte{0}, int(at.Len)-16)...)
				}
			}
		}
		if _, ok := files["a/"+tb.Object]; !ok || n < 4 {
			t.Fatal(n)
		}
		tree := store.NewCounter(store.NewMemory(files))
		rows, losses, err := readAll(t, tree, "#"+tb.TableID, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil {
			t.Fatal(table, err)
		}
		if len(losses) > 0 {
			t.Errorf("%s: %d losses, the first: %+v", table, len(losses), losses[0])
		}
		compare(t, rows, final(t, dir, table))
		damaged, sound := 0, 0 // counts of columns read: damaged ones, and the same ones on the other server
		for column, places := range blocks {
			if i := tb.Schema.FindName(column); i < 0 || tb.Schema.NumKeys == 1 && i == 0 {
				continue
			}
			for _, at := range places {
				damaged += tree.Opens("a/" + at.Object)
			}
		}
		for _, r := range tree.Reads() {
			if strings.HasPrefix(r.Name, "b/data/") {
				sound++
			}
		}
		if damaged == 0 || sound == 0 {
			t.Errorf("%s: %d of the damaged files were opened, %d reads of the other server's data: nothing was filled",
				table, damaged, sound)
		}
	}
}

// twoServers returns the files of two servers, a/ and b/, that hold the same table and flushed it independently, and
// the tablet of a. A bloom file of b is missing, so that a is read.
func twoServers(one, two map[string][]byte, tablets, others []*kudu.Tablet, table string) (*kudu.Tablet,
	map[string][]byte) {
	find := func(ts []*kudu.Tablet) *kudu.Tablet {
		return ts[slices.IndexFunc(ts, func(tb *kudu.Tablet) bool { return tb.Table == table })]
	}
	tb, other := find(tablets), find(others)
	files := map[string][]byte{}
	for name, b := range one {
		files["a/"+name] = b
	}
	for name, b := range two {
		files["b/"+name] = b
	}
	delete(files, "b/"+other.Object)
	bloom := func(id uint64) string { return string(binary.LittleEndian.AppendUint64(nil, id)) }
	files["b/"+filepath.Dir(other.Object)+"/"+tb.ID] = kudu.Renamed(two[other.Object],
		map[string]string{other.ID: tb.ID, other.TableID: tb.TableID,
			bloom(other.RowSets[0].Bloom.ID): bloom(1 << 40)})
	return tb, files
}

// TestCorpusIndexLeaf damages one leaf of the positional index of a column. Only the rows of its blocks are lost; if a
// copy of the server, or another server with the same rows, has them, none is.
func TestCorpusIndexLeaf(t *testing.T) {
	dir := corpus(t)
	one, two := load(t, filepath.Join(dir, "fs_file")), load(t, filepath.Join(dir, "fs_log"))
	f, tablets := layout(t, store.NewMemory(one))
	_, others := layout(t, store.NewMemory(two))
	leaves := 0
	for _, at := range blocksOf(t, f, tablets, "btree")["w"] {
		l, err := kudugen.Walk(one[at.Object][at.Off:at.End()])
		if err != nil {
			t.Fatal(err)
		}
		var nodes []kudugen.Block // the root is the last
		for _, b := range l.Blocks {
			if b.Kind == "posidx" {
				nodes = append(nodes, b)
			}
		}
		bad := func(b kudugen.Block) []byte { return flipped(one[at.Object], at.Off+b.Off+b.Len/2) }
		gone := 0
		for i, b := range nodes[:len(nodes)-1] {
			leaves++
			files := maps.Clone(one)
			files[at.Object] = bad(b)
			skip := stoa.ScanSpec{Damaged: stoa.SkipRows}
			rows, lost, err := readAll(t, store.NewMemory(files), "#btree", nil, skip)
			if err != nil {
				t.Fatal(err)
			}
			n := len(missing(t, rows, expected(t, dir, "btree", "final")))
			if gone += n; n == 0 || int64(n) != lostRows(t, lost) {
				t.Errorf("leaf %d: %d rows are missing: %+v", i, n, lost)
			}

			for name, b := range one { // a copy, in which another leaf is damaged
				files["copy/"+name] = b
				files["own/"+name] = b
				delete(files, name)
			}
			files["own/"+at.Object], files["copy/"+at.Object] = bad(b), bad(nodes[(i+1)%(len(nodes)-1)])
			wholeTable(t, files, "#btree", final(t, dir, "btree"))

			tb, files := twoServers(one, two, tablets, others, "btree")
			files["a/"+at.Object] = bad(b)
			wholeTable(t, files, "#"+tb.TableID, final(t, dir, "btree"))
		}
		if all := len(final(t, dir, "btree")); gone != all {
			t.Errorf("the leaves cost %d rows of %d", gone, all)
		}
	}
	if leaves < 2 {
		t.Errorf("only %d leaves", leaves)
	}
}

// wholeTable checks that a table is read without a loss.
func wholeTable(t *testing.T, files map[string][]byte, uri string, want []string) {
	t.Helper()
	rows, lost, err := readAll(t, store.NewMemory(files), uri, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if err != nil || len(lost) > 0 {
		t.Fatalf("%v: %d losses: %+v", err, len(lost), lost)
	}
	compare(t, rows, want)
}

// TestCorpusLatestReplica: the replica with the latest operation is read, whatever blocks it lacks. A log that ends
// before the latest flushed operation is reported.
func TestCorpusLatestReplica(t *testing.T) {
	dir := corpus(t)
	one := kudu.Unpack(t, filepath.Join(dir, "fs_file", "full_with_wal.tar.zst"))
	f, tablets := layout(t, store.NewMemory(one))
	tb := tablets[slices.IndexFunc(tablets, func(tb *kudu.Tablet) bool { return tb.Table == "d_wal" })]
	blocks := blocksOf(t, f, tablets, "d_wal")
	want := expected(t, dir, "d_wal", "final")
	segment := "tserver/wal/wals/" + tb.ID + "/wal-000000001"
	if one[segment] == nil {
		t.Fatal("there is no log")
	}
	two := map[string][]byte{} // a without the log, b whole but for a bloom file
	for name, b := range one {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			two["b/"+rest] = b
			if name != segment {
				two["a/"+rest] = b
			}
		}
	}
	in := func(at fault.Span) string { return "b/" + strings.TrimPrefix(at.Object, "tserver/") }
	delete(two, in(blocks["bloom"][0]))
	rows, lost, err := readAll(t, store.NewMemory(two), "#d_wal", nil, stoa.ScanSpec{})
	if err != nil || len(lost) > 0 {
		t.Fatal(err, lost)
	}
	compare(t, rows, want)

	cut := with(one, segment, one[segment][:34982])
	short := openedIn(t, cut, "#d_wal", nil)
	rowsOf(t, short, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if !slices.ContainsFunc(short.Findings(),
		func(x region.Finding) bool { return x.Code == "kudu.wal.short" && x.Severity == region.Error }) {
		t.Errorf("%+v", short.Findings())
	}
}

// Three copies of one server, each with other blocks, and no block in two of them: their superblocks prove that they
// are copies.
func TestCorpusCopiesWithNothingInCommon(t *testing.T) {
	dir := corpus(t)
	one, f, tablets := archive(t, "fs_file")
	files := map[string][]byte{}
	for _, root := range []string{"a", "b", "c"} {
		for name, b := range one {
			if strings.HasPrefix(name, "tserver/") {
				files[root+"/"+name] = b
			}
		}
	}
	n := 0
	for i := range tablets["d_wal"].RowSets {
		for _, b := range tablets["d_wal"].RowSets[i].Blocks() {
			p, err := f.PlaceOf(t.Context(), tablets["d_wal"], b.BlockRef)
			if err != nil {
				t.Fatal(err)
			}
			for k, root := range []string{"a", "b", "c"} {
				if n%3 != k {
					delete(files, root+"/"+p.At.Object)
				}
			}
			n++
		}
	}
	got, err := scan(t, store.NewMemory(files), "#d_wal", nil, stoa.ScanSpec{})
	if err != nil || len(got.lost) > 0 || codes(got.findings, region.Error) != "" {
		t.Fatal(err, got.lost, got.findings)
	}
	compare(t, got.lines(), expected(t, dir, "d_wal", "final"))
	if n != 33 {
		t.Errorf("%d blocks", n)
	}
}

// Of two copies of a server, one has the log of another tablet, whichever: the whole copy is read, in either order.
func TestCorpusForeignLog(t *testing.T) {
	dir := corpus(t)
	one := kudu.Unpack(t, filepath.Join(dir, "fs_file", "full_with_wal.tar.zst"))
	_, tablets := layout(t, store.NewMemory(one))
	log := func(tb *kudu.Tablet) string { return "tserver/wal/wals/" + tb.ID + "/wal-000000001" }
	tb := tablets[slices.IndexFunc(tablets, func(tb *kudu.Tablet) bool { return tb.Table == "d_wal" })]
	want := expected(t, dir, "d_wal", "final")
	tried := 0
	for _, other := range tablets {
		if tried == 3 || other == tb || one[log(other)] == nil {
			continue
		}
		tried++
		for _, bad := range []string{"a", "b"} {
			two := map[string][]byte{}
			for name, b := range one {
				if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
					two["a/"+rest], two["b/"+rest] = b, b
				}
			}
			two[bad+strings.TrimPrefix(log(tb), "tserver")] = one[log(other)]
			tree := store.NewMemory(two)
			rows, lost, err := readAll(t, tree, "#d_wal", nil, stoa.ScanSpec{})
			if err != nil || len(lost) > 0 {
				t.Fatalf("the log of %s in %s: %v %v", other.Table, bad, err, lost)
			}
			compare(t, rows, want)
			told := false
			for x, err := range stoa.Verify(t.Context(), "#d_wal", stoa.OpenOptions{Tree: tree}) {
				if err != nil {
					t.Fatal(err)
				}
				told = told || x.Code == "kudu.wal.header" && strings.HasPrefix(x.At.Object, bad+"/")
			}
			if !told {
				t.Errorf("the log of %s in %s is not told", other.Table, bad)
			}
		}
	}
	if tried < 3 {
		t.Fatal(tried)
	}
}
