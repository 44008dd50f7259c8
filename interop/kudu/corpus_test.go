package kudu

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// A real Kudu wrote the corpus from a formula, and printed the dumps beside it. These tests check the comparing side
// of the harness: the dump's format, printing of values, key and delta encodings.

type manifestEntry struct {
	File, Dump, Kind, Table, Tablet, Expected, Column, Run string
	Rowset                                                 int
	Checksums                                              bool
	Schema                                                 *corpusColumn
	CFile                                                  map[string]string
}

type corpusColumn struct {
	Name, Type, Encoding, Compression string
	ID                                int
	Key, Nullable                     bool
	Precision, Scale, Length          int
}

func (c corpusColumn) column() column {
	t := strings.ToUpper(c.Type)
	if t == "DECIMAL" {
		t = [...]string{"DECIMAL32", "DECIMAL64", "DECIMAL128"}[max(0, sort.SearchInts([]int{9, 18, 38}, c.Precision))]
	}
	return column{Name: c.Name, Type: t, Key: c.Key, Nullable: c.Nullable, Prec: c.Precision, Scale: c.Scale,
		Len: c.Length}
}

// corpusDirs are the directories with real dumps: the small selection beside the tests, and the whole corpus.
func corpusDirs(t *testing.T) []string {
	dirs := []string{"testdata"}
	if d := os.Getenv("STOA_CORPUS"); d != "" {
		dirs = append(dirs, filepath.Join(d, "kudu"))
	} else {
		t.Log("STOA_CORPUS is not set: only the small selection in testdata is tried")
	}
	return dirs
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
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(name, err)
	}
	return b
}

type corpus struct {
	dir     string
	entries []manifestEntry
	schemas map[string][]corpusColumn
	rows    map[string][][]cell // by name of the expected file, sorted by key
	keys    map[string][][]byte
}

func loadCorpus(t *testing.T, dir string) *corpus {
	c := &corpus{dir: dir, rows: map[string][][]cell{}, keys: map[string][][]byte{}}
	for name, v := range map[string]any{"MANIFEST.json": &c.entries, "expected/schemas.json": &c.schemas} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatal(name, err)
		}
	}
	return c
}

// table returns a table's final contents in key order, and the encoded keys.
func (c *corpus) table(t *testing.T, name, file string) ([][]cell, [][]byte) {
	if r, ok := c.rows[file]; ok {
		return r, c.keys[file]
	}
	var cols, keys []column
	for _, s := range c.schemas[name] {
		cols = append(cols, s.column())
		if s.Key {
			keys = append(keys, s.column())
		}
	}
	type keyed struct {
		key []byte
		row []cell
	}
	var rows []keyed
	sc := bufio.NewScanner(bytes.NewReader(gunzip(t, filepath.Join(c.dir, file))))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var raw []json.RawMessage
		if err := json.Unmarshal(sc.Bytes(), &raw); err != nil {
			t.Fatal(file, err)
		}
		row := make([]cell, len(raw))
		for i, r := range raw {
			row[i] = corpusCell(t, cols[i], r)
		}
		rows = append(rows, keyed{encodeKey(keys, row), row})
	}
	sort.Slice(rows, func(i, j int) bool { return bytes.Compare(rows[i].key, rows[j].key) < 0 })
	for _, r := range rows {
		c.rows[file], c.keys[file] = append(c.rows[file], r.row), append(c.keys[file], r.key)
	}
	return c.rows[file], c.keys[file]
}

func corpusCell(t *testing.T, c column, raw json.RawMessage) cell {
	if string(raw) == "null" {
		return nil
	}
	s := string(raw)
	if s[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
	}
	var v cell
	var err error
	switch c.Type {
	case "BOOL":
		v, err = strconv.ParseBool(s)
	case "FLOAT":
		var u uint64
		u, err = strconv.ParseUint(s, 16, 32)
		v = math.Float32frombits(uint32(u))
	case "DOUBLE":
		var u uint64
		u, err = strconv.ParseUint(s, 16, 64)
		v = math.Float64frombits(u)
	case "STRING", "VARCHAR":
		v = []byte(s)
	case "BINARY":
		v, err = hex.DecodeString(s)
	case "DECIMAL128":
		b, ok := new(big.Int).SetString(s, 10)
		if !ok {
			err = fmt.Errorf("%q", s)
		}
		v = b
	default:
		v, err = strconv.ParseInt(s, 10, 64)
	}
	if err != nil {
		t.Fatal(c.Name, err)
	}
	return v
}

func TestDumpsOfTheCorpus(t *testing.T) {
	for _, dir := range corpusDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := loadCorpus(t, dir)
			seen := map[string]int{}
			for _, e := range c.entries {
				if e.Dump == "" {
					continue
				}
				d, err := parseDump(gunzip(t, filepath.Join(dir, e.Dump)))
				if err != nil {
					t.Fatal(e.Dump, err)
				}
				if err := d.facts(map[string]string{
					"num_values": e.CFile["num-values"], "encoding": e.CFile["encoding"],
					"compression":           e.CFile["compression"],
					"is_type_nullable":      e.CFile["nullable"],
					"incompatible_features": map[string]string{"0": "", "1": "1"}[e.CFile["incompatible-features"]],
				}); err != nil {
					t.Error(e.Dump, err)
				}
				if n, _ := strconv.Atoi(e.CFile["num-values"]); n != len(d.Lines) {
					t.Errorf("%s: %d lines, %d values", e.Dump, len(d.Lines), n)
				}
				seen[e.Kind]++
				// matrix, ck, btree and the key tables: one tablet, inserted and flushed once, so the dump is
				// the table in key order.
				whole := e.Table == "matrix" || e.Table == "ck" || e.Table == "btree" ||
					strings.HasPrefix(e.Table, "key_")
				switch {
				case e.Kind == "column" && whole:
					rows, keys := c.table(t, e.Table, e.Expected)
					at := -1
					nkeys := 0
					for i, s := range c.schemas[e.Table] {
						if s.Name == e.Column {
							at = i
						}
						if s.Key {
							nkeys++
						}
					}
					col := e.Schema.column()
					want := make([]cell, len(rows))
					for i := range rows {
						want[i] = rows[i][at]
					}
					if err := d.compare(col, want); err != nil {
						t.Errorf("%s: %v", e.Dump, err)
					}
					if g := d.Footer["data_type"]; g != col.Type {
						t.Errorf("%s: data type %s, not %s", e.Dump, g, col.Type)
					}
					if e.Schema.Key && nkeys == 1 {
						if err := d.facts(map[string]string{"metadata.min_key": metadata(keys[0]),
							"metadata.max_key": metadata(keys[len(keys)-1])}); err != nil {
							t.Errorf("%s: %v", e.Dump, err)
						}
					}
					seen["column compared"]++
					if len(want) > 0 { // it must be able to fail
						i := len(want) / 3
						old := want[i]
						if want[i] = cell(nil); old == nil {
							want[i] = fromHash(col, 12345, false)
						}
						if d.compare(col, want) == nil || d.compare(col, want[1:]) == nil {
							t.Errorf("%s: a changed value went unnoticed", e.Dump)
						}
						want[i] = old
					}
				case e.Kind == "adhoc-index" && whole:
					_, keys := c.table(t, e.Table, e.Expected)
					want := make([]cell, len(keys))
					for i := range keys {
						want[i] = keys[i]
					}
					if err := d.compare(column{Type: "BINARY"}, want); err != nil {
						t.Errorf("%s: %v", e.Dump, err)
					}
					if err := d.facts(map[string]string{"metadata.min_key": metadata(keys[0]),
						"metadata.max_key": metadata(keys[len(keys)-1])}); err != nil {
						t.Errorf("%s: %v", e.Dump, err)
					}
					seen["ad-hoc index compared"]++
				case e.Kind == "undo" || e.Kind == "redo":
					var last change
					var entries []change
					for i, l := range d.Lines {
						raw, err := unescape(l)
						if err != nil {
							t.Fatalf("%s: %s: %v", e.Dump, l, err)
						}
						ch, ok := decodeChange(raw)
						if !ok || !bytes.Equal(ch.encode(), raw) {
							t.Fatalf("%s: %s does not survive decoding", e.Dump, l)
						}
						if got := dumped("BINARY", ch.encode()); got != l {
							t.Fatalf("%s: %s printed as %s", e.Dump, l, got)
						}
						// Two changes of one row in one batch of the client have the same time: seen in real
						// REDO files.
						if i > 0 && (ch.Row < last.Row || ch.Row == last.Row && ch.Time != last.Time &&
							(ch.Time > last.Time) == (e.Kind == "undo")) {
							t.Errorf("%s: entry %d is out of order", e.Dump, i)
						}
						last = ch
						entries = append(entries, ch)
						seen["delta entries compared"]++
					}
					if got, err := parseStats(d.Footer["metadata.deltafilestats"]); err != nil ||
						!reflect.DeepEqual(got, statsOf(entries)) {
						t.Errorf("%s: statistics %v %v, meant %v", e.Dump, got, err, statsOf(entries))
					}
				}
			}
			t.Log(seen)
			if seen["column compared"] == 0 || seen["ad-hoc index compared"] == 0 ||
				seen["delta entries compared"] == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// unescape reads a printed BINARY back.
func unescape(l string) ([]byte, error) {
	if len(l) < 2 || l[0] != '"' || l[len(l)-1] != '"' {
		return nil, fmt.Errorf("not quoted")
	}
	l = l[1 : len(l)-1]
	var b []byte
	for i := 0; i < len(l); i++ {
		if l[i] != '\\' {
			b = append(b, l[i])
			continue
		}
		if i++; i >= len(l) {
			return nil, fmt.Errorf("it ends with a backslash")
		}
		if j := strings.IndexByte("nrt\"'\\", l[i]); j >= 0 {
			b = append(b, "\n\r\t\"'\\"[j])
			continue
		}
		if l[i] != 'x' || i+2 >= len(l) {
			return nil, fmt.Errorf("strange escape")
		}
		v, err := strconv.ParseUint(l[i+1:i+3], 16, 8)
		if err != nil {
			return nil, err
		}
		b = append(b, byte(v))
		i += 2
	}
	return b, nil
}

func TestDamagedDumpIsRefused(t *testing.T) {
	const good = "Header:\n\nFooter:\ndata_type: INT32\nnum_values: 2\nmetadata {\n  key: \"min_key\"\n  value: " +
		"\"a\"\n}\n\n1\nNULL\n"
	d, err := parseDump([]byte(good))
	if err != nil || len(d.Lines) != 2 || d.Footer["metadata.min_key"] != `"a"` {
		t.Fatal(d, err)
	}
	for _, bad := range []string{"", "Footer:\n\n", good[:len(good)-1], good[:40], "x" + good} {
		if d, err := parseDump([]byte(bad)); err == nil {
			t.Errorf("%q was taken as %v", bad, d)
		}
	}
	if d.compare(column{Type: "INT32"}, []cell{int64(1), int64(0)}) == nil ||
		d.facts(map[string]string{"num_values": "3"}) == nil {
		t.Error("a difference went unnoticed")
	}
}
