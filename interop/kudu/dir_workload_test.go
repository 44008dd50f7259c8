//go:build interop

package kudu

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A field is a column of a table with every feature that Kudu's schemas have.
type field struct {
	column
	id        int    // values depend on it; a renamed column keeps it
	def       string // default value as text; "" = none
	immutable bool
	unsure    bool // key column of a table whose keys are not unique
	auto      bool // filled in by the server
}

// A tale is a table and its history. Its expected content is not computed here: Kudu is asked.
type workload struct {
	name   string
	fields []field
	more   []string // partitions and the rest
	space  int      // number of different keys of operations
	seed   int
	from   int // first chapter
	till   int // the chapter after which it is dropped; 0: never
	alters map[int]func(t *workload, s *server)
	odd    bool // deletes and inserts the same key in one batch, at the same time
}

// chapters are the numbers of operations, and the weights of their kinds.
var chapters = []struct {
	ops     int
	weights [8]int // of kinds, in their order
}{
	{900, [8]int{20, 1, 1, 0, 0, 0, 0, 0}},
	{500, [8]int{2, 1, 2, 1, 5, 1, 2, 1}},
	{500, [8]int{4, 1, 3, 1, 3, 1, 3, 1}},
	{400, [8]int{1, 1, 1, 1, 8, 2, 1, 0}},
	{600, [8]int{6, 1, 2, 1, 2, 1, 5, 1}},
	{400, [8]int{1, 1, 3, 1, 6, 1, 1, 1}},
	{500, [8]int{4, 1, 3, 1, 4, 1, 3, 1}},
}

var kinds = [8]string{"insert", "insert_ignore", "upsert", "upsert_ignore", "update", "update_ignore", "delete",
	"delete_ignore"}

// keyCell is a column's part of key k; different keys may share the first parts.
func (t *workload) keyCell(i, k int, last bool) cell {
	f := t.fields[i]
	if !last {
		k = k / 16 * 16
	}
	if k%16 == 5 && last {
		e := edges(f.column)
		return e[k/16%len(e)]
	}
	c := f.column
	c.Nullable = false
	return fromHash(c, hash(t.seed*31+f.id, k), false)
}

func (t *workload) keys() (n int) {
	for _, f := range t.fields {
		if f.Key || f.unsure {
			n++
		}
	}
	return n
}

// ops draws the operations of a chapter.
func (t *workload) ops(chapter int) []string {
	ch := chapters[chapter]
	total := 0
	for _, w := range ch.weights {
		total += w
	}
	seed, nk := t.seed+7919*(chapter+1), t.keys()
	hot := int(hash(seed, -1) % uint64(t.space))
	var out []string
	for i := range ch.ops {
		k := int(hash(seed, i) >> 3 % uint64(t.space))
		switch i / 40 % 3 {
		case 0:
			k = (chapter*211 + i) % t.space
		case 1:
			if chapter > 0 {
				k = (hot + k%9) % t.space // a few rows that change often
			}
		}
		kind, pick := 0, int(hash(seed+1, i)>>3%uint64(total))
		for pick >= ch.weights[kind] {
			pick -= ch.weights[kind]
			kind++
		}
		words := []string{kinds[kind]}
		for c, f := range t.fields {
			switch h := hash(seed+2+c, i); {
			case f.auto && kind < 4:
				words = append(words, "-")
			case f.auto:
				words = append(words, strconv.Itoa(1+k%200))
			case c < nk:
				words = append(words, wired(t.keyCell(c, k, c == nk-1)))
			case kind >= 6: // the key is enough
				words = append(words, "-")
			case (kind >= 2 || f.def != "" || f.Nullable) && h>>5&3 != 0 && (kind >= 4 || f.Nullable || f.def != ""):
				words = append(words, "-")
			default:
				words = append(words, wired(value(f.column, t.seed+100*chapter+f.id, i)))
			}
		}
		if kind == 4 || kind == 5 { // an update must set a column
			if c := len(words) - 1; words[c] == "-" {
				words[c] = wired(value(t.fields[c-1].column, t.seed+100*chapter+t.fields[c-1].id, i))
			}
		}
		out = append(out, strings.Join(words, "\t"))
	}
	return out
}

// live runs a chapter of the tale.
func (t *workload) live(s *server, chapter int, tally map[string]int) {
	s.t.Helper()
	if chapter < t.from || t.till > 0 && chapter > t.till {
		return
	}
	if chapter == t.from {
		s.make(t.name, t.fields, t.more...)
	}
	ops := t.ops(chapter)
	batch := 1 + int(hash(t.seed, chapter)%90)
	half := len(ops) / 2
	if f := t.alters[chapter]; f != nil {
		s.apply(t.name, ops[:half], batch, tally)
		f(t, s)
		ops = t.ops(chapter)[half:]
	}
	s.apply(t.name, ops, batch, tally)
	if t.till == chapter && t.till > 0 {
		s.must("drop", t.name)
	}
}

func typed(id int, name, typ string, o ...func(*field)) field {
	f := field{id: id, column: column{Name: name, Type: typ, BlockSize: 512}}
	switch typ {
	case "DECIMAL32":
		f.Prec, f.Scale = 7, 3
	case "DECIMAL64":
		f.Prec, f.Scale = 18, 0
	case "DECIMAL128":
		f.Prec, f.Scale = 38, 38
	case "VARCHAR":
		f.Len = 17
	}
	for _, g := range o {
		g(&f)
	}
	return f
}

func key(f *field)  { f.Key = true }
func null(f *field) { f.Nullable = true }
func def(w string) func(*field) {
	return func(f *field) { f.def = w }
}

var everyType = []string{"BOOL", "INT8", "INT16", "INT32", "INT64", "UNIXTIME_MICROS", "DATE", "FLOAT", "DOUBLE",
	"DECIMAL32", "DECIMAL64", "DECIMAL128", "STRING", "BINARY", "VARCHAR"}

// allTypes returns every type, with and without NULLs, in the encodings that Kudu chooses.
func allTypes() (out []field) {
	out = append(out, typed(0, "id", "INT64", key))
	for i, typ := range everyType {
		out = append(out, typed(2*i+1, strings.ToLower(typ), typ),
			typed(2*i+2, strings.ToLower(typ)+"_null", typ, null))
	}
	for i := range out {
		out[i].Comp = []string{"", "LZ4", "SNAPPY", "ZLIB", "NO_COMPRESSION"}[i%5]
		if i > 20 {
			out[i].BlockSize = 0
		}
	}
	return out
}

// workloads returns the tables of a life.
func workloads() []*workload {
	var ts []*workload
	seed, _ := strconv.Atoi(os.Getenv("STOA_INTEROP_SEED")) // other seeds draw other operations
	add := func(t *workload) {
		t.seed = 1000 + 37*len(ts) + 100_003*seed
		if t.space == 0 {
			t.space = 700
		}
		ts = append(ts, t)
	}
	add(&workload{name: "types", fields: allTypes(), more: []string{"hash\t2\t0\tid", "range"}})
	small := func() []field {
		return []field{typed(1, "a", "INT32"), typed(2, "b", "STRING", null),
			typed(3, "c", "DOUBLE", null, def("3ff8000000000000"))}
	}
	add(&workload{name: "parts", space: 1500,
		fields: append([]field{typed(10, "s", "STRING", key), typed(11, "i", "INT32", key),
			typed(12, "t", "UNIXTIME_MICROS", key)}, small()...),
		more: []string{"hash\t3\t7\ts", "hash\t2\t0\tt", "range\ti", "bound\t-\t-1000000000",
			"bound\t-1000000000\t0", "bound\t1000000000\t-"},
		alters: map[int]func(*workload, *server){
			2: func(t *workload, s *server) { s.alter(t.name, "range\ti", "bound\t0\t1000000000") },
			5: func(t *workload, s *server) { s.alter(t.name, "range\ti", "unbound\t-1000000000\t0") },
		}})
	var everyKey []field
	for i, typ := range everyType {
		if typ != "BOOL" && typ != "FLOAT" && typ != "DOUBLE" {
			everyKey = append(everyKey, typed(20+i, "k_"+strings.ToLower(typ), typ, key))
		}
	}
	add(&workload{name: "keys", fields: append(everyKey, small()...), more: []string{"range\tk_int8\tk_string"}})
	add(&workload{name: "own_hash", space: 900,
		fields: append([]field{typed(10, "d", "DATE", key), typed(11, "x", "BINARY", key)}, small()...),
		more: []string{"hash\t2\t0\tx", "range\td", "bound\t-700000\t0", "bound\t0\t1000000\t/\t3\t5\tx",
			"bound\t1000000\t2000000\t/\t4\t0\td", "bound\t2000000\t2900000"}})
	add(&workload{name: "changing", fields: append([]field{typed(0, "id", "INT32", key)}, small()...),
		alters: map[int]func(*workload, *server){
			1: func(t *workload, s *server) {
				f := []field{typed(31, "x", "INT32", def("42")), typed(32, "y", "STRING", null),
					typed(33, "z", "DECIMAL64", null, def("-77")), typed(34, "w", "VARCHAR", def("x6869"))}
				var l []string
				for _, c := range f {
					l = append(l, "add\t"+c.spec())
				}
				s.alter(t.name, append(l, "rename\ta\ta2")...)
				t.fields[1].Name = "a2"
				t.fields = append(t.fields, f...)
			},
			3: func(t *workload, s *server) { // a column is dropped, another of that name is added
				s.alter(t.name, "drop\tb", "drop\tx")
				f := []field{typed(35, "b", "INT64", def("9000000000")), typed(36, "x", "BOOL", null, def("true"))}
				s.alter(t.name, "add\t"+f[0].spec(), "add\t"+f[1].spec(), "default\ta2\t-5", "nodefault\tc",
					"layout\tc\tPLAIN_ENCODING\tZLIB\t4096")
				var keep []field
				for _, c := range t.fields {
					if c.Name != "b" && c.Name != "x" {
						keep = append(keep, c)
					}
				}
				t.fields = append(keep, f...)
			},
			6: func(t *workload, s *server) {
				f := typed(37, "late", "BINARY", null, def("x00ff"))
				s.alter(t.name, "add\t"+f.spec(), "drop\tc", "rename\tid\tident", "name\tdb::ünï.changed",
					"default\ty\tx646565")
				for i := range t.fields {
					if t.fields[i].Name == "c" {
						t.fields = append(t.fields[:i:i], t.fields[i+1:]...)
						break
					}
				}
				t.fields[0].Name = "ident"
				t.fields = append(t.fields, f)
				t.name = "db::ünï.changed"
			},
		}})
	add(&workload{name: "autoinc", space: 60,
		fields: append([]field{{id: 0, unsure: true, column: column{Name: "k", Type: "INT32"}},
			{id: 1, auto: true, column: column{Name: "auto_incrementing_id", Type: "INT64"}}}, small()...),
		more: []string{"range\tk"}})
	add(&workload{name: "immutable", fields: append([]field{typed(0, "id", "STRING", key),
		{id: 5, immutable: true, column: column{Name: "fixed", Type: "INT16", Nullable: true}}}, small()...)})
	add(&workload{name: "churn", space: 25, odd: true,
		fields: append([]field{typed(0, "id", "INT8", key)}, small()...)})
	add(&workload{name: "dropped", till: 4, fields: append([]field{typed(0, "id", "INT64", key)}, small()...)})
	add(&workload{name: "fresh", from: 6, fields: append([]field{typed(0, "id", "DECIMAL128", key)}, small()...),
		more: []string{"hash\t2\t0\tid", "range"}})
	for _, t := range ts {
		if len(t.more) == 0 {
			t.more = []string{"range\t" + t.fields[0].Name}
		}
	}
	return ts
}

// A life is a server's history: its tables, and their content at each remembered moment.
type life struct {
	truths
	s         *server
	workloads []*workload
	empty     string         // a table without rows
	tally     map[string]int // kinds of operations and their outcomes
	tables    []string       // names and ids
}

// lead runs all chapters on a server; each ends with flushes or compactions of another kind.
func lead(s *server) *life {
	l := &life{s: s, workloads: workloads(), empty: "empty", tally: map[string]int{},
		truths: truths{Tables: map[string]truth{}}}
	s.make(l.empty, allTypes(), "hash\t2\t0\tid", "range")
	for chapter := range chapters {
		for _, t := range l.workloads {
			t.live(s, chapter, l.tally)
		}
		l.At = append(l.At, s.now()+1)
		time.Sleep(20 * time.Millisecond)
		switch chapter {
		case 0, 2:
			s.flushAll()
		case 1:
			s.flushSomeDeltas()
		case 3:
			s.flushAll()
			s.compactDeltas(false)
		case 4:
			s.flushAll()
			s.compactRows()
			s.compactDeltas(true)
		case 5:
			s.flushAll()
			l.Whole = chapter
		}
	}
	return l
}

// ask has Kudu's client read everything.
func (l *life) ask() {
	s := l.s
	s.t.Helper()
	l.tables = s.ask("tables")
	altered := map[string]bool{l.empty: false}
	for _, t := range l.workloads {
		if t.till == 0 {
			altered[t.name] = t.alters[l.Whole+1] != nil
		}
	}
	for n, x := range altered {
		tr := truth{Altered: x, Columns: s.ask("columns", n), Tablets: s.ask("tablets", n)}
		var err error
		if tr.Latest, err = s.scan(n); err != nil {
			s.t.Fatal(n, err)
		}
		for i, at := range l.At {
			rows, err := s.scan(n, at)
			if err != nil {
				s.t.Fatalf("%s after chapter %d: %v", n, i, err)
			}
			tr.At = append(tr.At, rows)
		}
		l.Tables[n] = tr
	}
}

func (l *life) String() string {
	good, bad := 0, 0
	for k, n := range l.tally {
		if strings.HasSuffix(k, " ok") {
			good += n
		} else {
			bad += n
		}
	}
	return fmt.Sprintf("%d tables, %d operations of which Kudu refused %d, %d moments, %d rows read by its client",
		len(l.Tables), good+bad, bad, len(l.At), l.rows())
}

// rows returns the number of all rows read.
func (l *truths) rows() (n int) {
	for _, t := range l.Tables {
		n += len(t.Latest)
		for _, r := range t.At {
			n += len(r)
		}
	}
	return n
}

// keep writes the truth beside the directories, so that the reader can be tested without Kudu: see TestDirKept.
func (l *truths) keep(t *testing.T, dir string) {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "truth.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}
