package kudu_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// blockFiles returns the names of a directory's block files.
func blockFiles(files map[string][]byte) (out []string) {
	for name := range files {
		if strings.Contains(name, "/data/") && len(path.Base(name)) == 16 {
			out = append(out, name)
		}
	}
	return out
}

// TestBlocksAsEveryKind: every block is verified and described as every kind (a delta file as a bloom filter, a column
// of numbers as a delta file), and reported if it cannot be of that kind.
func TestBlocksAsEveryKind(t *testing.T) {
	files := load(t, "testdata/history")
	tree := store.NewMemory(files)
	f, tablets := layout(t, tree)
	kinds := map[string]string{"redo": "delta", "undo": "delta", "bloom": "bloom", "adhoc-index": "index"}
	tried := 0
	for kind, places := range blocksOf(t, f, tablets, "d_major") {
		for _, at := range places {
			for _, as := range []string{"column", "delta", "bloom", "index"} {
				own := as == kinds[kind] || as == "column" && kinds[kind] == ""
				tg := format.Target{Tree: tree, Name: at.Object}
				opts := map[string]string{"kind": as}
				errs := 0
				for x := range cfile.Format.Verify(t.Context(), tg,
					format.OpenOptions{Opts: opts, Depth: format.Deep}) {
					if x.Severity >= region.Error {
						errs++
					}
				}
				if own && errs > 0 || !own && errs == 0 && as != "column" && kinds[kind] == "" {
					t.Errorf("%s of %s as %s: got %d errors", at.Object, kind, as, errs)
				}
				for _, err := range cfile.Format.Describe(t.Context(), tg,
					format.DescribeOptions{OpenOptions: format.OpenOptions{Opts: opts}}) {
					if e, ok := err.(*fault.Error); ok && e.Class == fault.Bug {
						t.Errorf("%s of %s as %s: %v", at.Object, kind, as, err)
					}
				}
				tried++
			}
		}
	}
	if tried < 100 {
		t.Errorf("got %d attempts, want 100 or more", tried)
	}
}

// alike reports whether two CFiles cannot be distinguished by their footers, offsets aside; delta files do not name
// their rowset.
func alike(a, b []byte) bool {
	x, err := cfile.NewReader(bytes.NewReader(a), int64(len(a)), format.OpenOptions{})
	y, bad := cfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
	if err != nil || bad != nil {
		return false
	}
	f, g := x.Footer(), y.Footer()
	if x.Kind() == cfile.KindDelta && y.Kind() == cfile.KindDelta {
		return true
	}
	for _, key := range []string{"min_key", "max_key", "deltafilestats"} {
		v, has := f.Get(key)
		w, too := g.Get(key)
		if has != too || !bytes.Equal(v, w) {
			return false
		}
	}
	return x.Kind() == y.Kind() && f.Type == g.Type && f.Nullable == g.Nullable && f.Encoding == g.Encoding &&
		f.Compression == g.Compression && f.NumValues == g.NumValues
}

// TestExchangedBlocks swaps any two block files of a directory, and copies each over the other. Reading, recovery and
// both depths of verify neither panic nor report an error of class Bug; wrong rows are reported unless the footers do
// not distinguish the files, and verify reports everything that the footers show.
func TestExchangedBlocks(t *testing.T) {
	files := load(t, "testdata/history")
	want := slices.Sorted(maps.Keys(lineSet(expectedLines(t, "testdata", "d_major", "final"))))
	names := slices.Sorted(slices.Values(blockFiles(files)))
	// the keys, the REDO file
	rows := map[string]bool{"0072791677272037": true, "0072791677272227": true, "0072791677272351": true}
	step := 17
	if os.Getenv("STOA_LONG") == "1" {
		step = 1
	}
	clean := verified(t, store.NewMemory(files), format.Sums)
	if len(names) != 31 || clean > 0 {
		t.Fatalf("got %d block files, %d errors in the undamaged directory, want 31, 0", len(names), clean)
	}
	n := 0
	for i, a := range names {
		for k, b := range names {
			for _, swap := range []bool{true, false} {
				if n++; i == k || swap && i > k || n%step != 0 {
					continue
				}
				fewest := 269 // rows of the smaller rowset
				if rows[path.Base(a)] && rows[path.Base(b)] {
					fewest = 0 // each loses the rows of a rowset
				}
				bad := maps.Clone(files)
				if bad[b] = files[a]; swap {
					bad[a] = files[b]
				}
				exchanged(t, fmt.Sprintf("%s to %s, swap %t", path.Base(a), path.Base(b), swap),
					store.NewMemory(bad), want, alike(files[a], files[b]), fewest)
			}
		}
	}
}

func exchanged(t *testing.T, what string, tree store.Tree, want []string, same bool, fewest int) {
	t.Helper()
	for _, depth := range []format.Depth{format.Sums, format.Deep} {
		if verified(t, tree, depth) == 0 && !same {
			t.Errorf("%s: verify of depth %v: got no error, want one", what, depth)
		}
	}
	for _, recover := range []bool{false, true} {
		spec := stoa.ScanSpec{}
		if recover {
			spec.Damaged = stoa.NullCells
		}
		got, err := recovered(t, tree, recover, spec)
		var e *fault.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Class != fault.Corrupt):
			t.Errorf("%s: recover %t: %v", what, recover, err)
		case err != nil && recover:
			t.Errorf("%s: recovery failed: %v", what, err)
		case err != nil || len(got.lost) > 0 || codes(got.findings, region.Error) != "" || same:
		case !slices.Equal(got.lines(), want):
			t.Errorf("%s: recover %t: got %d rows, %d wrong or missing, and no error", what, recover,
				len(got.cells), len(missingOf(got.lines(), want)))
		}
		if recover && err == nil && len(got.cells) < fewest {
			t.Errorf("%s: got %d rows recovered, want %d or more", what, len(got.cells), fewest)
		}
	}
}

// recovered scans d_major, opened for recovery if recover is true.
func recovered(t *testing.T, tree store.Tree, recover bool, spec stoa.ScanSpec) (out scanned, err error) {
	t.Helper()
	tb, err := stoa.Open(t.Context(), "#d_major",
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: tree, Recover: recover})
	if err != nil {
		return out, err
	}
	defer tb.Close()
	spec.Lost = func(l region.Loss) { out.lost = append(out.lost, l) }
	for b, err := range tb.Scan(t.Context(), spec) {
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			row := make([]string, b.NumCols())
			for c := range row {
				row[c] = cell(b.Column(c), i)
			}
			out.cells = append(out.cells, row)
		}
	}
	out.findings = tb.Findings()
	return out, nil
}

// verified returns the number of errors that verify reports; none may be a bug of stoa.
func verified(t *testing.T, tree store.Tree, depth format.Depth) (n int) {
	t.Helper()
	for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: tree}, format.OpenOptions{Depth: depth}) {
		if strings.Contains(x.Message, "panicked") || x.Code == "" {
			t.Errorf("got %+v, want a finding of the file", x)
		}
		// of a block that no row depends on, as that of a bloom file, there is a warning
		if x.Severity >= region.Error || x.Severity == region.Warning && strings.Contains(x.Message, "rows are whole") {
			n++
		}
	}
	return n
}

func lineSet(rows [][]string) map[string]bool {
	out := map[string]bool{}
	for _, r := range rows {
		out[strings.Join(r, " ")] = true
	}
	return out
}

func missingOf(got, want []string) (out []string) {
	for _, w := range want {
		if _, ok := slices.BinarySearch(got, w); !ok {
			out = append(out, w)
		}
	}
	return out
}

// TestRecoverWithoutABlock: a truncated, empty or missing block, or a directory in its place, loses the cells of its
// rows, in recovery as in reading.
func TestRecoverWithoutABlock(t *testing.T) {
	files := load(t, "testdata/history")
	f, tablets := layout(t, store.NewMemory(files))
	all, err := recovered(t, store.NewMemory(files), true, stoa.ScanSpec{Damaged: stoa.NullCells})
	if err != nil || len(all.lost) > 0 || len(all.cells) == 0 {
		t.Fatal(err, len(all.cells), all.lost)
	}
	for column, places := range blocksOf(t, f, tablets, "d_major") {
		if column == "bloom" || column == "redo" || column == "undo" || column == "adhoc-index" {
			continue
		}
		for _, at := range places {
			b := files[at.Object]
			for what, tree := range map[string]*store.Memory{"half": with(files, at.Object, b[:len(b)/2]),
				"empty":  with(files, at.Object, []byte{}),
				"zeroed": with(files, at.Object, make([]byte, len(b))), "missing": with(files, at.Object, nil),
				"directory": directoryAt(files, at.Object)} {
				got, err := recovered(t, tree, true, stoa.ScanSpec{Damaged: stoa.NullCells})
				full := len(all.cells)
				if column == "id" { // rows without keys are lost
					read, err := recovered(t, tree, false, stoa.ScanSpec{Damaged: stoa.NullCells})
					if full = len(read.cells); err != nil {
						t.Error(err)
					}
					if at.Len == 1068 && what == "half" {
						full += 400 // the first block has 512, of which some were deleted
					}
				}
				if err != nil || len(got.cells) < full || len(got.lost) == 0 && what != "half" {
					t.Errorf("%s of %s %s: got %v, %d of %d rows, %d losses", at.Object, column, what, err,
						len(got.cells), len(all.cells), len(got.lost))
				}
			}
		}
	}
}

// TestOtherFileForSuperblock: if a superblock has the bytes of any other file, it is unknown to which table its tablet
// belongs. Opening any table reports that, even a table that is partly elsewhere.
func TestOtherFileForSuperblock(t *testing.T) {
	files := load(t, "testdata/log")
	_, tablets := layout(t, store.NewMemory(files))
	tried := 0
	for _, tb := range tablets {
		if tb.Table != "ranges" {
			continue
		}
		for name, content := range files {
			if name == tb.Object || strings.Contains(name, "/tablet-meta/") {
				continue
			}
			tried++
			tree := with(files, tb.Object, content)
			table, err := stoa.Open(t.Context(), "#ranges", stoa.OpenOptions{Formats: []format.Format{kudu.Format},
				Tree: tree, Opts: map[string]string{"partial": "true"}})
			if err != nil {
				continue
			}
			if found := codes(table.Findings(), region.Error); !strings.Contains(found, "kudu.superblock.damaged") {
				t.Errorf("%s for the superblock of %s: %q", name, tb.ID, found)
			}
			table.Close()
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

// directoryAt returns files with a directory in place of one of them.
func directoryAt(files map[string][]byte, name string) *store.Memory {
	out := maps.Clone(files)
	delete(out, name)
	out[name+"/x"] = []byte("x")
	return store.NewMemory(out)
}

// TestErrorWithoutSuperblocks: without superblocks the error names the option to read the blocks with a schema.
func TestErrorWithoutSuperblocks(t *testing.T) {
	files := load(t, "testdata/history")
	for name := range files {
		if strings.Contains(name, "/tablet-meta/") {
			delete(files, name)
		}
	}
	for _, recover := range []bool{false, true} {
		for _, uri := range []string{"", "#d_major"} {
			_, err := stoa.Open(t.Context(), uri,
				stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: store.NewMemory(files), Recover: recover})
			if err == nil || !strings.Contains(err.Error(), "option schema=FILE") || strings.Contains(err.Error(),
				`""`) {
				t.Errorf("%q: got %v, want an error with option schema=FILE", uri, err)
			}
		}
	}
}
