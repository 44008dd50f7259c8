package kudu_test

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// TestCorpusListReports: a list reports damage that is visible without reading rows: in the table's entry, with the
// tablet, and nowhere else.
func TestCorpusListReports(t *testing.T) {
	t.Run("small logs", listReports)
	kudu.AsLarge(t)
	t.Run("large logs", listReports)
}

func listReports(t *testing.T) {
	for _, run := range []string{"fs_file", "fs_log"} {
		files, f, tablets := archive(t, run)
		for name, e := range entries(t, store.NewMemory(files), "") {
			if len(e.Findings) > 0 {
				t.Errorf("%s, undamaged: %+v", name, e.Findings)
			}
		}
		tb := tablets["d_wal"]
		log := "tserver/wal/wals/" + tb.ID + "/wal-000000001"
		bloom, err := f.PlaceOf(t.Context(), tb, tb.RowSets[1].Bloom)
		if err != nil {
			t.Fatal(err)
		}
		part, err := f.PlaceOf(t.Context(), tb, tb.RowSets[0].Columns[0].BlockRef)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			what, object string
			bytes        []byte // nil: the file is gone
			code         string
		}{
			{"the log is gone", log, nil, "kudu.wal.deleted"},
			{"the log is empty", log, []byte{}, "kudu.wal.short"},
			{"the log is cut", log, files[log][:40000], "kudu.wal.short"},
			{"the log's header is damaged", log, flipped(files[log], 3), "kudu.wal.header"},
			{"the first half of the log is zero", log,
				append(make([]byte, len(files[log])/2), files[log][len(files[log])/2:]...), "kudu.wal.short"},
			{"the log lacks its last byte", log, files[log][:len(files[log])-1], ""},
			{"a bloom file is gone, on which no row depends", bloom.At.Object, nil, ""},
			{"a column is gone", part.At.Object, nil, "kudu.block.missing"},
			{"a column is cut", part.At.Object, files[part.At.Object][:part.At.End()-1], "kudu.block.truncated"},
		} {
			if run == "fs_log" && x.object == bloom.At.Object {
				continue // it has other blocks
			}
			if run == "fs_file" && x.code == "kudu.block.truncated" {
				continue // the superblock does not have the length of a file
			}
			all := entries(t, with(files, x.object, x.bytes), "tserver")
			its := func(y region.Finding) bool { return y.Part == tb.ID && y.Severity == region.Error }
			code := x.code
			if run == "fs_log" && code == "kudu.block.missing" { // the record is there, the data file is not
				code = "kudu.block.truncated"
			}
			if code == "" { // the normal state after a crash
				if found := all["d_wal"].Findings; len(found) > 0 {
					t.Errorf("%s, %s: %+v", run, x.what, found)
				}
				continue
			}
			if found := all["d_wal"].Findings; !slices.ContainsFunc(found,
				func(y region.Finding) bool { return its(y) && y.Code == code }) {
				t.Errorf("%s, %s: %+v", run, x.what, found)
			}
			for name, e := range all {
				if name != "d_wal" && slices.ContainsFunc(e.Findings, its) {
					t.Errorf("%s, %s: reported for %s: %+v", run, x.what, name, e.Findings)
				}
			}
		}
	}
}

// A master whose log is lost has lost its catalogue: every verb reports that, as missing tablets are unknown without
// it.
func TestCorpusCatalogLost(t *testing.T) {
	files, _, _ := archive(t, "fs_file")
	const log = "master/wal/wals/00000000000000000000000000000000/wal-000000001"
	if len(files[log]) == 0 {
		t.Fatal("there is no log")
	}
	files[strings.TrimSuffix(log, "wal-000000001")+"index.000000000"] = []byte("the directory stays")
	for _, x := range []struct {
		what  string
		bytes []byte
		codes string
	}{
		{"gone", nil, "kudu.wal.deleted"},
		{"cut", files[log][:3000], "kudu.catalog.behind"},
		{"empty", []byte{}, "kudu.catalog.behind kudu.wal.short"},
	} {
		tree := with(files, log, x.bytes)
		got, err := scan(t, tree, "#d_raw", nil, stoa.ScanSpec{Columns: []string{"id"}})
		if err != nil || codes(got.findings, region.Error) != x.codes {
			t.Errorf("%s: a scan reports %q, %v", x.what, codes(got.findings, region.Error), err)
		}
		if reported := codes(entries(t, tree, "")["d_raw"].Findings, region.Error); reported != x.codes {
			t.Errorf("%s: a list reports %q", x.what, reported)
		}
		if bad, _ := findings(t, tree, "", "d_raw"); codes(bad, region.Error) != x.codes {
			t.Errorf("%s: verify reports %q", x.what, codes(bad, region.Error))
		}
		n := 0
		for _, err := range kudu.Format.List(t.Context(), format.Target{Tree: tree, Name: "master"}) {
			if n++; err == nil {
				t.Errorf("%s: an entry, although the catalogue is lost", x.what)
			}
			classed(t, err)
		}
		if n != 1 {
			t.Errorf("%s: %d entries", x.what, n)
		}
	}
}

// A copy that was made without logs is read with a warning.
func TestCorpusCopyWithoutLogs(t *testing.T) {
	files, _, _ := archive(t, "fs_file")
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.Contains(name, "/wals/") })
	got, err := scan(t, store.NewMemory(files), "#d_wal", nil, stoa.ScanSpec{Columns: []string{"id"}})
	if w, e := codes(got.findings, region.Warning), codes(got.findings, region.Error); err != nil ||
		w != "kudu.wal.missing" || e != "" {
		t.Errorf("warnings %q, errors %q, %v", w, e, err)
	}
}

// TestCorpusLostSuperblockOfOthers: a lost superblock is reported only for tables to which its tablet may have
// belonged, judged by the columns in its log.
func TestCorpusLostSuperblockOfOthers(t *testing.T) {
	files, _, tablets := archive(t, "fs_file")
	for lost, want := range map[string]string{"d_wal": "", "part": "kudu.superblock.missing kudu.tablet.missing"} {
		got, err := scan(t, with(files, tablets[lost].Object, nil), "tserver#part", nil, stoa.ScanSpec{})
		if reported := codes(got.findings, region.Error); err != nil || reported != want {
			t.Errorf("without a superblock of %s: %q, %v", lost, reported, err)
		}
	}
}

// TestCorpusSuperblockElsewhere: if another server has the superblock that one has lost, the tablet's table is known,
// and nothing is missing of any other table; without it, a table with a gap may have had the tablet.
func TestCorpusSuperblockElsewhere(t *testing.T) {
	both := map[string][]byte{}
	for name, b := range load(t, filepath.Join(corpus(t), "fs_file")) {
		both["one/"+name], both["two/"+name] = b, b
	}
	_, tablets := layout(t, store.NewMemory(load(t, filepath.Join(corpus(t), "fs_file"))))
	tried, unknown := 0, 0
	for _, tb := range tablets {
		if tb.Table == "part" {
			continue
		}
		tried++
		for where, want := range map[string]string{"one/": "", "two/": "", "one/ two/": "kudu.superblock.missing " +
			"kudu.tablet.missing"} {
			files := maps.Clone(both)
			for _, w := range strings.Fields(where) {
				delete(files, w+tb.Object)
			}
			got, err := scan(t, store.NewMemory(files), "#part", nil, stoa.ScanSpec{})
			reported := codes(got.findings, region.Error)
			if len(strings.Fields(where)) == 2 && reported == "" {
				continue // no block could be one of part's
			}
			if want != "" {
				unknown++
			}
			if err != nil || reported != want {
				t.Errorf("%s without a superblock in %s: got %q, %v, want %q", tb.Table, where, reported, err, want)
			}
		}
	}
	if tried < 20 || unknown == 0 {
		t.Errorf("got %d tablets, %d whose table nothing tells, want 20 or more, and some", tried, unknown)
	}
}

// A superblock whose header's checksum does not match is read, and reported as an error for its own table only.
func TestCorpusOddSuperblock(t *testing.T) {
	files, _, tablets := archive(t, "fs_file")
	object := tablets["d_wal"].Object
	tree := with(files, object, flipped(files[object], 5000))
	for table, want := range map[string]string{"d_wal": "kudu.superblock.odd", "part": ""} {
		got, err := scan(t, tree, "tserver#"+table, nil, stoa.ScanSpec{})
		if reported := codes(got.findings, region.Error); err != nil || reported != want {
			t.Errorf("%s: %q, %v", table, reported, err)
		}
	}
}

// Intact files that were exchanged are reported: a REDO and an UNDO file whenever they are read; two bloom filters when
// they are used, which is then done without them.
func TestCorpusExchangedFiles(t *testing.T) {
	dir := corpus(t)
	files, f, tablets := archive(t, "fs_file")
	tb := tablets["d_wal"]
	exchanged := func(a, b kudu.BlockRef) *store.Memory {
		p, err1 := f.PlaceOf(t.Context(), tb, a)
		q, err2 := f.PlaceOf(t.Context(), tb, b)
		if err1 != nil || err2 != nil || p.At.Object == q.At.Object ||
			bytes.Equal(files[p.At.Object], files[q.At.Object]) {
			t.Fatal(err1, err2)
		}
		out := maps.Clone(files)
		out[p.At.Object], out[q.At.Object] = out[q.At.Object], out[p.At.Object]
		return store.NewMemory(out)
	}
	deltas := exchanged(tb.RowSets[0].Redo[0], tb.RowSets[0].Undo[0])
	_, err := scan(t, deltas, "#d_wal", nil, stoa.ScanSpec{Columns: []string{"id"}})
	if !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "live_row_count") { // the changes in the right files are unknown
		t.Errorf("REDO and UNDO: %v", err)
	}
	if bad, _ := findings(t, deltas, "", "d_wal"); !strings.Contains(codes(bad, region.Error), "kudu.rowset.live") {
		t.Errorf("REDO and UNDO: verify: %+v", bad)
	}
	blooms := exchanged(tb.RowSets[0].Bloom, tb.RowSets[1].Bloom)
	for _, row := range expectedLines(t, dir, "d_wal", "final") {
		if row[0] != "700" {
			continue
		}
		filter, err := pred.Parse("id = " + row[0])
		if err != nil {
			t.Fatal(err)
		}
		got, err := scan(t, blooms, "#d_wal", nil, stoa.ScanSpec{Filter: filter})
		if reported := codes(got.findings, region.Error); err != nil || reported != "kudu.bloom.disagrees" {
			t.Errorf("bloom files: %q, %v", reported, err)
		}
		compare(t, got.lines(), []string{strings.Join(row, " ")})
	}
	if bad, _ := findings(t, blooms, "", "d_wal"); codes(bad, region.Error) != "kudu.bloom.disagrees" {
		t.Errorf("bloom files: verify: %+v", bad)
	}
}
