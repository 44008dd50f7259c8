package kudugen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// The formula is compared with the rows that the real generator recorded, and with what the real Kudu printed. Most of
// that needs the whole corpus.

func corpus(t *testing.T) string {
	d := os.Getenv("STOA_CORPUS")
	if d == "" {
		t.Skip("STOA_CORPUS is not set")
	}
	return filepath.Join(d, "kudu")
}

func gunzip(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(name, err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(name, err)
	}
	return b
}

func TestSchemasOfTheCorpus(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(corpus(t), "expected/schemas.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]Column
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	tables := Tables()
	if len(tables) != len(want) {
		t.Errorf("%d tables, %d in the corpus", len(tables), len(want))
	}
	for _, tab := range tables {
		if len(tab.Columns) != len(want[tab.Name]) {
			t.Errorf("%s: %d columns, %d in the corpus", tab.Name, len(tab.Columns), len(want[tab.Name]))
			continue
		}
		for i, c := range tab.Columns {
			w := want[tab.Name][i]
			// the server fills in defaults
			w.Encoding, w.Compression, w.BlockSize = c.Encoding, c.Compression, c.BlockSize
			if c != w {
				t.Errorf("%s: %+v, not %+v", tab.Name, c, w)
			}
		}
	}
}

// TestExpectedRows: every cell of every table, in every phase, is as the generator recorded it and the Java client read
// it.
func TestExpectedRows(t *testing.T) {
	dir, want := "../../corpus/kudu/1.18.1", 17 // a subset
	if d := os.Getenv("STOA_CORPUS"); d != "" {
		dir, want = filepath.Join(d, "kudu"), 54
	}
	files, _ := filepath.Glob(filepath.Join(dir, "expected/*.jsonl.gz"))
	if len(files) != want {
		t.Errorf("%d files of rows, not %d", len(files), want)
	}
	tables := map[string]*Table{}
	for _, tab := range Tables() {
		tables[tab.Name] = tab
	}
	cells := 0
	for _, f := range files {
		name, phase, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".jsonl.gz"), ".")
		tab := tables[name]
		if tab == nil || tab.Rows[phase] == nil {
			t.Errorf("the model has no rows for %s", f)
			continue
		}
		want, err := ParseRows(bytes.NewReader(gunzip(t, f)), tab.Columns)
		if err != nil {
			t.Fatal(f, err)
		}
		SortByKey(tab.Columns, want)
		got := tab.Rows[phase]
		if len(got) != len(want) {
			t.Errorf("%s.%s: %d rows, want %d", name, phase, len(got), len(want))
			continue
		}
		for i := range want {
			for j, w := range want[i] {
				if cells++; !same(got[i][j], w) {
					t.Fatalf("%s.%s row %d column %s: %x by the formula, want %x", name, phase, i,
						tab.Columns[j].Name, got[i][j], w)
				}
			}
		}
	}
	t.Logf("%d files, %d cells", len(files), cells)
}

func same(a, b Cell) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

type entry struct {
	File, Dump, Kind, Table, Partition string
	Rowset                             int
	ColumnID                           string `json:"column_id"`
	CFile                              map[string]string
}

// TestDumps: the base data of every rowset, deleted rows included, is as Kudu's own command printed it.
func TestDumps(t *testing.T) {
	dir := corpus(t)
	var entries []entry
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &entries); err != nil {
		t.Fatal(err)
	}
	tables := map[string]*Table{}
	for _, tab := range Tables() {
		tables[tab.Name] = tab
	}
	count := map[string]int{}
	for _, e := range entries {
		if e.Dump == "" {
			continue
		}
		d, err := ParseDump(gunzip(t, filepath.Join(dir, e.Dump)))
		if err != nil {
			t.Fatal(e.Dump, err)
		}
		if n, _ := strconv.Atoi(e.CFile["num-values"]); n != len(d.Lines) {
			t.Errorf("%s: %d lines, %d values", e.Dump, len(d.Lines), n)
		}
		rs, err := tables[e.Table].Rowset(e.Partition, e.Rowset)
		if err != nil {
			t.Errorf("%s: %v", e.Dump, err)
			continue
		}
		count[e.Kind]++
		switch e.Kind {
		case "column":
			id, _ := strconv.Atoi(e.ColumnID)
			c, want, ok := rs.Column(id)
			if !ok || len(want) != len(d.Lines) {
				t.Errorf("%s: %d lines, %d rows by formula", e.Dump, len(d.Lines), len(want))
				continue
			}
			for i, w := range want {
				if !d.Agrees(i, c, w) {
					t.Errorf("%s row %d: Kudu printed %.200s, by formula %x", e.Dump, i, d.Lines[i], w)
					break
				}
				if _, exact, _ := d.Value(i, c); exact {
					count["cells, text exact"]++
				} else {
					count["cells, text inexact"]++
				}
			}
			if c.Key && !rs.Columns[1].Key {
				minMax(t, e.Dump, d, rs.Keys())
			}
			// Agrees must be able to fail.
			i := len(want) / 3
			if x := slices.Clone(want[i]); x == nil {
				if d.Agrees(i, c, make(Cell, c.Width())) {
					t.Errorf("%s: Agrees accepts a value for NULL", e.Dump)
				}
			} else {
				if d.Agrees(i, c, nil) {
					t.Errorf("%s: Agrees accepts NULL for a value", e.Dump)
				}
				if len(x) > 0 {
					x[len(x)-1] ^= 1
					if d.Agrees(i, c, x) {
						t.Errorf("%s: Agrees accepts %x for %x", e.Dump, x, want[i])
					}
				}
			}
		case "adhoc-index":
			keys := rs.Keys()
			for i, k := range keys {
				if got, _, err := d.Value(i, Column{Type: "binary"}); err != nil || !bytes.Equal(got, k) {
					t.Fatalf("%s row %d: %x, by formula %x, %v", e.Dump, i, got, k, err)
				}
				count["ad-hoc keys"]++
			}
			minMax(t, e.Dump, d, keys)
		case "undo", "redo":
			for i := range d.Lines {
				v, _, err := d.Value(i, Column{Type: "binary"})
				if err != nil || !bytes.Equal([]byte(escapeHex(v)), []byte(d.Lines[i])) {
					t.Fatalf("%s entry %d: %v; %s read back as %s", e.Dump, i, err, d.Lines[i], escapeHex(v))
				}
				count["delta entries"]++
			}
		}
	}
	t.Log(count)
	if count["column"] != 524 || count["adhoc-index"] != 7 || count["undo"]+count["redo"] != 50 ||
		count["bloom"] != 32 {
		t.Error("not all dumps were compared")
	}
}

func minMax(t *testing.T, name string, d Dump, keys [][]byte) {
	t.Helper()
	if !bytes.Equal(d.Meta["min_key"], keys[0]) || !bytes.Equal(d.Meta["max_key"], keys[len(keys)-1]) {
		t.Errorf("%s: keys from %x to %x, by formula %x to %x", name, d.Meta["min_key"], d.Meta["max_key"], keys[0],
			keys[len(keys)-1])
	}
}

// escapeHex writes BINARY as Kudu does: the inverse of unescape.
func escapeHex(s []byte) string {
	b := []byte{'"'}
	last := false
	for _, c := range s {
		digit := strings.IndexByte("0123456789abcdefABCDEF", c) >= 0
		if i := strings.IndexByte("\n\r\t\"'\\", c); i >= 0 {
			b, last = append(b, '\\', "nrt\"'\\"[i]), false
			continue
		}
		if last = c < 32 || c > 126 || last && digit; last {
			b = fmt.Appendf(b, "\\x%02x", c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

func TestDamagedDump(t *testing.T) {
	const good = "Header:\n\nFooter:\ndata_type: INT32\nnum_values: 2\nposidx_info {\n  root_block {\n    " +
		"offset: 7\n  }\n}\nmetadata {\n  key: \"min_key\"\n  value: \"a\\001\"\"a\\001\"\n}\n\n1\nNULL\n"
	d, err := ParseDump([]byte(good))
	if err != nil || len(d.Lines) != 2 || string(d.Meta["min_key"]) != "a\x01" ||
		d.Footer["posidx_info.root_block.offset"] != "7" {
		t.Fatal(d, err)
	}
	for _, bad := range []string{"", "Footer:\n\n", good[:len(good)-1], good[:60], "x" + good,
		strings.Replace(good, "\"a\\001\"\"", "\"", 1)} {
		if d, err := ParseDump([]byte(bad)); err == nil {
			t.Errorf("%q was parsed as %v", bad, d)
		}
	}
	d.Lines = []string{"-2147483649", "x", `"a`, `"a\"`, `"\x1"`, "1_D64", "2021-13-01"}
	for i, typ := range []string{"int32", "int32", "string", "string", "binary", "decimal", "date"} {
		if v, _, err := d.Value(i, Column{Type: typ, Precision: 9}); err == nil {
			t.Errorf("%s was parsed as %x", d.Lines[i], v)
		}
	}
	d.Lines = []string{"-290308-12-21T19:59:05.224192Z", "294247-01-10T04:00:54.775807Z",
		"1969-12-31T23:59:59.999999Z", "0-01-01T00:00:00.000000Z"}
	for i, want := range []int64{-9223372036854775808, 9223372036854775807, -1, -62167219200000000} {
		if v, _, err := d.Value(i, Column{Type: "unixtime_micros"}); err != nil || v.Signed().Int64() != want {
			t.Errorf("%s: %v %v", d.Lines[i], v.Signed(), err)
		}
	}
	d.Lines = []string{"62915188850341885751986341411960112_D128"}
	if v, err := parseNumber("629151888503418805751986341411960112", 16); err != nil ||
		!d.Agrees(0, Column{Type: "decimal", Precision: 38}, v) {
		t.Error("the number as Kudu misprints it is not accepted")
	}
	if v, _ := parseNumber("629151888503418805751986341411960113", 16); d.Agrees(0,
		Column{Type: "decimal", Precision: 38}, v) {
		t.Error("another number is accepted")
	}
}

func TestSplitmix(t *testing.T) {
	// The published test values of splitmix64 for seed 0.
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := Mix(uint64(i) * 0x9E3779B97F4A7C15); got != want {
			t.Errorf("%x, not %x", got, want)
		}
	}
}

func TestRowsAreInKeyOrder(t *testing.T) {
	n := 0
	for _, tab := range Tables() {
		for _, rs := range tab.Sets {
			keys := rs.Keys()
			if !sort.SliceIsSorted(keys, func(i, j int) bool { return bytes.Compare(keys[i], keys[j]) < 0 }) {
				t.Errorf("%s rowset %d", tab.Name, rs.Index)
			}
			n++
		}
	}
	if n != 32 {
		t.Errorf("%d rowsets", n)
	}
}
