package soak

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
)

// writer is a format of the round: its options, each with values to choose from ("" = not given), and the guarantees of
// its files.
type writer struct {
	name, ext string
	opts      map[string][]string
	typed     bool // keeps the types of columns
	// summed: with these options checksums cover every byte of the data, so that no damage may change rows silently
	summed func(opts map[string]string) bool
}

var sizes = []string{"", "512", "4096", "100000"}

var ring = []writer{
	{"cfile", ".cfile", map[string][]string{"compression": {"", "lz4", "snappy", "zlib"}, "block-size": sizes,
		"index-block-size": {"", "256"}, "checksums": {"", "", "true", "false"}, "version": {"", "", "", "1"},
		"plain-metadata": {""}, "restart-interval": {"", "1", "5"}}, true,
		func(o map[string]string) bool { return o["checksums"] != "false" && o["version"] != "1" }},
	{"redfile", ".red", map[string][]string{"generation": {"", "E", "A"}, "compression": {"", "gzip", "none"},
		"encoding": {"", "group-varint"}, "row-group-rows": {"", "7", "100"}, "page-size": {"", "64", "1000"},
		"crc": {"", "", "false"}, "index": {"", "false"}, "sync": {"", "0", "1"},
		"split": {"", "", "row-group", "metadata"}, "protocol": {"", "binary"}}, true, nil},
	{"trevni", ".trv", map[string][]string{"codec": {"", "deflate", "snappy", "bzip2"},
		"checksum": {"", "", "null"}, "block-size": {"", "1", "100", "5000"}, "first-values": {"", "all"}}, true, nil},
	{"trevni-avro", ".trv", map[string][]string{"codec": {"", "deflate", "snappy", "bzip2"},
		"checksum": {"", "", "null"}, "block-size": {"", "1", "100", "5000"}, "version": {"", "1"}}, true, nil},
	{"carbon", ".carbondata", map[string][]string{"compression": {"", "zstd", "gzip"},
		"page-rows": {"", "3", "100"}, "local-dictionary": {"", "false"},
		"local-dictionary-threshold": {"", "1", "10"}}, true, nil},
	{"parquet", ".parquet", map[string][]string{"compression": {"", "none", "zstd", "gzip", "lz4", "brotli"},
		"row-group-rows": {"", "10", "100"}, "page-size": {"", "100", "5000"}, "dictionary": {"", "false"},
		"version": {"", "2.4"}, "page-version": {"", "2"}, "page-index": {"", "true"}}, true, nil},
	{"arrow", ".arrow", map[string][]string{"stream": {"", "true"}, "compression": {"", "lz4", "zstd"}}, true, nil},
	{"jsonl", ".jsonl", nil, false, nil},
	{"jsonl", ".jsonl.gz", nil, false, nil},
	{"csv", ".csv.gz", nil, false, nil},
	{"csv", ".csv", map[string][]string{"null": {"", "NULL"}, "delimiter": {"", ";", "tab"}}, false, nil},
	{"tsv", ".tsv", nil, false, nil},
}

var types = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
	arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.String,
	arrow.PrimitiveTypes.Date32, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	&arrow.Decimal128Type{Precision: 18, Scale: 3},
	arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.ListOf(arrow.BinaryTypes.String),
	arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true}),
}

var formats = stoa.Formats

// soak is one run.
type soak struct {
	t       *testing.T
	seed    uint64
	ctx     context.Context
	r       *rand.Rand
	dir     string
	schema  *arrow.Schema
	nulls   []int // percent of nulls in each column
	batches []arrow.RecordBatch
	lines   map[int64]string // of every row, by its id
	// Of these rows, in order: ids, the same as cells, and all cells by id.
	ids      []int64
	keys     []string
	rowCells map[string][]string
	ops      map[string]int
	n        int
	// The first file of the table and its reading options: diff compares the others with it.
	first     string
	firstRead map[string]string
}

var operations = []string{"write", "verify", "compare", "query", "splits", "diff", "change", "damage", "recover"}

func TestSoak(t *testing.T) {
	length, seed := 2*time.Second, uint64(1)
	if s := os.Getenv("STOA_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("STOA_SOAK: %v", err)
		}
		length, seed = d, uint64(time.Now().UnixNano())
	} else if testing.Short() {
		length = 500 * time.Millisecond
	}
	if s := os.Getenv("STOA_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("STOA_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("seed %d", seed)
	s := &soak{t: t, seed: seed, ctx: context.Background(), r: rand.New(rand.NewPCG(seed, 20)), ops: map[string]int{}}
	began := time.Now()
	tables := 0
	for ; tables == 0 || time.Since(began) < length && !t.Failed(); tables++ {
		s.table(tables, began.Add(length))
	}
	total := 0
	for _, k := range slices.Sorted(maps.Keys(s.ops)) {
		t.Logf("%9d %s", s.ops[k], k)
	}
	for _, k := range operations {
		total += s.ops[k]
	}
	t.Logf("seed %d: %d tables, %d operations in %s", seed, tables, total, time.Since(began).Round(time.Second))
	for _, k := range operations {
		if s.ops[k] == 0 && k != "change" && k != "diff" { // two seconds may not suffice for these
			t.Errorf("%s was never done", k)
		}
	}
}

// table makes a random table and converts it through all formats, in a random order.
func (s *soak) table(n int, until time.Time) {
	s.dir = filepath.Join(s.t.TempDir(), strconv.Itoa(n))
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		s.t.Fatal(err)
	}
	defer os.RemoveAll(s.dir)
	s.random()
	s.first = ""
	order := s.r.Perm(len(ring))
	source := "" // the table itself
	var sourceOpts map[string]string
	for _, k := range order {
		if s.ops["recover"] > 0 && time.Now().After(until) {
			return
		}
		w := &ring[k]
		out, opts := s.write(w, source, sourceOpts, n)
		if out == "" {
			continue
		}
		read := s.readOpts(w, opts)
		s.healthy(w, out, opts, read)
		s.compare(w, out, opts, read)
		s.asks(w, out, opts, read)
		if s.first == "" {
			s.first, s.firstRead = out, read
		}
		for range 3 {
			s.damage(w, out, opts, read)
		}
		if s.t.Failed() {
			return
		}
		source, sourceOpts = out, read
		if s.r.IntN(4) == 0 {
			source = "" // write from the table itself occasionally
		}
	}
	s.changed(n)
	s.backup(n)
}

// random makes the rows: an id, and columns of random types.
func (s *soak) random() {
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	nulls := []int{0}
	for i := range 1 + s.r.IntN(5) {
		nulls = append(nulls, []int{0, 20, 90}[s.r.IntN(3)])
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: types[s.r.IntN(len(types))],
			Nullable: nulls[i+1] > 0})
	}
	s.schema, s.nulls = arrow.NewSchema(fields, nil), nulls
	s.fill(1+s.r.IntN(600), 0)
	s.index()
}

// fill makes left rows, with ids from first on.
func (s *soak) fill(left int, first int64) {
	s.batches, s.lines = nil, map[int64]string{}
	for id := first; left > 0; {
		n := min(left, 1+s.r.IntN(400))
		left -= n
		ids := array.NewInt64Builder(memory.DefaultAllocator)
		for range n {
			ids.Append(id)
			id++
		}
		cols := []arrow.Array{ids.NewArray()}
		for i, f := range s.schema.Fields()[1:] {
			cols = append(cols, s.column(f.Type, n, s.nulls[i+1]))
		}
		b := array.NewRecordBatch(s.schema, cols, int64(n))
		s.batches = append(s.batches, b)
		for i, l := range formattest.Lines(b) {
			s.lines[cols[0].(*array.Int64).Value(i)] = l
		}
	}
}

// column makes n random values, of which nulls percent are null; fields of structs have nulls of their own.
func (s *soak) column(t arrow.DataType, n, nulls int) arrow.Array {
	st, ok := t.(*arrow.StructType)
	if !ok {
		return formattest.Random(s.r, t, n, nulls)
	}
	var fields []arrow.ArrayData
	for _, f := range st.Fields() {
		fields = append(fields, s.column(f.Type, n, 20).Data())
	}
	valid := formattest.Random(s.r, arrow.PrimitiveTypes.Int8, n, nulls).Data()
	return array.MakeFromData(array.NewData(st, n, valid.Buffers()[:1], fields, valid.NullN(), 0))
}

// index updates ids, keys and rowCells after lines have changed.
func (s *soak) index() {
	s.ids, s.keys, s.rowCells = slices.Sorted(maps.Keys(s.lines)), nil, map[string][]string{}
	for _, b := range s.batches {
		for _, row := range s.batchCells(b) {
			s.rowCells[row[0]] = row
		}
	}
	for _, id := range s.ids {
		s.keys = append(s.keys, strconv.FormatInt(id, 10))
	}
}

// choose returns random values for some of the options.
func (s *soak) choose(w *writer) map[string]string {
	opts := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(w.opts)) {
		if v := w.opts[k][s.r.IntN(len(w.opts[k]))]; v != "" {
			opts[k] = v
		}
	}
	return opts
}

// write writes the table, or converts the file source. It returns "" if the format cannot hold the table.
func (s *soak) write(w *writer, source string, sourceOpts map[string]string, n int) (string, map[string]string) {
	opts := s.choose(w)
	s.n++
	out := filepath.Join(s.dir, fmt.Sprintf("%d%s", s.n, w.ext))
	co := stoa.CreateOptions{Formats: formats, To: w.name, Opts: opts}
	var err error
	if source == "" {
		err = s.create(out, co)
	} else {
		var t *stoa.Table
		if t, err = stoa.Open(s.ctx, source, stoa.OpenOptions{Formats: formats, Opts: sourceOpts}); err == nil {
			_, err = stoa.Convert(s.ctx, t,
				stoa.ScanSpec{Parallel: s.r.IntN(3), Batch: []int{0, 1, 100}[s.r.IntN(3)]}, out, co)
			t.Close()
		}
	}
	if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Invalid) {
		s.ops["refused by "+w.name]++
		if _, serr := os.Stat(out); !errors.Is(serr, fs.ErrNotExist) {
			s.t.Errorf("%s exists though the table was refused", out)
		}
		return "", nil
	}
	if err != nil {
		s.fail(w, opts, "write from %q: %v", source, err)
		return "", nil
	}
	s.ops["write"]++
	s.ops["written as "+w.name]++
	return out, opts
}

func (s *soak) create(out string, co stoa.CreateOptions) error {
	w, err := stoa.Create(s.ctx, out, s.schema, co)
	if err != nil {
		return err
	}
	defer w.Abort(s.ctx)
	for _, b := range s.batches {
		if err := w.Write(s.ctx, b); err != nil {
			return err
		}
	}
	_, err = w.Close(s.ctx)
	return err
}

// readOpts returns the options for reading: text has no types, and does not record its own options.
func (s *soak) readOpts(w *writer, opts map[string]string) map[string]string {
	if w.typed {
		return nil
	}
	var cols []string
	for _, f := range s.schema.Fields() {
		cols = append(cols, f.Name+": "+f.Type.String())
	}
	read := map[string]string{"schema": strings.Join(cols, ", ")}
	for _, k := range []string{"null", "delimiter"} {
		if v, ok := opts[k]; ok {
			read[k] = v
		}
	}
	return read
}

func (s *soak) fail(w *writer, opts map[string]string, message string, args ...any) {
	s.t.Helper()
	if keep := os.Getenv("STOA_KEEP"); keep != "" {
		os.CopyFS(filepath.Join(keep, fmt.Sprint(s.seed, "-", time.Now().UnixNano())), os.DirFS(s.dir))
	}
	s.t.Errorf("%s %v, seed %d, %v: %s", w.name, opts, s.seed, s.schema.Fields(), fmt.Sprintf(message, args...))
}

func (s *soak) findings(w *writer, file string, read map[string]string, d format.Depth) (out []region.Finding,
	err error) {
	s.ops["verify"]++
	from := ""
	if !w.typed {
		from = w.name
	}
	for f, err := range stoa.Verify(s.ctx, file, stoa.OpenOptions{Formats: formats, From: from, Opts: read, Depth: d}) {
		if err != nil {
			return out, err
		}
		out = append(out, f)
	}
	return out, nil
}

// healthy: a file just written has no findings, at any depth.
func (s *soak) healthy(w *writer, file string, opts, read map[string]string) {
	found, err := s.findings(w, file, read, format.Depth(s.r.IntN(3)))
	if err != nil {
		s.fail(w, opts, "verify: %v", err)
	}
	for _, f := range found {
		if f.Severity > region.Note {
			s.fail(w, opts, "intact, but verify reports %s %s %s: %s", f.Code, f.At, f.Path, f.Message)
			return
		}
	}
}

// compare: the file has the rows of the table.
func (s *soak) compare(w *writer, file string, opts, read map[string]string) {
	got, err := s.rows(file, stoa.OpenOptions{Formats: formats, Opts: read}, stoa.Fail)
	s.ops["compare"]++
	if err != nil {
		s.fail(w, opts, "read: %v", err)
		return
	}
	if len(got) != len(s.lines) {
		s.fail(w, opts, "%d rows, want %d", len(got), len(s.lines))
	}
	for id, l := range got {
		if l != s.lines[id] {
			s.fail(w, opts, "row %d:\n got %s\nwant %s", id, l, s.lines[id])
			return
		}
	}
}

// errDuplicate is this test's own error, not the reader's.
var errDuplicate = errors.New("a row comes twice")

// errIDs is also this test's: a damaged schema gives the ids another type.
var errIDs = errors.New("the ids have another type")

// rows reads a file and returns its rows by id. Columns read with other types are compared unchanged.
func (s *soak) rows(file string, o stoa.OpenOptions, p stoa.Damaged) (map[int64]string, error) {
	t, err := stoa.Open(s.ctx, file, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	out := map[int64]string{}
	for b, err := range t.Scan(s.ctx, stoa.ScanSpec{Damaged: p}) {
		if err != nil {
			return out, err
		}
		if b.NumCols() == 0 {
			return out, errors.New("there are no columns")
		}
		ids, ok := b.Column(0).(*array.Int64)
		if !ok {
			return out, fmt.Errorf("%w: as %s", errIDs, b.Column(0).DataType())
		}
		for i, l := range formattest.Lines(b) {
			if _, duplicate := out[ids.Value(i)]; duplicate {
				return out, fmt.Errorf("%w: %d", errDuplicate, ids.Value(i))
			}
			out[ids.Value(i)] = l
		}
	}
	return out, nil
}

// wrong returns the first row that is not one of the table's.
func (s *soak) wrong(got map[int64]string) string {
	for id, l := range got {
		if l != s.lines[id] {
			return fmt.Sprintf("row %d: got %s, want %s", id, l, s.lines[id])
		}
	}
	return ""
}
