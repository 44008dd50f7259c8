package kudu

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/store"
)

// The list of blocks equals that of `kudu fs list`, field by field: the manifest was made from its output.
func TestCorpusList(t *testing.T) {
	dir := corpusDir(t)
	f := openOne(t, store.Local{}, filepath.Join(dir, "fs_file"))
	want := map[string]manifestBlock{}
	for _, m := range readManifest(t, dir, "file_ck") {
		want[dump(m.BlockID)] = m
	}
	n := 0
	err := f.ListBlocks(context.Background(), mustTablets(t, f), true, func(l fs.BlockLine) bool {
		if l.Err != nil {
			t.Error(l.Err)
			return true
		}
		got := map[string]string{}
		for i, k := range fs.ListFields {
			got[k] = l.Values[i]
		}
		m := want[got["block-id"]]
		has := map[string]string{"table": m.Table, "tablet-id": m.Tablet, "partition": m.Partition,
			"rowset-id": dump(m.RowSet), "block-kind": m.Kind, "column": m.Column, "column-id": m.ColumnID}
		for k, v := range m.CFile {
			has["cfile-"+k] = v
		}
		if len(has) != 18 { // all but table-id and block-id
			t.Fatalf("the manifest has %d fields", len(has))
		}
		for k, v := range has {
			if k == "cfile-delta-stats" {
				v = sortedCounts(v)
			}
			if x := got[k]; x != v && !strings.Contains(x, "_D128") {
				t.Errorf("block %s %s: %q, want %q", got["block-id"], k, x, v)
			} else if x != v && strings.ReplaceAll(x, "0", "") != strings.ReplaceAll(v, "0", "") {
				// Kudu's command leaves out a zero of some 128-bit numbers; the rest must be equal.
				t.Errorf("block %s %s: %q, want %q", got["block-id"], k, x, v)
			}
		}
		if len(got["table-id"]) != 32 {
			t.Errorf("table-id %q", got["table-id"])
		}
		n++
		return true
	})
	if err != nil || n != 613 {
		t.Fatalf("%d lines, %v", n, err)
	}
}

// sortedCounts sorts the column counts in Kudu's text by id.
func sortedCounts(text string) string {
	head, list, ok := strings.Cut(text, "update_counts_by_col_id=[")
	if !ok {
		return text
	}
	counts := strings.Split(strings.TrimSuffix(list, "]"), ",")
	slices.SortFunc(counts, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Index(a, ":"), strings.Index(b, ":")), cmp.Compare(a, b))
	})
	return head + "update_counts_by_col_id=[" + strings.Join(counts, ",") + "]"
}

// Schemas, partitions, and numbers of flushed rows.
func TestCorpusTables(t *testing.T) {
	dir := corpusDir(t)
	var schemas map[string][]struct {
		Name, Type, Encoding, Compression string
		ID                                int32
		Key, Nullable                     bool
		BlockSize                         int32 `json:"block_size"`
		Precision, Scale, Length          int32
	}
	b, err := os.ReadFile(filepath.Join(dir, "expected", "schemas.json"))
	if err == nil {
		err = json.Unmarshal(b, &schemas)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{ // from the generator's own check; -2: not checked; d_wal without the rows only in its WAL
		"matrix": 1200, "ck": 6000, "key_int8": 208, "key_int16": 399, "key_int32": 400, "key_int64": 400,
		"key_unixtime": 400, "key_date": 400,
		"key_dec9": 400, "key_dec18": 400, "key_dec38": 400, "key_string": 376, "key_binary": 381,
		"key_varchar": 383, "key_all": 400, "btree": 3500,
		"part": 400, "d_raw": 1619, "d_minor": 1619, "d_major": 1619, "d_rowset": 1619, "d_wal": 1619,
		"d_alter": -2, "autoinc": 300,
	}
	for _, run := range []string{"fs_file", "fs_log"} {
		f := openOne(t, store.Local{}, filepath.Join(dir, run))
		tablets := mustTablets(t, f)
		tables, err := f.Tables(context.Background(), tablets)
		if err != nil || len(tables) != len(schemas) || len(tablets) != 27 {
			t.Fatalf("%d tables, %d tablets, %v", len(tables), len(tablets), err)
		}
		parts := map[string]bool{}
		for _, x := range tables {
			name, _, _ := strings.Cut(x.Name, ".")
			want, ok := schemas[name]
			if !ok {
				t.Errorf("table %q", x.Name)
			}
			if len(x.Missing) > 0 || x.Lost > 0 || x.More > 0 {
				t.Errorf("%s: missing %v, lost %d", x.Name, x.Missing, x.Lost)
			}
			if name == "part" {
				if len(x.Uncovered) != 2 || x.Uncovered[0].Text != "RANGE (day) PARTITION VALUES < 0" ||
					x.Uncovered[1].Text != "RANGE (day) PARTITION 200 <= VALUES" {
					t.Errorf("%s: uncovered %v", x.Name, x.Uncovered)
				}
			} else if len(x.Uncovered) > 0 {
				t.Errorf("%s: uncovered %v", x.Name, x.Uncovered)
			}
			if x.Rows != rows[name] && rows[name] != -2 {
				t.Errorf("%s: %d rows, want %d", x.Name, x.Rows, rows[name])
			}
			for _, tb := range x.Tablets {
				parts[tb.Partitioning.Text(&tb.Schema, &tb.Partition)] = true
				if tb.State != meta.TabletReady || tb.Consensus == nil || len(tb.Consensus.Peers) != 1 ||
					tb.Consensus.Term != 1 || !tb.Consensus.Peers[0].Voter || tb.Consensus.Peers[0].UUID != f.UUID {
					t.Errorf("%s: %s, consensus %s", tb.Table, tb.State, dump(tb.Consensus))
				}
				if len(tb.Schema.Columns) != len(want) {
					t.Fatalf("%s: %d columns, want %d", x.Name, len(tb.Schema.Columns), len(want))
				}
				keys := 0
				for i, w := range want {
					c := &tb.Schema.Columns[i]
					if c.Name != w.Name || c.ID != w.ID || meta.TypeName(c.Type) != w.Type || c.Key != w.Key ||
						c.Nullable != w.Nullable || meta.EncodingName(c.Encoding) != w.Encoding ||
						meta.CompressionName(c.Compression) != w.Compression || c.BlockSize != w.BlockSize ||
						c.Precision != w.Precision || c.Scale != w.Scale || c.Length != w.Length {
						t.Errorf("%s: %s, want %+v", x.Name, dump(c), w)
					}
					if w.Key {
						keys++
					}
					if c.AutoIncrement != (w.Name == "auto_incrementing_id") {
						t.Errorf("%s.%s: auto-increment %t", x.Name, w.Name, c.AutoIncrement)
					}
				}
				if tb.Schema.NumKeys != keys || tb.Schema.Unique() == (name == "autoinc") {
					t.Errorf("%s: %d keys, unique %t", x.Name, tb.Schema.NumKeys, tb.Schema.Unique())
				}
				if sc, err := tb.Schema.Arrow(); err != nil || sc.NumFields() != len(want) {
					t.Errorf("%s: %v, %v", x.Name, sc, err)
				}
			}
		}
		for _, m := range readManifest(t, dir, "file_ck") {
			if !parts[m.Partition] {
				t.Fatalf("no tablet is %s", m.Partition)
			}
		}
		healthy(t, f)
	}
}
