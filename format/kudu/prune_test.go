package kudu_test

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/pred"
	"stoa/store"
)

// reads returns the bytes of pages and of metadata that a scan read from each kind of block, and its rows. Reads of
// metadata are recognized by the 64 KiB blocks of their cache, of which the last is as short as the file.
func reads(t testing.TB, files map[string][]byte, uri, table string, columns []string, where string) (bytes,
	meta map[string]int64, rows []string) {
	t.Helper()
	plain := store.NewMemory(files)
	f, tablets := layout(t, plain)
	kinds := map[string]string{}
	for kind, spans := range blocksOf(t, f, tablets, table) {
		for _, at := range spans {
			kinds[at.Object] = kind
		}
	}
	tree := store.NewCounter(plain)
	tb, err := stoa.Open(context.Background(), uri, stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	tree.Reset()
	spec := stoa.ScanSpec{Columns: columns}
	if where != "" {
		if spec.Filter, err = pred.Parse(where); err != nil {
			t.Fatal(err)
		}
	}
	rows = rowsOf(t, tb, spec)
	bytes, meta = map[string]int64{}, map[string]int64{}
	for _, r := range tree.Reads() {
		kind, ok := kinds[r.Name]
		switch {
		case !ok:
		case r.Off%(64<<10) == 0 && (r.Len == 64<<10 || int(r.Off)+r.Len == len(files[r.Name])):
			meta[kind] += int64(r.Len)
		default:
			bytes[kind] += int64(r.Len)
		}
	}
	return bytes, meta, rows
}

func kindsOf(m map[string]int64) string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestCorpusReadsNoMore: a scan reads no more than it needs: blocks of the selected columns, of these only the pages
// that the key index selects, and nothing of rowsets whose key range or bloom filter excludes the key.
func TestCorpusReadsNoMore(t *testing.T) {
	dir := corpus(t)
	files := load(t, filepath.Join(dir, "fs_file"))
	all, meta, rows := reads(t, files, "#ck", "ck", nil, "")
	if len(rows) != 6000 || kindsOf(all) != "b i s t v w" || kindsOf(meta) != "adhoc-index b i s t v w" {
		t.Errorf("all: %d rows, %v, %v", len(rows), all, meta)
	}
	one, meta, _ := reads(t, files, "#ck", "ck", []string{"v"}, "")
	// the index has the rowset's number of rows and its first and last key
	if kindsOf(one) != "v" || one["v"] != all["v"] || kindsOf(meta) != "adhoc-index v" {
		t.Errorf("one column: %v, %v", one, meta)
	}
	for _, x := range []struct{ table, key, below, absent string }{
		{"btree", "k = '%s'", "k < ' '", "k = '%s~'"},
		{"ck", "s = '%s' and i = %s and t = 'EPOCH' and b = x'%s'", "s < 'a'",
			"s = '%s' and i = 77777 and t = 'EPOCH' and b = x'00'"},
	} {
		want := inOrder(t, dir, x.table)
		middle := want[len(want)/2]
		whole, _, rows := reads(t, files, "#"+x.table, x.table, nil, "")
		if len(rows) != len(want) {
			t.Errorf("%s: %d rows", x.table, len(rows))
		}
		few, meta, rows := reads(t, files, "#"+x.table, x.table, nil, where(x.key, middle))
		if len(rows) != 1 || rows[0] != strings.Join(middle, " ") || meta["bloom"] == 0 {
			t.Errorf("%s, one key: %d rows, %v", x.table, len(rows), meta)
		}
		for kind, n := range whole {
			if few[kind] == 0 || few[kind] > n/4 {
				t.Errorf("%s, one key: %d of %d bytes of %s were read", x.table, few[kind], n, kind)
			}
		}
		none, meta, rows := reads(t, files, "#"+x.table, x.table, nil, x.below)
		if len(rows) != 0 || len(none) > 0 || meta["bloom"] > 0 {
			t.Errorf("%s, below the first key: %d rows, %v, %v", x.table, len(rows), none, meta)
		}
		absent, meta, rows := reads(t, files, "#"+x.table, x.table, nil, where(x.absent, middle))
		if len(rows) != 0 || len(absent) > 0 || meta["bloom"] == 0 {
			t.Errorf("%s, not in the bloom file: %d rows, %v, %v", x.table, len(rows), absent, meta)
		}
		t.Log(x.table, whole, few)
	}
	// Two dimensions of partitions: equality of the hash column selects one bucket, that of the other column one range.
	want := inOrder(t, dir, "part")
	_, meta, rows = reads(t, files, "#part", "part", nil, "id = "+want[0][0]+" and day = "+want[0][1])
	if len(rows) != 1 || meta["id"]+meta["day"]+meta["adhoc-index"] > 3*64<<10 {
		t.Errorf("partitions: %d rows, %v", len(rows), meta)
	}
}

// inOrder returns the cells of a table's rows in the generator's order, which is key order within a tablet.
func inOrder(t testing.TB, dir, table string) (out [][]string) {
	t.Helper()
	return append(out, expectedLines(t, dir, table, "final")...)
}

// where fills in the cells of a row in a predicate.
func where(layout string, cells []string) string {
	for _, c := range cells {
		if !strings.Contains(layout, "%s") {
			break
		}
		if s, err := strconv.Unquote(c); err == nil {
			c = strings.ReplaceAll(s, "'", "''")
		}
		layout = strings.Replace(layout, "%s", c, 1)
	}
	if i := strings.Index(layout, "EPOCH"); i >= 0 {
		us, _ := strconv.ParseInt(cells[2], 10, 64)
		layout = strings.Replace(layout, "EPOCH", time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z"), 1)
		b, _ := strconv.Unquote(cells[3])
		if j := strings.Index(layout, "x'"); j >= 0 && !strings.Contains(layout, "x'00'") {
			layout = layout[:j] + "x'" + b + "'"
		}
	}
	return layout
}
