package attack

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maker writes tables of one format with certain settings.
type maker struct {
	name    string // of the fixture: "trevni/null"
	place   string // what is written, in its directory
	glob    string // name under which it is opened, if that is not its place
	kind    kinds
	without string // columns that the format does not have
	// Files form a table only because they are in one directory: nothing shows that one is missing or belongs to
	// another table.
	loose   bool
	parts   bool     // like loose, but each file names the others
	single  bool     // one column only
	opts    []string // of the writer
	vary    []string // each KEY=A|B|…: the seed selects one of the values
	text    bool     // lines of text only; the schema is passed as an option
	gzip    bool     // lines with a single checksum at the end: rows read before it may be anything
	reading []string // flags for every reading verb
	make    func(a *attack, f *fixture, t *table, source string) error
}

var makers = []maker{
	{name: "cfile/v2", place: "t.cfile", kind: flats, single: true, vary: cfileVary},
	{name: "cfile/unchecked", place: "t.cfile", kind: flats, single: true, opts: []string{"checksums=false"},
		vary: cfileVary},
	{name: "cfile/v1", place: "t.cfile", kind: flats, single: true, opts: []string{"version=1"}, vary: cfileVary},
	{name: "cfile/dir", place: "t", kind: flats, vary: cfileVary},
	{name: "cfile/dir-unchecked", place: "t", kind: flats, opts: []string{"checksums=false"}, vary: cfileVary},
	{name: "cfile/dir-v1", place: "t", kind: flats, opts: []string{"version=1"}, vary: cfileVary},
	{name: "cfile/structs", place: "t", kind: nests, vary: cfileVary},
	{name: "cfile/structs-unchecked", place: "t", kind: nests, opts: []string{"checksums=false"}, vary: cfileVary},
	{name: "cfile/structs-v1", place: "t", kind: nests, without: "list", opts: []string{"version=1"},
		vary: cfileVary},
	{name: "trevni/crc32", place: "t.trv", kind: nests, vary: trevniVary},
	{name: "trevni/bare", place: "t.trv", kind: nests, without: "at cost", opts: []string{"arrow-schema=false"},
		vary: trevniVary},
	{name: "trevni/null", place: "t.trv", kind: nests, opts: []string{"checksum=null"}, vary: trevniVary},
	{name: "trevni/dir", place: "t", kind: nests, parts: true, opts: []string{"file-size=3000", "block-size=500"}},
	{name: "trevni-avro/crc32", place: "t.trv", kind: nests, vary: trevniVary},
	{name: "trevni-avro/null", place: "t.trv", kind: nests, opts: []string{"checksum=null"}, vary: trevniVary},
	{name: "redfile/e", place: "t.red", kind: nests, vary: redVary},
	{name: "redfile/a", place: "t.red", kind: nests, opts: []string{"generation=A"}, vary: redVary},
	{name: "redfile/unchecked", place: "t.red", kind: nests, opts: []string{"crc=false"}, vary: redVary},
	{name: "redfile/a-unchecked", place: "t.red", kind: nests, opts: []string{"generation=A", "crc=false"},
		vary: redVary},
	{name: "redfile/bare", place: "t.red", kind: nests, without: "at cost",
		opts: []string{"arrow-schema=false", "sync=0", "index=false"}, vary: redVary},
	{name: "redfile/split", place: "t", kind: nests, opts: []string{"split=row-group", "row-group-rows=50"}},
	{name: "carbon/v3", place: "t.carbondata", kind: nests, opts: []string{"page-rows=40"},
		vary: []string{"compression=snappy|zstd|gzip"}},
	{name: "carbon/v2", place: "t.carbondata", kind: texts, without: "yes", opts: []string{"version=2"}},
	{name: "carbon/v1", place: "t.carbondata", kind: texts, without: "yes", opts: []string{"version=1"}},
	{name: "carbon/dir", place: "t", kind: nests, opts: []string{"page-rows=40"}},
	{name: "carbon/table", place: "t", kind: texts, make: loadTwice},
	{name: "parquet/crc", place: "t.parquet", kind: nests, vary: parquetVary},
	{name: "parquet/unchecked", place: "t.parquet", kind: nests, opts: []string{"crc=false"}, vary: parquetVary},
	{name: "arrow/file", place: "t.arrow", kind: nests, vary: []string{"compression=none|lz4|zstd"}},
	{name: "arrow/stream", place: "t.arrows", kind: nests, opts: []string{"stream=true"},
		vary: []string{"compression=none|lz4|zstd"}},
	{name: "csv", place: "t.csv", text: true},
	{name: "csv/gzip", place: "t.csv.gz", text: true, gzip: true},
	{name: "tsv", place: "t.tsv", text: true},
	{name: "jsonl", place: "t.jsonl", text: true},
	{name: "kudu-backup", place: "t", glob: "t/*/*/*.parquet", kind: flats, loose: true,
		opts: []string{"key=id", "table=t", "time=1700000000000", "part-rows=60"}},
}

var (
	cfileVary  = []string{"block-size=512|700|2000", "compression=none|lz4|snappy|zlib"}
	trevniVary = []string{"block-size=300|1000|4000", "codec=null|deflate|snappy|bzip2"}
	redVary    = []string{"page-size=300|1000|4000", "compression=none|snappy|gzip", "row-group-rows=50|1000",
		"protocol=compact|binary"}
	parquetVary = []string{"page-size=300|1000|4000", "compression=none|snappy|zstd", "row-group-rows=50|1000",
		"page-version=1|2"}
)

// fixture is an intact place, with what is known about it.
type fixture struct {
	name    string
	seed    uint64
	maker   *maker
	dir     string   // holds the place and nothing else
	place   string   // within dir, "" = dir itself; with #TABLE
	reading []string // flags for every reading verb
	text    bool
	files   []string // within dir, sorted
	ref     []string // the rows, as JSON
	checked bool     // verify reports nothing that lacks checksums, except perhaps the header
	// verify reports that the header, with the names of columns, has no checksum
	nameless bool
	names    []storedName
	schemas  []storedName    // names in Avro schemas, which no checksum covers
	heads    []storedName    // places of Arrow schemas
	wide     bool            // a page has the values of all columns
	able     map[string]bool // verbs that exit with 0 on the intact place; others are not run
	changed  bool            // losses may include rows that had been deleted or updated
	pages    []page
	origin   string   // place that a real system wrote: its name as returned by real
	stale    *fixture // an older state: the first two thirds of the rows
	other    *fixture // another table by the same writer
}

// page is a unit of bytes that belong together, with the number of rows that they concern.
type page struct {
	file     string
	from, to int64
	rows     int
}

// format is the first word of a fixture's name.
func (f *fixture) format() string { word, _, _ := strings.Cut(f.name, "/"); return word }

// at is the place in a copy of f.
func (f *fixture) at(dir string) string {
	p, table, ok := strings.Cut(f.place, "#")
	p = filepath.Join(dir, p)
	if ok {
		p += "#" + table
	}
	return p
}

// errRefused means that the writer refused the table.
type errRefused struct{ say string }

func (e *errRefused) Error() string { return e.say }

// fixtureOf returns the fixture for a maker and seed, and creates it on first use.
func (a *attack) fixtureOf(m *maker, seed uint64) (*fixture, error) {
	key := fmt.Sprintf("%s %d", m.name, seed)
	if f := a.made[key]; f != nil {
		return f, nil
	}
	f, err := a.newFixture(m, seed, seed, 0, 1)
	if err != nil {
		return nil, err
	}
	if len(f.files) > 1 {
		if f.stale, err = a.newFixture(m, seed, seed, 0, 2./3); err != nil {
			f.stale = nil
		}
		if f.other, err = a.newFixture(m, seed, seed+1, 1_000_000, 1); err != nil {
			f.other = nil
		}
	}
	a.made[key] = f
	return f, nil
}

// newFixture creates a table. seed determines the columns and the number of rows, values determines the cells; ids
// begin at base. part is the fraction of the rows that it gets.
func (a *attack) newFixture(m *maker, seed, values uint64, base int64, part float64) (*fixture, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	width := 1 + r.IntN(7)
	t := newTable(r, m.kind, m.without, width)
	n := int(float64(60+r.IntN(240)) * part)
	dir := a.temp("fixture")
	source := filepath.Join(a.temp("source"), "t.arrow")
	if err := t.write(source, rand.New(rand.NewPCG(values, 2)), n, 100, base); err != nil {
		return nil, err
	}
	f := &fixture{name: m.name, seed: seed, maker: m, dir: dir, place: m.place, reading: m.reading, text: m.text}
	if m.text {
		f.reading = append(slices.Clone(f.reading), "--source-opt", "schema="+t.words())
	}
	var args []string
	for _, o := range m.opts {
		args = append(args, "--opt", o)
	}
	for _, v := range m.vary {
		key, values, _ := strings.Cut(v, "=")
		choice := strings.Split(values, "|")
		args = append(args, "--opt", key+"="+choice[r.IntN(len(choice))])
	}
	if m.single {
		t.only(r.IntN(len(t.columns)))
		args = append(args, "--columns", t.columns[0].name)
	}
	write := func() error { return a.convert(f, source, args) }
	if m.make != nil {
		write = func() error { return m.make(a, f, t, source) }
	}
	if err := write(); err != nil {
		return nil, err
	}
	if m.glob != "" {
		f.place = m.glob
	}
	if err := a.learn(f); err != nil {
		return nil, err
	}
	if d := t.differs(f.ref, strings.HasSuffix(m.name, "/bare")); d != "" {
		return nil, fmt.Errorf("%s, seed %d: what is read differs from what was written: %s", m.name, seed, d)
	}
	return f, nil
}

// only keeps one column of the table.
func (t *table) only(k int) {
	t.columns = t.columns[k : k+1]
	for i, r := range t.rows {
		t.rows[i] = map[string]any{t.columns[0].name: r[t.columns[0].name]}
	}
}

func (a *attack) convert(f *fixture, source string, args []string) error {
	out := filepath.Join(f.dir, f.place)
	word, _, _ := strings.Cut(f.name, "/")
	if filepath.Ext(f.place) == "" {
		out += "/"
	}
	got := a.stoa.run(append([]string{"convert", source, "-o", out, "--to", word, "-q"}, args...)...)
	if got.Status == cannot || got.Status == use {
		return &errRefused{string(got.Stderr)}
	}
	if got.Status != fine {
		return fmt.Errorf("convert to %s ended with %d: %s%s", f.name, got.Status, got.Stderr, got.died)
	}
	return nil
}

// loadTwice creates a CarbonData table of two segments.
func loadTwice(a *attack, f *fixture, t *table, source string) error {
	place := filepath.Join(f.dir, f.place)
	half := strconv.Itoa(len(t.rows) / 2)
	schema := filepath.Join(a.temp("schema"), "schema.json")
	if err := os.WriteFile(schema, a.stoa.run("schema", source, "-f", "json").Stdout, 0o666); err != nil {
		return err
	}
	for _, args := range [][]string{{"create", place, "--schema", schema},
		{"load", place, source, "--rows", ":" + half}, {"load", place, source, "--rows", half + ":"}} {
		if got := a.stoa.run(args...); got.Status != fine {
			return &errRefused{string(got.Stderr)}
		}
	}
	return nil
}

// learn reads the contents of an intact place. Damage is an error.
func (a *attack) learn(f *fixture) error {
	var err error
	if f.files, err = filesOf(f.dir); err != nil {
		return err
	}
	got := a.verb(f, f.dir, "verify", "-f", "json")
	var v verdict
	if err := json.Unmarshal(got.Stdout, &v); err != nil || got.Status != fine {
		return fmt.Errorf("%s, seed %d: intact, but verify ends with %d: %s%s", f.name, f.seed, got.Status,
			got.Stdout, got.Stderr)
	}
	f.nameless = slices.ContainsFunc(v.Findings, ofNames)
	v.Findings = slices.DeleteFunc(v.Findings, ofNames)
	f.checked = !v.says("file.unchecked") && !v.says("trevni.checksum.zero") // Avro's writer left some out
	got = a.verb(f, f.dir, "cat", "-f", "jsonl")
	if got.Status != fine {
		return fmt.Errorf("%s, seed %d: intact, but cat ends with %d: %s", f.name, f.seed, got.Status, got.Stderr)
	}
	f.ref = linesOf(got.Stdout)
	f.wide = f.format() == "arrow"
	f.able = map[string]bool{}
	all := a.temp("all")
	for v, args := range map[string][]string{"stats": {}, "advise": {}, "describe": {}, "explain": {},
		"ls": {}, "count": {}, "convert all": {"--all", "-o", all, "--to", "arrow"}} {
		verb, _, _ := strings.Cut(v, " ")
		got := a.verb(f, f.dir, verb, args...)
		if got.Status == died {
			return fmt.Errorf("%s, seed %d: intact, but %s %s", f.name, f.seed, v, got.died)
		}
		f.able[v] = got.Status == fine
	}
	f.learnPages(a)
	return os.RemoveAll(all)
}

var (
	fromRow = regexp.MustCompile(`from row (\d+)`)
	rowsIn  = regexp.MustCompile(`(\d+) (?:rows?|values?)\b`)
	// of a repeated column, whose first entry may continue a row
	entries = regexp.MustCompile(`(\d+) (?:entry|entries)`)
	// (CarbonData's format 1 stores null bits in its footer, and nothing else records which entries are null)
	isPage = regexp.MustCompile(`^(block|page|message|dict|dictionary|data|rowid|DataChunk\d)\b|` +
		`^blocklet\[\d+\]\.\S+\.(data|rowid|present)$|^present_bit_stream$`)
)

// learnPages finds the pages with describe. A page whose rows are unknown counts for all rows.
func (f *fixture) learnPages(a *attack) {
	for _, name := range f.files {
		got := a.stoa.run(append([]string{"describe", filepath.Join(f.dir, name), "-f", "jsonl"}, f.reading...)...)
		last, names := -1, nameNodes{}
		for _, l := range linesOf(got.Stdout) {
			var n struct {
				Name, Value    string
				Offset, Length int64
			}
			if json.Unmarshal([]byte(l), &n) != nil {
				continue
			}
			f.learnName(&names, name, n.Name, n.Value, n.Offset, n.Length)
			if !f.decides(n.Name) && !isPage.MatchString(n.Name) || n.Length == 0 {
				continue
			}
			p := page{name, n.Offset, n.Offset + n.Length, len(f.ref)}
			if f.format() == "trevni" && n.Name == "data" { // of the block, which states its number of rows
				continue
			}
			if m := rowsIn.FindStringSubmatch(n.Value); m != nil && !strings.Contains(n.Value, "DICTIONARY") {
				p.rows, _ = strconv.Atoi(m[1])
			}
			if m := entries.FindStringSubmatch(n.Value); m != nil {
				k, _ := strconv.Atoi(m[1])
				p.rows = min(k+1, len(f.ref))
			}
			if m := fromRow.FindStringSubmatch(n.Value); m != nil && f.format() != "trevni" { // which states it
				from, _ := strconv.Atoi(m[1])
				if p.rows = len(f.ref) - from; last >= 0 && f.pages[last].file == name {
					f.pages[last].rows -= p.rows // the page before it ends here
				}
				last = len(f.pages)
			}
			f.pages = append(f.pages, p)
		}
	}
}

// decides reports whether a structure decides, alone and without a checksum, how the values of a column are decoded: in
// RedFile without checksums the metadata of a column chunk, where INT32 may become FLOAT. It counts as a page.
func (f *fixture) decides(node string) bool {
	return f.format() == "redfile" && !f.checked && node == "column_metadata"
}

// filesOf are the files below dir, sorted, by their names within it.
func filesOf(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, p)
			out = append(out, rel)
		}
		return err
	})
	slices.Sort(out)
	return out, err
}

// copyTo copies the fixture's files.
func (f *fixture) copyTo(dir string) error {
	for _, name := range f.files {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func linesOf(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
