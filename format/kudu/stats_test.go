package kudu_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/store"
)

// listed returns the lines of a list of a place, by column name.
func listed(t *testing.T, name, place, table string) (out []map[string]string) {
	t.Helper()
	for _, l := range kudu.Format.Listings {
		if l.Name != name {
			continue
		}
		_, err := l.List(t.Context(), format.Target{Tree: store.Local{}, Name: place, Table: table},
			format.OpenOptions{Limits: format.Limits{}.WithDefaults()}, func(v []string) {
				line := map[string]string{}
				for i, c := range l.Columns {
					line[c] = v[i]
				}
				out = append(out, line)
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// cutBlock writes a block to a separate file.
func cutBlock(t *testing.T, line map[string]string) string {
	t.Helper()
	off, err := strconv.ParseInt(line["offset"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(line["object"])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, _ := strconv.ParseInt(line["cfile-size"], 10, 64)
	data, err := io.ReadAll(io.NewSectionReader(f, off, size))
	if err != nil || int64(len(data)) != size {
		t.Fatal(len(data), size, err)
	}
	name := filepath.Join(t.TempDir(), line["block-id"]+".cfile")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTableStats: each column of a table has the size that the CFiles of its blocks have as separate files, and the
// encodings and codecs that these name. Its numbers of values and nulls are those of the rows that the client read.
func TestTableStats(t *testing.T) {
	dir := corpus(t)
	for _, table := range []string{"d_raw", "d_major", "d_rowset", "d_minor", "ck", "key_all", "part"} {
		place := filepath.Join(dir, "fs_log")
		tab, err := stoa.Open(t.Context(), place+"#"+table, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tab.Stats(t.Context(), stoa.Fail, nil)
		if tab.Close(); err != nil {
			t.Fatal(table, err)
		}
		want := map[string]*stoa.ColumnStats{}
		for _, line := range listed(t, "blocks", place, table) {
			if line["block-kind"] != "column" {
				continue
			}
			one, err := stoa.Open(t.Context(), cutBlock(t, line), stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stats, err := one.Stats(t.Context(), stoa.Fail, nil)
			if one.Close(); err != nil || len(stats) != 1 {
				t.Fatal(len(stats), err)
			}
			w := want[line["column"]]
			if w == nil {
				w = &stoa.ColumnStats{}
				want[line["column"]] = w
			}
			w.Blocks, w.Stored, w.Raw = w.Blocks+stats[0].Blocks, w.Stored+stats[0].Stored, w.Raw+stats[0].Raw
			w.Dict += stats[0].Dict
			w.Encoding, w.Codec = stats[0].Encoding, stats[0].Codec
		}
		rows := expectedLines(t, dir, table, "final")
		for i, c := range got {
			nulls := int64(0)
			for _, r := range rows {
				if r[i] == "null" {
					nulls++
				}
			}
			w := want[c.Name]
			if w == nil || c.Blocks != w.Blocks || c.Stored != w.Stored || c.Raw != w.Raw || c.Dict != w.Dict ||
				c.Encoding != w.Encoding || c.Codec != w.Codec {
				t.Errorf("%s, column %s: %+v, its blocks are %+v", table, c.Name, c, w)
			}
			if c.Rows != int64(len(rows)) || c.Nulls != nulls {
				t.Errorf("%s, column %s: %d values, %d nulls; the client read %d and %d", table, c.Name, c.Rows,
					c.Nulls, len(rows), nulls)
			}
		}
	}
}

// TestRowSetStats: the bytes of a table's rowsets are those of its blocks, by kind; live rows are those that the client
// read, and the difference from the rows written are the rows that deltas delete.
func TestRowSetStats(t *testing.T) {
	dir := corpus(t)
	place := filepath.Join(dir, "fs_log")
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, table := range []string{"d_raw", "d_major", "d_rowset", "d_minor", "ck", "part"} {
		want, got := map[string]int64{}, map[string]int64{}
		kinds := map[string]string{"column": "columns-bytes", "bloom": "keys-bytes", "adhoc-index": "keys-bytes",
			"redo": "redo-bytes", "undo": "undo-bytes"}
		for _, line := range listed(t, "blocks", place, table) {
			want[kinds[line["block-kind"]]] += number(line["cfile-size"])
		}
		live := int64(0)
		for _, line := range listed(t, "rowsets", place, table) {
			for _, c := range []string{"columns-bytes", "keys-bytes", "redo-bytes", "undo-bytes"} {
				got[c] += number(line[c])
			}
			live += number(line["live"])
			if left := number(line["rows"]) - number(line["deletes"]) + number(line["reinserts"]); left !=
				number(line["live"]) {
				t.Errorf("%s: %d rows are left of rowset %s, %s are live", table, left, line["rowset"], line["live"])
			}
		}
		for k, n := range want {
			if got[k] != n {
				t.Errorf("%s: %s are %d, its blocks have %d", table, k, got[k], n)
			}
		}
		if rows := len(expectedLines(t, dir, table, "final")); live != int64(rows) {
			t.Errorf("%s: %d live rows, the client read %d", table, live, rows)
		}
	}
	dead := int64(0)
	for _, line := range listed(t, "rowsets", place, "") {
		if strings.HasPrefix(line["rowset"], "deleted in ") {
			dead += number(line["dead-blocks"])
		}
	}
	if dead == 0 {
		t.Error("a server that compacted reports no deleted block")
	}
}
