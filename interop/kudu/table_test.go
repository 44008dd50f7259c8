//go:build interop

package kudu

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A table has three sets of keys, interleaved in key order: those inserted into Kudu first (A), those of the
// files that replace Kudu's (B), and those in neither (C). Values depend on the set. So the result of a scan
// proves whose files were read, and inserts of A, B and C prove whose bloom filter and whose index were used.
type table struct {
	name    string
	cols    []column
	a, b, c [][]cell // whole rows, sorted by key
}

func (t table) keys() []column {
	for i, c := range t.cols {
		if !c.Key {
			return t.cols[:i]
		}
	}
	return t.cols
}

// newTable makes n rows per set (fewer where the key's type has not enough values).
func newTable(name string, n, seed int, cols ...column) table {
	t := table{name: name, cols: cols}
	type keyed struct {
		enc []byte
		key []cell
	}
	var all []keyed
	seen := map[string]bool{}
	for r := 0; len(all) < 3*n && r < 8*n; r++ {
		k := keyed{}
		for i, c := range t.keys() {
			x := c
			x.Nullable = false
			var v cell
			switch {
			case i == len(t.keys())-1 || hash(seed, r)%2 == 0:
				v = value(x, seed+i, r)
			default: // many rows share the first parts of a key
				v = value(x, seed+i, r/25*25)
			}
			k.key = append(k.key, v)
		}
		k.enc = encodeKey(t.keys(), k.key)
		if !seen[string(k.enc)] {
			seen[string(k.enc)] = true
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(x, y keyed) int { return bytes.Compare(x.enc, y.enc) })
	sets := []*[][]cell{&t.a, &t.b, &t.c}
	for i := range len(all) / 3 * 3 {
		row := slices.Clone(all[i].key)
		for j, c := range t.cols[len(t.keys()):] {
			row = append(row, value(c, seed+100*(i%3)+10*j+7, i/3))
		}
		*sets[i%3] = append(*sets[i%3], row)
	}
	return t
}

// columnOf returns one column of rows.
func columnOf(rows [][]cell, i int) []cell {
	out := make([]cell, len(rows))
	for r := range rows {
		out[r] = rows[r][i]
	}
	return out
}

// encodedKeys returns the keys of rows as in Kudu's bloom filters and indexes.
func (t table) encodedKeys(rows [][]cell) [][]byte {
	out := make([][]byte, len(rows))
	for i, r := range rows {
		out[i] = encodeKey(t.keys(), r)
	}
	return out
}

func (t table) wired(rows [][]cell) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = wiredRow(r)
	}
	return out
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			g, w := strings.Split(got[i], "\t"), strings.Split(want[i], "\t")
			for j := range min(len(g), len(w)) {
				if g[j] != w[j] {
					return fmt.Sprintf("row %d, column %d: Kudu serves %.200s, meant %.200s", i, j, g[j], w[j])
				}
			}
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("Kudu serves %d rows, meant %d", len(got), len(want))
	}
	return ""
}

// judge checks a table whose files hold the rows B on the running server, in every way that uses the files:
// a full scan; 60 scans of key ranges (value index or ad-hoc index); inserts of present and absent keys (bloom, index,
// key column); a full scan again. It returns the errors, as the negative controls expect some.
func (t table) judge(s *server) (wrong []string) {
	complain := func(what, f string, args ...any) { wrong = append(wrong, what+": "+fmt.Sprintf(f, args...)) }
	want := t.wired(t.b)
	got, err := s.scan(t.name)
	if err != nil {
		complain("scan", "%v", err)
		return // the tablet has failed: further checks are meaningless
	}
	if d := firstDifference(got, want); d != "" {
		complain("scan", "%s", d)
	}

	nk := len(t.keys())
	var ranges, wantRanges []string
	for i := range 60 {
		// from a present or an absent key to another one
		from := int(hash(1, i) % uint64(len(t.b)))
		to := min(len(t.b)-1, from+int(hash(2, i)%40))
		lo, hi, first := t.b[from], t.b[to], from
		switch i % 3 {
		case 1:
			lo = t.a[from] // just below b[from]
		case 2:
			lo, first = t.c[from], from+1 // just above b[from]
		}
		ranges = append(ranges, wiredRow(lo[:nk])+"\t"+wiredRow(hi[:nk]))
		if first < to {
			wantRanges = append(wantRanges, want[first:to]...)
		}
		wantRanges = append(wantRanges, ".")
		if first > to { // an empty range is refused by the client
			ranges, wantRanges = ranges[:len(ranges)-1], wantRanges[:len(wantRanges)-1]
		}
	}
	out := s.file(nil)
	if _, err := s.do("ranges", t.name, s.file(ranges), out); err != nil {
		complain("ranges", "%v", err)
	} else if d := firstDifference(s.lines(out), wantRanges); d != "" {
		complain("ranges", "%s", d)
	}

	statuses := func(what string, rows [][]cell, want string) {
		bad, first := 0, ""
		for i, st := range s.write(t.name, "insert", rows) {
			if st != want {
				if bad++; bad == 1 {
					first = fmt.Sprintf("row %d: %s, not %s", i, st, want)
				}
			}
		}
		if bad > 0 {
			complain(what, "%d of %d inserts; %s", bad, len(rows), first)
		}
	}
	statuses("insert of present keys", t.b, "AlreadyPresent")
	if len(wrong) > 0 {
		return wrong // two rows with one key would crash the server at the next ordered scan
	}
	before := s.metrics("bloom_lookups", "key_file_lookups")[t.name]
	statuses("insert of absent keys", slices.Concat(t.c, t.a), "ok")
	after := s.metrics("bloom_lookups", "key_file_lookups")[t.name]
	// A bloom filter of Kudu's own size passes one absent key in ten thousand on to the key file.
	if asked, passed := after["bloom_lookups"]-before["bloom_lookups"],
		after["key_file_lookups"]-before["key_file_lookups"]; asked < float64(len(t.a)) || passed > 5+asked/200 {
		complain("bloom", "%.0f of %.0f absent keys passed the filter", passed, asked)
	}
	got, err = s.scan(t.name)
	if err != nil {
		complain("scan after inserts", "%v", err)
		return
	}
	var union []string
	for i := range t.b {
		union = append(union, wiredRow(t.a[i]), wiredRow(t.b[i]), wiredRow(t.c[i]))
	}
	if d := firstDifference(got, union); d != "" {
		complain("scan after inserts", "%s", d)
	}
	return wrong
}

// load creates tables, inserts the rows A, flushes, stops the server, and returns the blocks on disk.
func load(s *server, tables []table) map[string][]block {
	s.t.Helper()
	var names []string
	for _, t := range tables {
		s.create(t.name, t.cols)
		s.mustWrite(t.name, "insert", t.a)
		names = append(names, t.name)
	}
	s.flushRows(names...)
	s.stop()
	all := s.blocks()
	for _, t := range tables {
		kinds := map[string]int{}
		for _, b := range all[t.name] {
			kinds[b.Kind]++
			if b.Rowset != all[t.name][0].Rowset {
				s.t.Fatalf("%s: more than one rowset", t.name)
			}
			if (b.Kind == "column" || b.Kind == "adhoc-index") && b.Values != len(t.a) {
				s.t.Fatalf("%s: %d values in %v, not %d", t.name, b.Values, b, len(t.a))
			}
		}
		adhoc := 0
		if len(t.keys()) > 1 {
			adhoc = 1
		}
		if kinds["column"] != len(t.cols) || kinds["bloom"] != 1 || kinds["adhoc-index"] != adhoc ||
			kinds["undo"] != 1 || kinds["redo"] != 0 {
			s.t.Fatalf("%s: blocks %v", t.name, kinds)
		}
	}
	return all
}

func report(t testing.TB, name string, wrong []string) {
	t.Helper()
	for _, w := range wrong {
		t.Errorf("%s: %s", name, w)
	}
}

// has reports whether wrong has an error of that kind.
func has(wrong []string, kind string) bool {
	return slices.ContainsFunc(wrong, func(w string) bool { return strings.HasPrefix(w, kind+":") })
}

// keyTables returns one table for each type of key, and compound ones.
func keyTables(suffix string, n int, values ...column) []table {
	var out []table
	key := func(typ string) column {
		c := column{Name: "k", Type: typ, Key: true, BlockSize: 512, Enc: "BIT_SHUFFLE", Comp: "NO_COMPRESSION"}
		switch typ {
		case "DECIMAL32":
			c.Prec, c.Scale = 9, 2
		case "DECIMAL64":
			c.Prec, c.Scale = 18, 4
		case "DECIMAL128":
			c.Prec, c.Scale = 38, 10
		case "VARCHAR":
			c.Len = 30
		}
		if typ == "STRING" || typ == "BINARY" || typ == "VARCHAR" {
			c.Enc = "PREFIX_ENCODING"
		}
		return c
	}
	with := func(name string, seed int, keys ...column) {
		for i := range keys {
			keys[i].Name = fmt.Sprintf("k%d", i)
		}
		out = append(out, newTable(name+suffix, n, seed, append(keys, values...)...))
	}
	for i, typ := range []string{"INT8", "INT16", "INT32", "INT64", "UNIXTIME_MICROS", "DATE", "DECIMAL32",
		"DECIMAL64", "DECIMAL128", "STRING", "BINARY", "VARCHAR"} {
		with("key_"+strings.ToLower(typ), 1000*i, key(typ))
	}
	dict, plain := key("STRING"), key("BINARY")
	dict.Enc, dict.Comp, plain.Enc, plain.Comp = "DICT_ENCODING", "LZ4", "PLAIN_ENCODING", "ZLIB"
	with("key_string_dict", 13000, dict)
	with("key_binary_plain", 14000, plain)
	with("pair_int32_string", 15000, key("INT32"), key("STRING"))
	with("triple_string_int64_binary", 16000, key("STRING"), key("INT64"), key("BINARY"))
	with("all_keys", 17000, dict, key("INT8"), key("INT16"), key("DATE"), key("VARCHAR"), key("DECIMAL128"), plain,
		key("UNIXTIME_MICROS"), key("DECIMAL32"), key("INT64"))
	return out
}

// valueColumns returns value columns of every type, with different encodings, compressions and nullability.
func valueColumns() []column {
	var out []column
	comps := []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}
	for _, c := range gridColumns() {
		if strings.HasPrefix(c.Type, "UINT") || c.Type == "INT128" {
			continue // no table can have these
		}
		i := len(out)
		c.Name = fmt.Sprintf("v%d_%s", i, strings.ToLower(c.Type))
		c.Comp, c.Nullable, c.BlockSize = comps[i%4], i%3 != 0, []int{512, 1024, 4096}[i%3]
		out = append(out, c)
	}
	return out
}
