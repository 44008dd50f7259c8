package kudu_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// load reads the files below dir, by their names relative to it.
func load(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, ".zst") {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// with is a tree of files with one of them replaced; nil removes it.
func with(files map[string][]byte, name string, b []byte) *store.Memory {
	out := maps.Clone(files)
	if b == nil {
		delete(out, name)
	} else {
		out[name] = b
	}
	return store.NewMemory(out)
}

// flipped returns a copy of b with a bit of one byte flipped.
func flipped(b []byte, at int64) []byte {
	out := bytes.Clone(b)
	out[at] ^= 0x10
	return out
}

// layout returns the tablet server of a tree, with its tablets.
func layout(t testing.TB, tree store.Tree) (*kudu.FS, []*kudu.Tablet) {
	t.Helper()
	ctx := context.Background()
	ls, err := kudu.FindServers(ctx, tree, "", kudu.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ls {
		f, err := kudu.OpenFS(ctx, tree, l, kudu.FSOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tablets, err := f.Tablets(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(tablets) > 1 || tablets[0].Table != "sys.catalog" {
			return f, tablets
		}
	}
	t.Fatal("no tablet server")
	return nil, nil
}

// blocksOf returns the blocks of a table's rowsets by kind: redo, undo, bloom, adhoc-index, or the column's name.
func blocksOf(t testing.TB, f *kudu.FS, tablets []*kudu.Tablet, table string) map[string][]fault.Span {
	t.Helper()
	out := map[string][]fault.Span{}
	for _, tb := range tablets {
		if tb.Table != table {
			continue
		}
		for i := range tb.RowSets {
			for _, b := range tb.RowSets[i].Blocks() {
				p, err := f.PlaceOf(context.Background(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				kind := b.Kind
				if kind == "column" {
					kind = tb.Schema.NameOf(b.Column)
				}
				out[kind] = append(out[kind], p.At)
			}
		}
	}
	return out
}

// readAll reads a table: its rows, and the losses.
func readAll(t testing.TB, tree store.Tree, uri string, opts map[string]string, spec stoa.ScanSpec) (rows []string,
	lost []region.Loss, err error) {
	t.Helper()
	tb, err := stoa.Open(context.Background(), uri,
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree})
	if err != nil {
		return nil, nil, err
	}
	defer tb.Close()
	spec.Lost = func(l region.Loss) { lost = append(lost, l) }
	for b, err := range tb.Scan(context.Background(), spec) {
		if err != nil {
			return rows, lost, err
		}
		rows = append(rows, lines(b)...)
	}
	return rows, lost, nil
}

// missing returns the rows of want that are not in got; every row of got must be in want, which is sorted.
func missing(t testing.TB, got, want []string) (out []string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	for _, g := range got {
		if _, ok := slices.BinarySearch(want, g); !ok {
			t.Fatalf("a row that was never there: %.300s", g)
		}
	}
	for _, w := range want {
		if _, ok := slices.BinarySearch(got, w); !ok {
			out = append(out, w)
		}
	}
	return out
}

// lostRows returns the number of rows in losses; each loss must be exact, and have a file and a tablet.
func lostRows(t testing.TB, lost []region.Loss) (n int64) {
	t.Helper()
	for _, l := range lost {
		var e *fault.Error
		if l.Rows[1] == -1 && !l.Exact { // unknown, as no block of the rowset is left
			n += 1 << 40
			continue
		}
		if !l.Exact || l.Part == "" || l.Rows[1] <= l.Rows[0] || !errors.As(l.Err, &e) ||
			e.Class != fault.Corrupt || e.At.Object == "" {
			t.Errorf("loss %+v", l)
		}
		n += l.Rows[1] - l.Rows[0]
	}
	return n
}

// One byte of a block of each kind is changed. The rest of the table is read, and the losses cover everything else.
func TestCorpusFlippedBlocks(t *testing.T) {
	dir := corpus(t)
	for _, run := range []struct{ name, place string }{{"file_ck", "fs_file"}, {"log_ck", "fs_log"}} {
		files := load(t, filepath.Join(dir, run.place))
		times := snapshots(t, dir, run.name)
		f, tablets := layout(t, store.NewMemory(files))
		for _, x := range []struct{ table, phase, kind string }{
			{"key_int32", "final", "k"}, {"key_int32", "final", "v"}, {"part", "final", "v"}, {"ck", "final", "s"},
			{"ck", "final", "w"}, {"ck", "final", "bloom"},
			{"ck", "final", "adhoc-index"}, {"btree", "final", "k"}, {"btree", "final", "w"},
			{"d_raw", "final", "redo"}, {"d_raw", "final", "b"}, {"d_minor", "final", "redo"},
			{"d_major", "p0", "undo"}, {"d_major", "p2", "undo"}, {"d_major", "final", "undo"},
			{"d_alter", "final", "redo"}, {"matrix", "final", "string_dict_lz4"},
			{"matrix", "final", "decimal38_plain_zlib_null"},
		} {
			opts := map[string]string{}
			if x.phase != "final" {
				opts["at"] = times[x.phase]
			}
			all := blocksOf(t, f, tablets, x.table)[x.kind]
			if len(all) == 0 {
				t.Errorf("%s has no %s", x.table, x.kind)
				continue
			}
			want := expected(t, dir, x.table, x.phase)
			for i, at := range all {
				if testing.Short() && i > 1 {
					break
				}
				t.Run(run.place+"/"+x.table+"."+x.phase+"/"+x.kind, func(t *testing.T) {
					// The header has 16 bytes; then comes the first block.
					tree := with(files, at.Object, flipped(files[at.Object], at.Off+40))
					rows, lost, err := readAll(t, tree, "#"+x.table, opts, stoa.ScanSpec{Damaged: stoa.SkipRows})
					if err != nil {
						t.Fatal(err)
					}
					gone, n := missing(t, rows, want), lostRows(t, lost)
					// The second UNDO file of d_major has the insertions, which precede the snapshots. The ad-hoc index
					// has all keys.
					idle := x.kind == "s" || x.kind == "bloom" || x.table == "d_major" && i == 1 ||
						x.kind == "adhoc-index" || x.kind == "undo" && x.phase == "final"
					if idle && (len(gone) > 0 || n > 0) {
						t.Errorf("%d rows are missing, %d lost, although the block is not needed", len(gone), n)
					}
					if int64(len(gone)) > n || !idle && len(lost) == 0 {
						t.Errorf("%d rows are missing, %d reported as lost: %v", len(gone), n, lost)
					}
					if !idle && strings.HasPrefix(x.table, "key") && int64(len(gone)) != n {
						t.Errorf("%d rows are missing, %d reported as lost", len(gone), n)
					}
					_, _, err = readAll(t, tree, "#"+x.table, opts, stoa.ScanSpec{})
					if idle != (err == nil) || err != nil && !errors.Is(err, fault.Corrupt) {
						t.Errorf("with policy fail: %v", err)
					}
					if len(lost) > 0 && !slices.Contains([]string{"redo", "undo", lost[0].Column}, x.kind) {
						t.Errorf("column %q is blamed", lost[0].Column)
					}
				})
			}
		}
	}
}

// tablesOf returns the tables with blocks in a file.
func tablesOf(t testing.TB, f *kudu.FS, tablets []*kudu.Tablet, object string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, tb := range tablets {
		for i := range tb.RowSets {
			for _, b := range tb.RowSets[i].Blocks() {
				p, err := f.PlaceOf(context.Background(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				if p.At.Object == object {
					out[tb.Table] = true
				}
			}
		}
	}
	return out
}

// tableNames returns the names of the tables of tablets, sorted.
func tableNames(tablets []*kudu.Tablet) (out []string) {
	for _, tb := range tablets {
		out = append(out, tb.Table)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// final returns the rows of a table without its log; the last changes of d_wal are only in the log.
func final(t testing.TB, dir, table string) []string {
	if table == "d_wal" {
		return expected(t, dir, table, "p4")
	}
	return expected(t, dir, table, "final")
}

// TestCorpusDamagedContainers: the metadata of a container, its end, or all of its blocks are gone. Tables without
// blocks there are read completely, the others as far as possible, and losses are reported.
func TestCorpusDamagedContainers(t *testing.T) {
	dir := corpus(t)
	files := load(t, filepath.Join(dir, "fs_log"))
	f, tablets := layout(t, store.NewMemory(files))
	tried, hit := 0, 0
	every, least := 40, 15
	if testing.Short() {
		every, least = 160, 4
	}
	for i, c := range f.Containers {
		if i%every != 0 || c.Size == 0 {
			continue
		}
		touched := tablesOf(t, f, tablets, c.Data)
		for what, tree := range map[string]*store.Memory{
			"no metadata": with(files, c.Metadata, nil),
			"no data":     with(files, c.Data, nil),
			"truncated":   with(files, c.Data, files[c.Data][:c.Size/2]),
		} {
			tried++
			want := map[string]string{"no metadata": "kudu.container.missing", "no data": "kudu.container.missing",
				"truncated": "kudu.container.truncated"}[what]
			if hurt, _ := layout(t, tree); !slices.ContainsFunc(hurt.Findings, func(x region.Finding) bool {
				return x.Code == want && x.Severity == region.Error && strings.Contains(x.At.Object, c.Name)
			}) {
				t.Errorf("%s %s: %+v", what, c.Name, hurt.Findings)
			}
			for _, table := range tableNames(tablets) {
				if !touched[table] && table != "part" && table != "key_int32" {
					continue
				}
				t.Run(what+"/"+c.Name+"/"+table, func(t *testing.T) {
					rows, lost, err := readAll(t, tree, "#"+table, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
					if err != nil {
						t.Fatal(err)
					}
					if !touched[table] {
					} else if _, more, err := readAll(t, tree, "#"+table, nil,
						stoa.ScanSpec{Damaged: stoa.NullCells}); err != nil || len(more) != len(lost) {
						t.Errorf("null-cells: %v, %d losses instead of %d", err, len(more), len(lost))
					}
					gone, n := missing(t, rows, final(t, dir, table)), lostRows(t, lost)
					if int64(len(gone)) > n || !touched[table] && n > 0 {
						t.Errorf("%d rows are missing, %d reported as lost", len(gone), n)
					}
					if n > 0 {
						hit++
					}
				})
			}
		}
	}
	t.Logf("%d damaged directories, %d damaged tables", tried, hit)
	if tried < least || hit < least {
		t.Errorf("%d directories, %d tables; want %d or more", tried, hit, least)
	}
}

// TestCorpusLostSuperblocks: if a superblock is gone or damaged, the table's other tablets are read, and the gap is an
// error finding; without other tablets the table cannot be opened. With partial=true the same is read without the
// finding. Other tables are not affected.
func TestCorpusLostSuperblocks(t *testing.T) {
	dir := corpus(t)
	files := load(t, filepath.Join(dir, "fs_log"))
	_, tablets := layout(t, store.NewMemory(files))
	tried := 0
	for _, tb := range tablets {
		if tb.Table != "part" && tb.Table != "key_int8" {
			continue
		}
		for what, tree := range map[string]*store.Memory{"gone": with(files, tb.Object, nil),
			"damaged": with(files, tb.Object, flipped(files[tb.Object], int64(len(files[tb.Object])-50)))} {
			tried++
			t.Run(what+"/"+tb.Table, func(t *testing.T) {
				some, _, err := readAll(t, tree, "#"+tb.Table, nil, stoa.ScanSpec{})
				switch {
				case tb.Table != "part" && err == nil:
					t.Error("read as if nothing were missing")
				case tb.Table == "part" &&
					(err != nil || !reported(openedIn(t, tree, "#part", nil).Findings(), "kudu.tablet.missing",
						"partial=true")):
					t.Error("read as if nothing were missing", err)
				}
				rows, _, err := readAll(t, tree, "#key_int16", nil, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, rows, expected(t, dir, "key_int16", "final"))
				code := map[string]string{"gone": "kudu.superblock.missing", "damaged": "kudu.superblock.damaged"}[what]
				about := func(x region.Finding) bool {
					return x.Code == code && x.Severity == region.Error && x.Part == tb.ID && x.At.Object == tb.Object
				}
				// all tablets of this table are there
				if found := openedIn(t, tree, "#key_int16", nil).Findings(); slices.ContainsFunc(found, about) {
					t.Errorf("%+v", found)
				}
				if found := entries(t, tree, "")["key_int16"].Findings; !slices.ContainsFunc(found, about) {
					t.Errorf("the list: %+v", found)
				}
				if tb.Table != "part" {
					return
				}
				rows, _, err = readAll(t, tree, "#part", map[string]string{"partial": "true"}, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(rows, some) {
					t.Errorf("%d rows, %d without partial", len(rows), len(some))
				}
				// only those of the tablet, about 100
				if gone := missing(t, rows, expected(t, dir, "part", "final")); len(gone) == 0 || len(gone) > 150 {
					t.Errorf("%d rows are missing", len(gone))
				}
			})
		}
	}
	if tried != 10 {
		t.Errorf("%d tried", tried)
	}
}

// TestCorpusLogAndDamagedKeys: a change that is only in the log identifies its row by key. If the key cannot be found
// because of damage, no outdated cell is returned as current, not even if the key column itself is not read.
func TestCorpusLogAndDamagedKeys(t *testing.T) {
	dir := corpus(t)
	files := kudu.Unpack(t, filepath.Join(dir, "fs_file", "full_with_wal.tar.zst"))
	f, tablets := layout(t, store.NewMemory(files))
	spec := stoa.ScanSpec{Columns: []string{"a", "c", "v"}}
	want := rowsOf(t, openedIn(t, store.NewMemory(files), "#d_wal", nil), spec) // equal to expected/: TestCorpusWithLog
	slices.Sort(want)
	n := 0
	for _, at := range blocksOf(t, f, tablets, "d_wal")["id"] {
		for off := int64(20); off < at.Len; off += 97 {
			tree := with(files, at.Object, flipped(files[at.Object], at.Off+off))
			rows, _, err := readAll(t, tree, "#d_wal", nil, spec)
			slices.Sort(rows)
			if err == nil && !slices.Equal(rows, want) {
				t.Fatalf("byte %d of a key block: %d rows instead of %d, or others, and no error", off, len(rows),
					len(want))
			}
			if err != nil && !errors.Is(err, fault.Corrupt) {
				t.Fatal(err)
			}
			if err != nil {
				n++
			}
			spec := spec
			spec.Damaged = stoa.SkipRows
			rows, lost, err := readAll(t, tree, "#d_wal", nil, spec)
			if err != nil {
				t.Fatal(err)
			}
			if gone := missing(t, rows, want); int64(len(gone)) > lostRows(t, lost) {
				t.Fatalf("%d rows are missing, %d reported as lost", len(gone), lostRows(t, lost))
			}
		}
	}
	if n == 0 {
		t.Error("no damage was met: the log changes nothing here")
	}
}
