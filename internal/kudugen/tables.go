package kudugen

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Phases of the history of the tables d_*; each ends with a snapshot, and p0 to p4 with a flush.
var Phases = []string{"p0a", "p0", "p1", "p2", "p3", "p4", "final"}

// Table is a table as the generator stored it.
type Table struct {
	Name    string
	Columns []Column            // at the end of the run
	Rows    map[string][][]Cell // logical contents in key order, by phase; every table has "final"
	Sets    []Rowset            // the base data on disk
}

// Rowset is the base data of one rowset on disk, in key order, including deleted rows.
type Rowset struct {
	Partition string // as in the corpus's manifest; "" if the table has only one
	Index     int
	Columns   []Column // columns that have a file
	Rows      [][]Cell
}

// Column returns the column with the given id and its cells; false if there is none.
func (r Rowset) Column(id int) (Column, []Cell, bool) {
	for i, c := range r.Columns {
		if c.ID == id {
			out := make([]Cell, len(r.Rows))
			for j := range out {
				out[j] = r.Rows[j][i]
			}
			return c, out, true
		}
	}
	return Column{}, nil, false
}

// Keys returns the encoded keys of the rows.
func (r Rowset) Keys() [][]byte {
	out := make([][]byte, len(r.Rows))
	for i := range out {
		out[i] = EncodeKey(r.Columns, r.Rows[i])
	}
	return out
}

const (
	auto = "AUTO_ENCODING"
	none = "NO_COMPRESSION"
	dflt = "DEFAULT_COMPRESSION"
)

// col makes a column with the generator's parameters; attr is precision and scale, or length.
func col(name, typ string, key, nullable bool, enc, comp string, block int, attr ...int) Column {
	c := Column{Name: name, Type: typ, Key: key, Nullable: nullable, Encoding: enc, Compression: comp, BlockSize: block}
	switch {
	case typ == "decimal":
		c.Precision, c.Scale = attr[0], attr[1]
	case typ == "varchar":
		c.Length = attr[0]
	}
	return c
}

func numbered(cols []Column) []Column {
	for i := range cols {
		cols[i].ID = i
	}
	return cols
}

// Tables makes all tables of the corpus.
func Tables() []*Table {
	out := []*Table{matrix(), compound()}
	out = append(out, keyTables()...)
	out = append(out, btree(), partitioned())
	for _, n := range []string{"d_raw", "d_minor", "d_major", "d_rowset", "d_wal"} {
		out = append(out, history(n))
	}
	return append(out, altered(), autoIncrement())
}

// simple returns a table with one rowset and no changes.
func simple(name string, cols []Column, rows [][]Cell) *Table {
	numbered(cols)
	SortByKey(cols, rows)
	return &Table{name, cols, map[string][][]Cell{"final": rows}, []Rowset{{Columns: cols, Rows: rows}}}
}

var keyTypes = []struct {
	name, typ string
	attr      []int
}{
	{"int8", "int8", nil}, {"int16", "int16", nil}, {"int32", "int32", nil}, {"int64", "int64", nil},
	{"unixtime", "unixtime_micros", nil}, {"date", "date", nil},
	{"dec9", "decimal", []int{9, 2}}, {"dec18", "decimal", []int{18, 4}}, {"dec38", "decimal", []int{38, 10}},
	{"string", "string", nil}, {"binary", "binary", nil}, {"varchar", "varchar", []int{30}},
}

func matrix() *Table {
	const plain, bitshuffle, rle, prefix, dict = "PLAIN_ENCODING", "BIT_SHUFFLE", "RLE", "PREFIX_ENCODING",
		"DICT_ENCODING"
	ints := []string{plain, bitshuffle, rle}
	strs := []string{plain, prefix, dict}
	cols := []Column{col("id", "int32", true, false, auto, dflt, 4096)}
	for _, t := range []struct {
		typ  string
		encs []string
		attr []int
	}{
		{"bool", []string{plain, rle}, nil},
		{"int8", ints, nil}, {"int16", ints, nil}, {"int32", ints, nil}, {"int64", ints, nil},
		{"unixtime_micros", ints, nil}, {"date", ints, nil},
		{"float", []string{plain, bitshuffle}, nil}, {"double", []string{plain, bitshuffle}, nil},
		{"decimal", ints, []int{9, 2}}, {"decimal", ints, []int{18, 4}},
		{"decimal", []string{plain, bitshuffle}, []int{38, 10}},
		{"string", strs, nil}, {"binary", strs, nil}, {"varchar", strs, []int{30}},
	} {
		name := t.typ
		if t.typ == "decimal" {
			name += fmt.Sprint(t.attr[0])
		}
		for _, e := range t.encs {
			for _, c := range []string{none, "LZ4", "SNAPPY", "ZLIB"} {
				for _, suffix := range []string{"", "_null"} {
					n := name + "_" + strings.ReplaceAll(strings.TrimSuffix(e, "_ENCODING"), "_", "") + "_" +
						strings.TrimSuffix(c, "_COMPRESSION") + suffix
					cols = append(cols, col(strings.ToLower(n), t.typ, false, suffix != "", e, c, 4096, t.attr...))
				}
			}
		}
	}
	var rows [][]Cell
	for r := range int64(1200) {
		row := []Cell{Int(4, r-600)}
		for c := 1; c < len(cols); c++ {
			row = append(row, Value(cols[c], int64(c), r, c/2%4))
		}
		rows = append(rows, row)
	}
	return simple("matrix", cols, rows)
}

func compound() *Table {
	cols := []Column{
		col("s", "string", true, false, "PREFIX_ENCODING", dflt, 512), col("i", "int32", true, false, auto, dflt, 512),
		col("t", "unixtime_micros", true, false, auto, dflt, 512),
		col("b", "binary", true, false, "PLAIN_ENCODING", dflt, 512),
		col("v", "int64", false, false, auto, dflt, 512), col("w", "string", false, true, auto, "LZ4", 512),
	}
	var rows [][]Cell
	for r := range int64(6000) {
		s := strings.Repeat("prefix/", 17) + string(rune('a'+H(1, r/200)%5))
		if r/200%3 == 0 {
			s += "\x00\x01x"
		}
		rows = append(rows, []Cell{
			Cell(s + fmt.Sprint(r/200)), Int(4, r/20%10-5), Int(8, r%20*1000003-7), {byte(H(2, r)), 0, byte(r)},
			Int(8, H(3, r)), Value(cols[5], 9, r, 3),
		})
	}
	return simple("ck", cols, rows)
}

func keyTables() (out []*Table) {
	var all []Column
	for i, k := range keyTypes {
		kc := col("k", k.typ, true, false, auto, dflt, 512, k.attr...)
		seen := map[string]bool{}
		var rows [][]Cell
		for r := range int64(400) {
			v := Value(kc, int64(i+1), r, 0)
			if !seen[string(v)] {
				seen[string(v)] = true
				rows = append(rows, []Cell{v, Int(4, r)})
			}
		}
		out = append(out, simple("key_"+k.name, []Column{kc, col("v", "int32", false, false, auto, dflt, 512)}, rows))
		kc.Name = "k_" + k.name
		all = append(all, kc)
	}
	all = append(all, col("v", "int32", false, false, auto, dflt, 0))
	var rows [][]Cell
	for r := range int64(400) {
		var row []Cell
		for c := range all[:len(all)-1] {
			pat := 0
			if c < 6 {
				pat = 3
			}
			row = append(row, Value(all[c], int64(c+1), r, pat))
		}
		rows = append(rows, append(row, Int(4, r)))
	}
	return append(out, simple("key_all", all, rows))
}

func btree() *Table {
	cols := []Column{
		col("k", "string", true, false, "PLAIN_ENCODING", "LZ4", 512),
		col("w", "string", false, true, "PLAIN_ENCODING", "LZ4", 512),
		col("n", "int64", false, false, "PLAIN_ENCODING", dflt, 512),
	}
	var rows [][]Cell
	for r := range int64(3500) {
		var w Cell
		if H(5, r)%9 != 0 {
			w = Cell(strings.Repeat(string(rune('a'+r%26)), int(560+r%7)))
		}
		rows = append(rows, []Cell{Cell(strings.Repeat("Z", 1000) + fmt.Sprintf("%08d", r*11)), w, Int(8, H(6, r))})
	}
	return simple("btree", cols, rows)
}

func partitioned() *Table {
	t := &Table{Name: "part", Columns: numbered([]Column{
		col("id", "int64", true, false, auto, dflt, 0), col("day", "int32", true, false, auto, dflt, 0),
		col("v", "string", false, true, auto, dflt, 0),
	})}
	parts := map[string][][]Cell{}
	var all [][]Cell
	for r := range int64(400) {
		row := []Cell{Int(8, H(8, r)), Int(4, r%200), Value(t.Columns[2], 2, r, 3)}
		bucket := murmur64(EncodeKey(t.Columns[:1], row), 7) % 2
		day := r % 200 / 100 * 100
		p := fmt.Sprintf("HASH (id) PARTITION %d, RANGE (day) PARTITION %d <= VALUES < %d", bucket, day, day+100)
		parts[p] = append(parts[p], row)
		all = append(all, row)
	}
	SortByKey(t.Columns, all)
	t.Rows = map[string][][]Cell{"final": all}
	for p, rows := range parts {
		SortByKey(t.Columns, rows)
		t.Sets = append(t.Sets, Rowset{Partition: p, Columns: t.Columns, Rows: rows})
	}
	return t
}

func autoIncrement() *Table {
	cols := []Column{
		col("k", "int32", true, false, auto, dflt, 0),
		col("auto_incrementing_id", "int64", true, false, auto, dflt, 0),
		col("v", "string", false, false, auto, dflt, 0),
	}
	var rows [][]Cell
	for r := range int64(300) {
		rows = append(rows, []Cell{Int(4, r/3), Int(8, r+1), Cell(fmt.Sprint("v", r))})
	}
	return simple("autoinc", cols, rows)
}

func historyColumns() []Column {
	return numbered([]Column{
		col("id", "int64", true, false, auto, dflt, 4096), col("a", "int32", false, false, auto, dflt, 4096),
		col("b", "string", false, true, "DICT_ENCODING", dflt, 4096),
		col("c", "double", false, true, auto, "LZ4", 4096),
		col("d", "binary", false, true, "PLAIN_ENCODING", dflt, 4096), col("e", "bool", false, false, auto, dflt, 0),
		col("f", "decimal", false, true, auto, dflt, 0, 18, 4), col("g", "decimal", false, true, auto, dflt, 0, 38, 10),
		col("h", "int8", false, true, "RLE", dflt, 0), col("v", "varchar", false, true, "PREFIX_ENCODING", dflt, 0, 40),
		col("dt", "date", false, true, auto, dflt, 0), col("ts", "unixtime_micros", false, true, auto, dflt, 0),
	})
}

func historyRow(cols []Column, i, salt int64) []Cell {
	row := []Cell{Int(8, i*7)}
	for c := 1; c < len(cols); c++ {
		row = append(row, Value(cols[c], int64(c)+salt*100, i, c%4))
	}
	return row
}

// model replays the generator's operations.
type model struct {
	live map[int64][]Cell   // by i (the key is 7i)
	set  []map[int64][]Cell // last version of each row in each rowset, including deleted rows
	at   map[int64]int      // the rowset in which row i is live
}

func (m *model) insert(i int64, rowset int, row []Cell) {
	m.live[i], m.set[rowset][i], m.at[i] = row, row, rowset
}

func (m *model) update(i int64, cols []int, vals ...Cell) {
	row, ok := m.live[i]
	if !ok {
		return
	}
	row = slices.Clone(row)
	for k, c := range cols {
		row[c] = vals[k]
	}
	m.insert(i, m.at[i], row)
}

func rowsOf(m map[int64][]Cell) [][]Cell {
	var ids []int64
	for i := range m {
		ids = append(ids, i)
	}
	slices.Sort(ids)
	var out [][]Cell
	for _, i := range ids {
		out = append(out, m[i])
	}
	return out
}

func history(name string) *Table {
	cols := historyColumns()
	t := &Table{Name: name, Columns: cols, Rows: map[string][][]Cell{}}
	m := model{map[int64][]Cell{}, []map[int64][]Cell{{}, {}}, map[int64]int{}}
	m.insertFirst(t)
	first := rowsOf(m.set[0]) // flushed
	m.changeFirst(t)
	second := rowsOf(m.set[1]) // flushed
	m.changeBoth(t)
	switch name {
	case "d_major": // major delta compaction moved all deltas except deletes into the base data
		first, second = rowsOf(m.set[0]), rowsOf(m.set[1])
	case "d_rowset": // rowset compaction kept the last version of each key
		all := m.set[0]
		for i, row := range m.set[1] {
			all[i] = row
		}
		t.Sets = []Rowset{{Index: 2, Columns: cols, Rows: rowsOf(all)}}
	case "d_wal": // the rest is only in the write-ahead log
		for i := int64(2000); i < 2050; i++ {
			m.insert(i, 1, historyRow(cols, i, 0))
		}
		for i := int64(0); i < 1500; i += 20 {
			m.update(i, []int{1}, Int(4, 777000+i))
		}
	}
	t.Rows["final"] = rowsOf(m.live)
	if t.Sets == nil {
		t.Sets = []Rowset{{Index: 0, Columns: cols, Rows: first}, {Index: 1, Columns: cols, Rows: second}}
	}
	return t
}

// insertFirst applies the operations before the first flush.
func (m *model) insertFirst(t *Table) {
	cols := t.Columns
	for i := range int64(1500) {
		m.insert(i, 0, historyRow(cols, i, 0))
	}
	t.Rows["p0a"] = rowsOf(m.live)

	for i := int64(3); i < 1500; i += 10 {
		m.update(i, []int{1, 2}, Int(4, i), Cell(fmt.Sprint("mrs-", i)))
	}
	for i := int64(7); i < 1500; i += 50 {
		delete(m.live, i)
	}
	for i := int64(7); i < 1500; i += 100 {
		m.insert(i, 0, historyRow(cols, i, 1))
	}
	t.Rows["p0"] = rowsOf(m.live)
}

// changeFirst updates the rows of the first flush, and inserts those of the second.
func (m *model) changeFirst(t *Table) {
	cols := t.Columns
	for i := int64(0); i < 1500; i += 3 {
		b := Cell(fmt.Sprint("upd1-", i%40))
		if i%2 == 0 {
			b = nil
		}
		m.update(i, []int{1, 2}, Int(4, -i), b)
	}
	t.Rows["p1"] = rowsOf(m.live)

	for i := int64(1); i < 1500; i += 5 {
		c, d := Double(float64(i)/3), Cell{byte(i), 0, 1}
		if i%4 == 0 {
			c = nil
		}
		if i%3 == 0 {
			d = nil
		}
		m.update(i, []int{3, 4, 5}, c, d, Bool(i%2 == 0))
	}
	for i := int64(2); i < 1500; i += 11 {
		delete(m.live, i)
	}
	t.Rows["p2"] = rowsOf(m.live)

	for i := int64(2); i < 1500; i += 22 {
		m.insert(i, 1, historyRow(cols, i, 2))
	}
	for i := int64(1500); i < 1700; i++ {
		m.insert(i, 1, historyRow(cols, i, 0))
	}
	t.Rows["p3"] = rowsOf(m.live)
}

// changeBoth updates rows of both flushes.
func (m *model) changeBoth(t *Table) {
	for i := int64(4); i < 1700; i += 6 {
		f := Int(8, i*31-9)
		if i%5 == 0 {
			f = nil
		}
		g := new(big.Int).Exp(big.NewInt(-i), big.NewInt(5), nil)
		m.update(i, []int{6, 7, 8, 9, 10, 11}, f, Big(16, g), Int(1, i), Cell(fmt.Sprint("vc", i)), Int(4, i),
			Int(8, i*1000000))
	}
	for i := int64(4); i < 1700; i += 12 {
		m.update(i, []int{1}, Int(4, i+1))
	}
	t.Rows["p4"] = rowsOf(m.live)
}

func altered() *Table {
	before := historyColumns()
	before[1].Name = "a2"
	after := append(slices.Delete(slices.Clone(before), 5, 6),
		col("x", "int32", false, false, auto, dflt, 0), col("y", "string", false, true, auto, dflt, 0),
		col("z", "string", false, true, auto, dflt, 0))
	for i := range 3 {
		after[11+i].ID = 12 + i
	}
	t := &Table{Name: "d_alter", Columns: after, Rows: map[string][][]Cell{}}
	var first, second, final [][]Cell
	for i := range int64(300) {
		row := historyRow(before, i, 0)
		first = append(first, slices.Clone(row))
		if i%4 == 0 {
			row[1], row[5] = Int(4, i), Bool(true)
		}
		row = append(slices.Delete(row, 5, 6), Int(4, 42), nil, Cell("dflt"))
		if i%5 == 1 {
			row[11], row[12], row[13] = Int(4, i), Cell(fmt.Sprint("y", i)), Cell(fmt.Sprint("z", i))
			if i%2 == 0 {
				row[13] = nil
			}
		}
		final = append(final, row)
	}
	for i := int64(300); i < 500; i++ {
		second = append(second, historyRow(after, i, 0))
	}
	t.Rows["final"] = append(final, second...)
	before[5].Name = ""
	t.Sets = []Rowset{{Index: 0, Columns: before, Rows: first}, {Index: 1, Columns: after, Rows: second}}
	return t
}

// Rowset returns a rowset by partition and number.
func (t *Table) Rowset(partition string, index int) (Rowset, error) {
	for _, r := range t.Sets {
		if r.Index == index && (r.Partition == "" || r.Partition == partition) {
			return r, nil
		}
	}
	return Rowset{}, fmt.Errorf("table %s has no rowset %d of %q", t.Name, index, partition)
}
