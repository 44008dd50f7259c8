package kudu_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
)

// archive returns the files of a directory of the corpus with logs, its tablet server, and the tablets by table.
func archive(t testing.TB, run string) (files map[string][]byte, f *kudu.FS, tablets map[string]*kudu.Tablet) {
	t.Helper()
	files = kudu.Unpack(t, filepath.Join(corpus(t), run, "full_with_wal.tar.zst"))
	f, all := layout(t, store.NewMemory(files))
	tablets = map[string]*kudu.Tablet{}
	for _, tb := range all {
		tablets[tb.Table] = tb
	}
	return files, f, tablets
}

// scanned is the result of a scan: rows, losses, and findings.
type scanned struct {
	cells    [][]string
	lost     []region.Loss
	findings []region.Finding
}

func (s *scanned) lines() (out []string) {
	for _, c := range s.cells {
		out = append(out, strings.Join(c, " "))
	}
	slices.Sort(out)
	return out
}

// codes returns the codes of findings with a severity.
func codes(all []region.Finding, sev region.Severity) string {
	var out []string
	for _, x := range all {
		if x.Severity == sev {
			out = append(out, x.Code)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func scan(t testing.TB, tree store.Tree, uri string, opts map[string]string, spec stoa.ScanSpec) (out scanned,
	err error) {
	t.Helper()
	return scanWith(t, tree, uri, stoa.OpenOptions{Opts: opts}, spec)
}

// scanWith is scan with more options.
func scanWith(t testing.TB, tree store.Tree, uri string, o stoa.OpenOptions, spec stoa.ScanSpec) (out scanned,
	err error) {
	t.Helper()
	o.Formats, o.Tree = []format.Format{kudu.Format}, tree
	tb, err := stoa.Open(context.Background(), uri, o)
	if err != nil {
		return out, err
	}
	defer tb.Close()
	spec.Lost = func(l region.Loss) { out.lost = append(out.lost, l) }
	for b, err := range tb.Scan(context.Background(), spec) {
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

// nodesOf returns the structures of a CFile whose names begin with name.
func nodesOf(t testing.TB, tree store.Tree, at fault.Span, name string) (out []region.Node) {
	t.Helper()
	tg := format.Target{Tree: tree, Name: at.Object}
	tg.At.From, tg.At.To = at.Off, at.End()
	for n, err := range cfile.Format.Describe(context.Background(), tg, format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, name) && n.Depth == 1 {
			out = append(out, n)
		}
	}
	return out
}

// One byte of a page of each block of a table with a log is changed. With null-cells, every row is returned, every
// other cell is right, and the losses have the tablet, the rowset, the column and the rows. A damaged page of the key
// loses its rows. Verify has a finding in the block.
func TestCorpusNullCells(t *testing.T) {
	dir := corpus(t)
	for _, run := range []string{"fs_file", "fs_log"} {
		files, f, tablets := archive(t, run)
		tree := store.NewMemory(files)
		for _, table := range []string{"d_wal", "d_minor"} {
			tb := tablets[table]
			want := map[string][]string{}
			for _, c := range expectedLines(t, dir, table, "final") {
				want[c[0]] = c
			}
			for kind, places := range blocksOf(t, f, []*kudu.Tablet{tb}, table) {
				for i, at := range places {
					pages := nodesOf(t, tree, at, "block[")
					if kind == "bloom" {
						continue
					}
					if len(pages) == 0 {
						t.Fatalf("%s has no pages", kind)
					}
					page := pages[len(pages)/2].At
					t.Run(fmt.Sprintf("%s/%s/%s%d", run, table, kind, i), func(t *testing.T) {
						bad := with(files, page.Object, flipped(files[page.Object], page.Off+page.Len/2))
						got, err := scan(t, bad, "#"+table, nil, stoa.ScanSpec{Damaged: stoa.NullCells})
						if err != nil {
							t.Fatal(err)
						}
						nulled := map[string]int64{}
						for _, row := range got.cells {
							w := want[row[0]]
							if w == nil {
								t.Fatalf("a row that was never there: %v", row)
							}
							for c := range row {
								if row[c] != w[c] && row[c] != "null" {
									t.Fatalf("row %s, column %s: %s instead of %s", row[0],
										tb.Schema.Columns[c].Name, row[c], w[c])
								}
								if row[c] != w[c] {
									nulled[tb.Schema.Columns[c].Name]++
								}
							}
						}
						reported, rows := map[string]int64{}, int64(0)
						for _, l := range got.lost {
							var e *fault.Error
							if l.Part != tb.ID || !strings.HasPrefix(l.Name, "rowset ") || !l.Exact ||
								!errors.As(l.Err, &e) || e.At != page {
								t.Errorf("loss %+v of %v", l, page)
							}
							if reported[l.Column] += l.Rows[1] - l.Rows[0]; l.Column == "id" || l.Column == "" {
								rows += l.Rows[1] - l.Rows[0]
							}
						}
						for c, n := range nulled {
							if n > reported[c] {
								t.Errorf("column %s: %d cells are null, %d reported as lost", c, n, reported[c])
							}
						}
						if missing := int64(len(want) - len(got.cells)); missing > rows || kind != "id" &&
							missing > 0 && reported[""] == 0 {
							t.Errorf("%d rows are missing, %d reported as lost", missing, rows)
						}
						if column := tb.Schema.FindName(kind); column > 0 &&
							(len(reported) != 1 || reported[kind] == 0) {
							t.Errorf("column %s is damaged, but losses are in %v", kind, reported)
						}
						if kind == "id" && rows > 600 { // a page has 512
							t.Errorf("a page of keys costs %d rows", rows)
						}
						if kind != "undo" && len(got.lost) == 0 {
							t.Error("nothing is reported")
						}
						if bad, _ := findings(t, bad, "", table); !slices.ContainsFunc(bad,
							func(x region.Finding) bool {
								return x.Severity == region.Error && x.Code == "cfile.block.checksum" &&
									x.At.Object == page.Object && x.At.Off >= page.Off && x.At.End() <= page.End()
							}) {
							t.Errorf("verify: %+v", bad)
						}
					})
				}
			}
		}
	}
}

// TestCorpusDamagedIndexes: damage of the value index loses nothing, even if the log's changes must find keys, because
// all keys are then read sequentially.
func TestCorpusDamagedIndexes(t *testing.T) {
	dir := corpus(t)
	files, f, tablets := archive(t, "fs_file")
	tree := store.NewMemory(files)
	want := expected(t, dir, "d_wal", "final")
	n := 0
	for _, at := range blocksOf(t, f, []*kudu.Tablet{tablets["d_wal"]}, "d_wal")["id"] {
		for _, x := range nodesOf(t, tree, at, "validx") {
			bad := with(files, at.Object, flipped(files[at.Object], x.At.Off+x.At.Len/2))
			got, err := scan(t, bad, "#d_wal", nil, stoa.ScanSpec{})
			if err != nil || len(got.findings) > 0 {
				t.Fatal(err, got.findings)
			}
			compare(t, got.lines(), want)
			if found, _ := findings(t, bad, "", "d_wal"); codes(found, region.Error) == "" {
				t.Error("verify reports nothing")
			}
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d tried", n)
	}
}

// TestCorpusLostLog: without its log, or with a truncated one, everything that was flushed is read, with each policy,
// and the state of the log is reported: as a warning if no more can be lost than in a crash, as an error if flushed
// changes are later than the log.
func TestCorpusLostLog(t *testing.T) {
	dir := corpus(t)
	files, _, tablets := archive(t, "fs_file")
	segment := "tserver/wal/wals/" + tablets["d_wal"].ID + "/wal-000000001"
	log := files[segment]
	if len(log) != 138167 {
		t.Fatalf("the log has %d bytes", len(log))
	}
	flushed, final := expected(t, dir, "d_wal", "p4"), expected(t, dir, "d_wal", "final")
	for _, x := range []struct {
		name            string
		log             []byte
		warnings, error string
		rows            []string // nil: as many as at p4, not compared
	}{
		{"whole", log, "", "", final},
		{"gone", nil, "", "kudu.wal.deleted", flushed},
		{"empty", []byte{}, "", "kudu.wal.short", flushed},
		{"before what was not flushed", log[:133905], "", "", flushed},
		{"within that", log[:133905+4000], "kudu.wal.torn", "", flushed},
		{"before its commit", log[:138088], "kudu.wal.uncommitted", "", flushed},
		{"within its commit", log[:138088+40], "kudu.wal.torn kudu.wal.uncommitted", "", flushed},
		{"before the last that was flushed", log[:127947], "", "kudu.wal.short", flushed},
		{"between two batches, before what was flushed", log[:87342], "", "kudu.wal.short", nil},
		{"within a batch, before what was flushed", log[:34982], "kudu.wal.torn", "kudu.wal.short", nil},
	} {
		for _, policy := range []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells} {
			got, err := scan(t, with(files, segment, x.log), "#d_wal", nil, stoa.ScanSpec{Damaged: policy})
			if policy == stoa.Fail && x.error != "" { // rows may be out of date, so none is returned
				if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), x.error) || len(got.cells) > 0 {
					t.Errorf("%s: %d rows, %v", x.name, len(got.cells), err)
				}
				continue
			}
			if err != nil || len(got.lost) > 0 {
				t.Fatal(x.name, policy, err, got.lost)
			}
			if w, e := codes(got.findings, region.Warning), codes(got.findings, region.Error); w != x.warnings ||
				e != x.error {
				t.Errorf("%s: warnings %q, errors %q", x.name, w, e)
			}
			if x.rows != nil {
				t.Run(x.name, func(t *testing.T) { compare(t, got.lines(), x.rows) })
			} else if len(got.cells) != len(flushed) {
				t.Errorf("%s: %d rows, of which %d were flushed", x.name, len(got.cells), len(flushed))
			}
		}
		found, _ := findings(t, with(files, segment, x.log), "tserver", "d_wal")
		if w, e := codes(found, region.Warning), codes(found, region.Error); w != x.warnings || e != x.error {
			t.Errorf("%s: verify: warnings %q, errors %q", x.name, w, e)
		}
	}
}

// Of two replicas with complete logs, the one with later operations is read. If that replica is an unfinished copy, the
// other one is read and reported as being behind.
func TestCorpusReplicaBehind(t *testing.T) {
	dir := corpus(t)
	files, _, tablets := archive(t, "fs_file")
	tb := tablets["d_wal"]
	segment := "wal/wals/" + tb.ID + "/wal-000000001"
	two := map[string][]byte{}
	for name, b := range files {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			two["a/"+rest], two["b/"+rest] = b, b
		}
	}
	two["a/"+segment] = two["a/"+segment][:133905] // a copy from before the last operation
	got, err := scan(t, store.NewMemory(two), "#d_wal", nil, stoa.ScanSpec{})
	if err != nil || len(got.findings) > 0 {
		t.Fatal(err, got.findings)
	}
	compare(t, got.lines(), expected(t, dir, "d_wal", "final"))

	super := "b/" + strings.TrimPrefix(tb.Object, "tserver/")
	two[super] = kudu.WithState(t, two[super], kudu.TabletCopying)
	if got, err = scan(t, store.NewMemory(two), "#d_wal", nil, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) ||
		len(got.cells) > 0 {
		t.Errorf("%d rows that may be out of date, %v", len(got.cells), err)
	}
	got, err = scan(t, store.NewMemory(two), "#d_wal", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got.lines(), expected(t, dir, "d_wal", "p4"))
	if codes(got.findings, region.Error) != "kudu.replica.behind" {
		t.Errorf("%+v", got.findings)
	}
	if bad, _ := findings(t, store.NewMemory(two), "", "d_wal"); !reported(bad, "kudu.replica.behind", "") {
		t.Errorf("verify does not tell it: %+v", bad)
	}
}

// A replica fills cells by key if its log is complete, but not if operations in it are lost, or the history that the
// snapshot needs: its cells may then be from another time.
func TestCorpusReplicasThatFill(t *testing.T) {
	dir := corpus(t)
	one, f, tablets := archive(t, "fs_file")
	tb := tablets["d_major"]
	set := &tb.RowSets[0]
	super := "b/" + strings.TrimPrefix(tb.Object, "tserver/")
	segment := "b/wal/wals/" + tb.ID + "/wal-000000001"
	files := map[string][]byte{}
	for name, b := range one {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			files["a/"+rest], files["b/"+rest] = b, b
		}
	}
	for _, dir := range []string{"b/wal/", "b/data/"} { // another server, and no copy of the same
		files[dir+"instance"] = pbc.Append(nil, "kudu.InstanceMetadataPB",
			pb.AppendString(nil, 1, "0123456789abcdef0123456789abcdef"))
	}
	// without its oldest UNDO the rowset is not a twin
	files[super] = kudu.WithoutUndo(t, files[super], set.Undo[len(set.Undo)-1].ID)
	at := blocksOf(t, f, []*kudu.Tablet{tb}, "d_major")["a"][0]
	name := "a/" + strings.TrimPrefix(at.Object, "tserver/")
	files[name] = flipped(files[name], at.Off+40)
	bad := maps.Clone(files)
	bad[segment] = flipped(bad[segment], int64(len(bad[segment])/3))
	p0 := snapshots(t, dir, "file_ck")["p0"]
	for _, x := range []struct {
		name, at string
		files    map[string][]byte
		fills    bool
	}{{"whole", "", files, true}, {"a damaged log", "", bad, false},
		{"a snapshot before what is left of the history", p0, files, false}} {
		opts, phase := map[string]string{}, "final"
		if x.at != "" {
			opts["at"], phase = x.at, "p0"
		}
		got, err := scan(t, store.NewMemory(x.files), "#d_major", opts, stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil || x.fills != (len(got.lost) == 0) {
			t.Errorf("%s: %v, lost %v", x.name, err, got.lost)
		}
		if gone := missing(t, got.lines(), expected(t, dir, "d_major", phase)); x.fills != (len(gone) == 0) {
			t.Errorf("%s: %d rows are missing", x.name, len(gone))
		}
	}
}

// TestCorpusSnapshotAfterAll: a snapshot after all operations of the log is the latest state, whatever is left of the
// history. An earlier snapshot is refused.
func TestCorpusSnapshotAfterAll(t *testing.T) {
	dir := corpus(t)
	files, _, tablets := archive(t, "fs_file")
	tb := tablets["key_int32"]
	if len(tb.RowSets) != 1 || len(tb.RowSets[0].Undo) != 1 || len(tb.RowSets[0].Redo) != 0 {
		t.Fatalf("%+v", tb.RowSets)
	}
	times := snapshots(t, dir, "file_ck")
	less := with(files, tb.Object, kudu.WithoutUndo(t, files[tb.Object], tb.RowSets[0].Undo[0].ID))
	got, err := scan(t, less, "#key_int32", map[string]string{"at": times["final"]}, stoa.ScanSpec{})
	if err != nil || len(got.findings) > 0 {
		t.Fatal(err, got.findings)
	}
	compare(t, got.lines(), expected(t, dir, "key_int32", "final"))
	for _, opts := range []map[string]string{{"at": "1"}, {"at": times["final"], "wal": "false"}} {
		if _, err := scan(t, less, "#key_int32", opts, stoa.ScanSpec{}); !errors.Is(err, fault.Unsupported) {
			t.Errorf("%v: %v", opts, err)
		}
	}
}
