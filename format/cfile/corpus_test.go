package cfile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/bloom"
	"stoa/internal/kudugen"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// These tests compare the reader with files that Kudu wrote. Expectations never come from this package: cells come from
// the generator's formula (internal/kudugen), entries of delta files from the output of Kudu's own command, and the
// offsets of blocks from kudugen.Walk.
//
// golden_test.go runs them over the subset in corpus/, TestCorpus over all files.

const golden = "../../corpus/kudu/1.18.1"

func TestCorpus(t *testing.T) {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the golden subset is tested")
	}
	dir = filepath.Join(dir, "kudu")
	runCorpus(t, dir, 1226)
	t.Run("synthetic", func(t *testing.T) { runSynthetic(t, filepath.Join(dir, "synthetic")) })
}

// TestFormatIsComplete: the format has all functions; the other tests skip missing ones.
func TestFormatIsComplete(t *testing.T) {
	f := cfile.Format
	for name, ok := range map[string]bool{"Probe": f.Probe != nil, "List": f.List != nil, "Open": f.Open != nil,
		"Create":   f.Create != nil,
		"Describe": f.Describe != nil, "Verify": f.Verify != nil, "Recover": f.Recover != nil} {
		if !ok {
			t.Errorf("Format has no %s", name)
		}
	}
}

// block is an entry of a manifest.
type block struct {
	File, Source, Dump, Sha256 string
	Kind, Table, Partition     string
	Rowset                     int
	Column                     string
	ColumnID                   string `json:"column_id"`
	CFile                      map[string]string
	Checksums                  bool
	Size                       int64
	Btree                      map[string]struct{ Levels int }
	DictModes                  map[string]int `json:"dict_modes"`
	Run                        string
	BlockID                    int64 `json:"block_id"`
}

var tables = sync.OnceValue(func() map[string]*kudugen.Table {
	m := map[string]*kudugen.Table{}
	for _, t := range kudugen.Tables() {
		m[t.Name] = t
	}
	return m
})

func readManifest(t testing.TB, dir string) []block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	if err := json.Unmarshal(b, &blocks); err != nil {
		t.Fatal(err)
	}
	return blocks
}

// moreDumps has, by file, Kudu's dumps of the delta files for which the corpus itself has none.
var moreDumps = sync.OnceValues(func() (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(golden, "DUMPS.json"))
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	return m, json.Unmarshal(b, &m)
})

func readDump(name string) (kudugen.Dump, error) {
	f, err := os.Open(name)
	if err != nil {
		return kudugen.Dump{}, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return kudugen.Dump{}, err
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return kudugen.Dump{}, err
	}
	return kudugen.ParseDump(b)
}

// expected is the expected content of a file.
type expected struct {
	col   kudugen.Column
	cells []kudugen.Cell
	keys  [][]byte      // of a bloom file: the keys of the rowset
	dump  *kudugen.Dump // Kudu's dump of a column, as a second source
}

var rawBinary = kudugen.Column{Type: "binary"}

func (b block) expect(dir string) (x expected, err error) {
	table := tables()[b.Table]
	if table == nil {
		return x, fmt.Errorf("table %s is not modelled", b.Table)
	}
	rs, err := table.Rowset(b.Partition, b.Rowset)
	if err != nil {
		return x, err
	}
	dump := filepath.Join(dir, b.Dump)
	if b.Dump == "" {
		more, err := moreDumps()
		if err != nil {
			return x, err
		}
		source := b.Source
		if source == "" {
			source = b.File
		}
		if dump = more[source]; dump != "" {
			dump = filepath.Join(golden, dump)
		}
	}
	switch b.Kind {
	case "column":
		id, err := strconv.Atoi(b.ColumnID)
		if err != nil {
			return x, err
		}
		var ok bool
		if x.col, x.cells, ok = rs.Column(id); !ok {
			return x, fmt.Errorf("table %s has no column with id %d", b.Table, id)
		}
		if dump != "" {
			d, err := readDump(dump)
			if err != nil {
				return x, err
			}
			x.dump = &d
		}
	case "adhoc-index":
		x.col = rawBinary
		for _, k := range rs.Keys() {
			x.cells = append(x.cells, k)
		}
	case "undo", "redo":
		x.col = rawBinary
		if dump == "" {
			return x, fmt.Errorf("no dump")
		}
		d, err := readDump(dump)
		if err != nil {
			return x, err
		}
		for i := range d.Lines {
			c, _, err := d.Value(i, rawBinary)
			if err != nil {
				return x, err
			}
			x.cells = append(x.cells, c)
		}
	case "bloom":
		x.col, x.keys = rawBinary, rs.Keys()
		return x, nil
	default:
		return x, fmt.Errorf("unknown kind of block %q", b.Kind)
	}
	if n, _ := strconv.Atoi(b.CFile["num-values"]); n != len(x.cells) {
		return x, fmt.Errorf("the formula has %d cells, Kudu lists %d", len(x.cells), n)
	}
	return x, nil
}

// tally counts results for the files of a manifest.
type tally struct {
	ran, equal, missing, unexpected, failed int
	cells                                   int64
	kinds                                   map[string]int
}

func runCorpus(t *testing.T, dir string, files int) {
	n := tally{kinds: map[string]int{}}
	blocks, skipped := readManifest(t, dir), 0
	for i, b := range blocks {
		if testing.Short() && dir != golden && i%12 > 0 { // the golden files are a subset
			skipped++
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, b.File))
		if err != nil {
			n.missing++
			t.Error(err)
			continue
		}
		if s := sha256.Sum256(data); hex.EncodeToString(s[:]) != b.Sha256 {
			n.missing++
			t.Errorf("%s: the checksum differs from the manifest's", b.File)
			continue
		}
		x, err := b.expect(dir)
		if err != nil {
			n.unexpected++
			t.Errorf("%s: %v", b.File, err)
			continue
		}
		ok := t.Run(b.File, func(t *testing.T) {
			n.cells += judge(t, b, data, x)
			n.ran++
		})
		if !ok {
			n.failed++
			continue
		}
		n.equal++
		n.kinds[b.Kind]++
	}
	t.Logf("%d files in the manifest: %d ran, %d equal (%v, %d cells), %d failed, %d missing, %d without an "+
		"expectation",
		len(blocks), n.ran, n.equal, n.kinds, n.cells, n.failed, n.missing, n.unexpected)
	if len(blocks) != files {
		t.Errorf("got %d files in the manifest, want %d", len(blocks), files)
	}
	if n.equal != files-skipped {
		t.Errorf("got %d files equal, want %d", n.equal, files-skipped)
	}
}

// judge compares a healthy file with everything that is known about it.
func judge(t *testing.T, b block, data []byte, x expected) (cells int64) {
	ctx := context.Background()
	layout, err := kudugen.Walk(data)
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"f": data})
	target := format.Target{Tree: tree, Name: "f"}

	if m, err := cfile.Format.Probe(ctx, target); err != nil || m != format.Certain {
		t.Errorf("Probe: %v %v", m, err)
	}
	if b.Kind == "bloom" {
		cells = judgeBloom(t, data, layout, x)
		checkBloom(t, tree, x)
		checkBloomTable(t, data, layout)
	} else {
		got, err := readAll(ctx, target, raw, nil)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		checkShape(t, got, layout, x)
		checkCells(t, got.cells, x)
		cells = int64(len(got.cells))
		checkPages(t, got, layout)
		checkHints(t, target, got)
		checkSection(t, data, got)
		checkMetadata(t, target, got, x)
		checkEngine(t, data, layout, got, x)
		if b.Kind == "undo" || b.Kind == "redo" {
			checkDeltas(t, tree, b, x)
			checkDeltaTable(t, data, x)
		}
		if b.Kind == "adhoc-index" {
			checkIndexTable(t, data, b)
		}
	}
	checkCoverage(t, target, layout)
	if cfile.Format.Verify != nil { // else TestFormatIsComplete fails
		for f := range cfile.Format.Verify(ctx, target, format.OpenOptions{}) {
			t.Errorf("Verify of a healthy file: %+v", f)
		}
	}
	return cells
}

// ---- reading through the contract

// raw opens delta files and ad-hoc indexes as columns of binary values.
var raw = format.OpenOptions{Opts: map[string]string{"kind": "column"}}

// arenas is a pool, because a new arena allocates a megabyte.
var arenas = sync.Pool{New: func() any { return &vec.Arena{} }}

type answer struct {
	schema *arrow.Schema
	column format.Column
	cells  []kudugen.Cell
	pages  []format.Page
	starts []int // position of each page in cells
	dict   bool
}

const (
	maxPages = 1 << 20
	maxCells = 1 << 24
)

var allRows = vec.Range{From: 0, To: 1<<63 - 1}

var errEndless = errors.New("more pages or cells than any file of the corpus has")

// readAll scans the only column of a file page by page. seen, if not nil, is called for every page after decoding.
func readAll(ctx context.Context, target format.Target, o format.OpenOptions,
	seen func(format.Chunk, *format.Task)) (*answer, error) {
	r, err := cfile.Format.Open(ctx, target, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return scanAll(ctx, r, target, o, allRows, seen)
}

func scanAll(ctx context.Context, r format.Reader, target format.Target, o format.OpenOptions, rows vec.Range,
	seen func(format.Chunk, *format.Task)) (*answer, error) {
	a := &answer{schema: r.Schema()}
	cols := r.Columns()
	if len(cols) != 1 {
		return nil, fmt.Errorf("%d columns", len(cols))
	}
	a.column = cols[0]
	parts, groups := 0, 0
	for part, err := range r.Parts(ctx, format.Query{Cols: []int{0}}) {
		if err != nil {
			return nil, err
		}
		parts++
		gs, err := r.RowGroups(ctx, part, format.Query{Cols: []int{0}})
		if err != nil {
			return nil, err
		}
		for _, g := range gs {
			groups++
			if err := a.chunk(ctx, r, g, target.Tree, o, rows, seen); err != nil {
				return nil, err
			}
			if g.Rows >= 0 && rows.From == 0 && rows.To > g.Rows && int64(len(a.cells)) != g.Rows {
				// as the scan engine does
				return nil, fault.Corruptf(fault.Span{Object: target.Name, Off: target.At.From,
					Len: target.At.Len()}, "", "the row group has %d rows, its pages have %d", g.Rows, len(a.cells))
			}
		}
	}
	if parts != 1 || groups != 1 {
		return nil, fmt.Errorf("%d parts, %d row groups", parts, groups)
	}
	return a, nil
}

func (a *answer) chunk(ctx context.Context, r format.Reader, g format.RowGroup, tree store.Tree,
	o format.OpenOptions, rows vec.Range, seen func(format.Chunk, *format.Task)) error {
	c, err := r.Chunk(ctx, g, 0, rows)
	if err != nil {
		return err
	}
	limits := o.Limits.WithDefaults()
	arena := arenas.Get().(*vec.Arena)
	arena.Reset()
	defer arenas.Put(arena)
	decode := func(p format.Page, dict, dst *vec.Vector, want *vec.Sel) (*format.Task, error) {
		if p.Lost != nil {
			return nil, p.Lost
		}
		task := &format.Task{Page: p, N: p.Entries, Dict: dict, Want: want, Scratch: arena, Limits: limits,
			NoVerify: o.NoVerify}
		for _, s := range p.Spans {
			src, err := tree.Open(ctx, s.Object)
			if err != nil {
				return nil, err
			}
			if s.Off < 0 || s.Len < 0 || s.End() > src.Size() {
				return nil, fmt.Errorf("page %d asks for %v of %d bytes", p.Ordinal, s, src.Size())
			}
			buf := make([]byte, s.Len)
			if err := format.ReadFull(ctx, src, s, "", buf); err != nil {
				return nil, err
			}
			task.Bytes = append(task.Bytes, buf)
		}
		before := dst.Len()
		if err := c.Decode(task, dst); err != nil {
			return nil, err
		}
		arena.Reset()
		for _, buf := range task.Bytes {
			clear(buf) // dst must not refer to it
		}
		if p.Entries >= 0 && int64(dst.Len()-before) != p.Entries {
			return nil, fmt.Errorf("page %d: %d entries decoded, %d declared", p.Ordinal, dst.Len()-before, p.Entries)
		}
		return task, nil
	}
	var dict *vec.Vector
	if p, ok := c.Dict(); ok {
		a.dict = true
		if dict, err = vec.New(a.column.Type, memory.DefaultAllocator); err != nil {
			return err
		}
		if _, err := decode(p, nil, dict, nil); err != nil {
			return err
		}
	}
	dst, err := vec.New(a.column.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(a.pages) >= maxPages || dst.Len() > maxCells {
			return errEndless
		}
		a.pages = append(a.pages, p)
		a.starts = append(a.starts, dst.Len())
		task, err := decode(p, dict, dst, nil)
		if err != nil {
			return err
		}
		if seen != nil {
			for i, s := range p.Spans { // decode has cleared the bytes
				src, err := tree.Open(ctx, s.Object)
				if err != nil {
					return err
				}
				if err := format.ReadFull(ctx, src, s, "", task.Bytes[i]); err != nil {
					return err
				}
			}
			seen(c, task)
		}
	}
	cells, err := cellsOf(dst)
	a.cells = append(a.cells, cells...)
	return err
}

// cellsOf returns the entries of a vector as cells.
func cellsOf(v *vec.Vector) ([]kudugen.Cell, error) {
	if err := v.Plain(); err != nil {
		return nil, err
	}
	out := make([]kudugen.Cell, v.Len())
	if v.Len() == 0 {
		return out, nil
	}
	nulls := 0
	w := v.Width()
	switch {
	case w > 0:
		d := v.Data(0)
		for i := range out {
			out[i] = kudugen.Cell(d[i*w : (i+1)*w : (i+1)*w])
		}
	case v.Type.ID() == arrow.BOOL:
		d := v.Bits()
		for i := range out {
			out[i] = kudugen.Bool(d[i>>3]>>(i&7)&1 == 1)
		}
	default:
		o, d := v.Offsets(0), v.StringBytes()
		for i := range out {
			if o[i] < 0 || o[i] > o[i+1] || int(o[i+1]) > len(d) {
				return nil, fmt.Errorf("entry %d has offsets %d to %d of %d bytes", i, o[i], o[i+1], len(d))
			}
			out[i] = kudugen.Cell(append([]byte{}, d[o[i]:o[i+1]]...))
		}
	}
	for i := range out {
		if !v.Valid(i) {
			out[i] = nil
			nulls++
		}
	}
	if nulls != v.Nulls() {
		return nil, fmt.Errorf("%d nulls, but the vector counts %d", nulls, v.Nulls())
	}
	return out, nil
}

func same(a, b kudugen.Cell) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func show(c kudugen.Cell) string {
	if c == nil {
		return "NULL"
	}
	if len(c) > 80 {
		return fmt.Sprintf("%x… (%d bytes)", []byte(c[:80]), len(c))
	}
	return fmt.Sprintf("%x", []byte(c))
}

// ---- checks of a healthy file

// arrowTypes are the types in which a column may be read. A CFile does not store a decimal's precision.
var arrowTypes = map[string][]arrow.Type{
	"bool": {arrow.BOOL}, "int8": {arrow.INT8}, "int16": {arrow.INT16}, "int32": {arrow.INT32}, "int64": {arrow.INT64},
	"unixtime_micros": {arrow.TIMESTAMP}, "date": {arrow.DATE32}, "float": {arrow.FLOAT32}, "double": {arrow.FLOAT64},
	"decimal4":  {arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128},
	"decimal8":  {arrow.DECIMAL64, arrow.DECIMAL128},
	"decimal16": {arrow.DECIMAL128},
	"string":    {arrow.STRING}, "varchar": {arrow.STRING}, "binary": {arrow.BINARY},
}

func checkShape(t *testing.T, a *answer, layout *kudugen.Layout, x expected) {
	t.Helper()
	name := x.col.Type
	if name == "decimal" {
		name += fmt.Sprint(x.col.Width())
	}
	ok := false
	for _, id := range arrowTypes[name] {
		ok = ok || a.column.Type.ID() == id
	}
	if !ok {
		t.Errorf("%s: got type %s, want one of %v", name, a.column.Type, arrowTypes[name])
	}
	if a.column.Has != format.Values || a.column.Parent != -1 {
		t.Errorf("got column %+v, want one of values without a parent", a.column)
	}
	if a.schema.NumFields() != 1 {
		t.Fatalf("got schema %s, want one field", a.schema)
	}
	if f := a.schema.Field(0); f.Nullable != layout.Nullable {
		t.Errorf("field %s: got nullable %v, want %v", f.Name, f.Nullable, layout.Nullable)
	}
	if want := layout.Encoding == 5; a.dict != want {
		t.Errorf("dictionary: got %v, want %v", a.dict, want)
	}
}

// narrow truncates decimals that were read with more bytes than Kudu stores to Kudu's width, provided that this loses
// nothing.
func narrow(cells []kudugen.Cell, width int) ([]kudugen.Cell, error) {
	out := make([]kudugen.Cell, len(cells))
	for i, c := range cells {
		if out[i] = c; c == nil || len(c) <= width {
			continue
		}
		fill := byte(0)
		if c[width-1]&0x80 != 0 {
			fill = 0xff
		}
		for _, b := range c[width:] {
			if b != fill {
				return nil, fmt.Errorf("row %d: %s does not fit in %d bytes", i, show(c), width)
			}
		}
		out[i] = c[:width:width]
	}
	return out, nil
}

func checkCells(t *testing.T, got []kudugen.Cell, x expected) {
	t.Helper()
	for _, d := range differences(got, x) {
		t.Error(d)
	}
}

// differences describes how cells differ from the expected ones: a few examples, then the number.
func differences(got []kudugen.Cell, x expected) (out []string) {
	if x.col.Type == "decimal" {
		var err error
		if got, err = narrow(got, x.col.Width()); err != nil {
			return []string{err.Error()}
		}
	}
	if len(got) != len(x.cells) {
		return []string{fmt.Sprintf("got %d cells, want %d", len(got), len(x.cells))}
	}
	bad := 0
	for i, w := range x.cells {
		diff := ""
		if !same(got[i], w) {
			diff = fmt.Sprintf("row %d: got %s, want %s", i, show(got[i]), show(w))
		} else if x.dump != nil && !x.dump.Agrees(i, x.col, got[i]) {
			diff = fmt.Sprintf("row %d: got %s, want %.200s of Kudu's dump", i, show(got[i]), x.dump.Lines[i])
		}
		if diff != "" {
			if bad++; bad <= 3 {
				out = append(out, diff)
			}
		}
	}
	if bad > 0 {
		out = append(out, fmt.Sprintf("%d of %d cells differ", bad, len(got)))
	}
	return out
}

// checkPages compares the declared rows and spans of pages with the blocks that kudugen.Walk finds.
func checkPages(t *testing.T, a *answer, layout *kudugen.Layout) {
	t.Helper()
	positional := layout.Levels["posidx"] > 0
	at := 0
	for i, p := range a.pages {
		end := len(a.cells)
		if i+1 < len(a.pages) {
			end = a.starts[i+1]
		}
		n := int64(end - a.starts[i])
		switch {
		case positional && (p.First != int64(a.starts[i]) || p.Rows != n):
			t.Errorf("page %d declares rows %d+%d, has %d+%d", i, p.First, p.Rows, a.starts[i], n)
		case p.Rows >= 0 && p.Rows != n, p.First >= 0 && p.First != int64(a.starts[i]), p.Rows != p.Entries:
			t.Errorf("page %d declares rows %d+%d, %d entries; has %d+%d", i, p.First, p.Rows, p.Entries, a.starts[i],
				n)
		}
		if len(p.Spans) != 1 {
			t.Errorf("page %d: got spans %v, want one", i, p.Spans)
			continue
		}
		for at < len(layout.Blocks) && (layout.Blocks[at].Kind != "data" ||
			layout.Blocks[at].First+layout.Blocks[at].Rows <= int64(a.starts[i]) && n > 0) {
			at++
		}
		if at == len(layout.Blocks) {
			t.Errorf("page %d: no block holds row %d", i, a.starts[i])
			continue
		}
		if b, s := layout.Blocks[at], p.Spans[0]; s.Object != "f" || s.Off != b.Off || s.Len != b.Len {
			t.Errorf("page %d of rows %d+%d: got span %v, want [%d+%d]", i, a.starts[i], n, s, b.Off, b.Len)
		}
	}
}

// checkHints decodes again with random wanted entries, from random rows, and without verifying checksums.
func checkHints(t *testing.T, target format.Target, full *answer) {
	t.Helper()
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(1, uint64(len(full.cells))))
	arena := arenas.Get().(*vec.Arena)
	arena.Reset()
	defer arenas.Put(arena)
	page := 0
	dictOf := func(c format.Chunk) *vec.Vector {
		p, ok := c.Dict()
		if !ok {
			return nil
		}
		v, err := vec.New(full.column.Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		src, _ := target.Tree.Open(ctx, p.Spans[0].Object)
		buf := make([]byte, p.Spans[0].Len)
		if err := format.ReadFull(ctx, src, p.Spans[0], "", buf); err != nil {
			t.Fatal(err)
		}
		if err := c.Decode(&format.Task{Page: p, N: p.Entries, Bytes: [][]byte{buf}, Scratch: arena,
			Limits: format.Limits{}.WithDefaults()}, v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var dict *vec.Vector
	_, err := readAll(ctx, target, raw, func(c format.Chunk, task *format.Task) {
		if page == 0 {
			dict = dictOf(c)
		}
		from, to := full.starts[page], len(full.cells)
		if page+1 < len(full.starts) {
			to = full.starts[page+1]
		}
		page++
		n := to - from
		want := make([]byte, (n+7)/8)
		switch rnd.IntN(4) {
		case 0: // nothing
		case 1: // one
			if n > 0 {
				i := rnd.IntN(n)
				want[i>>3] |= 1 << (i & 7)
			}
		case 2: // a run
			if n > 0 {
				i := rnd.IntN(n)
				vec.SetBits(want, i, i+rnd.IntN(n-i)+1, true)
			}
		default:
			for i := range want {
				want[i] = byte(rnd.Uint32())
			}
		}
		task.Want = vec.NewSel(want, n)
		task.Dict = dict
		v, err := vec.New(full.column.Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		before := 0
		if rnd.IntN(2) == 0 && task.N >= 0 { // append to existing entries, so that bits are unaligned
			before = 1 + rnd.IntN(9)
			v.ExtendNulls(before)
		}
		if err := c.Decode(task, v); err != nil {
			t.Errorf("rows %d to %d, %d wanted: %v", from, to, task.Want.Count, err)
			return
		}
		arena.Reset()
		if v.Len() != before+n {
			t.Errorf("rows %d to %d, %d wanted: got %d entries, want %d", from, to, task.Want.Count, v.Len()-before, n)
			return
		}
		got, err := cellsOf(v)
		if err != nil {
			t.Errorf("rows %d to %d, %d wanted: %v", from, to, task.Want.Count, err)
			return
		}
		for i := range n {
			w, g := full.cells[from+i], got[before+i]
			if (w == nil) != (g == nil) || task.Want.Has(i) && !same(w, g) {
				t.Errorf("row %d (wanted: %v): got %s, want %s", from+i, task.Want.Has(i), show(g), show(w))
				return
			}
		}
	})
	if err != nil {
		t.Errorf("second read: %v", err)
	}

	again, err := readAll(ctx, target, format.OpenOptions{NoVerify: true, Opts: raw.Opts}, nil)
	if err != nil || len(again.cells) != len(full.cells) {
		t.Errorf("read without verifying: %v", err)
	} else {
		for i := range full.cells {
			if !same(again.cells[i], full.cells[i]) {
				t.Errorf("without verifying: row %d: got %s, want %s", i, show(again.cells[i]), show(full.cells[i]))
				break
			}
		}
	}

	if len(full.pages) == 0 || full.pages[0].First < 0 {
		return
	}
	r, err := cfile.Format.Open(ctx, target, raw)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	total := int64(len(full.cells))
	for range 4 {
		from := rnd.Int64N(total)
		to := from + 1 + rnd.Int64N(total-from)
		if rnd.IntN(2) == 0 {
			to = from + 1
		}
		part, err := scanAll(ctx, r, target, format.OpenOptions{}, vec.Range{From: from, To: to}, nil)
		if err != nil {
			t.Errorf("rows %d to %d: %v", from, to, err)
			return
		}
		if len(part.pages) == 0 {
			t.Errorf("rows %d to %d: got no pages", from, to)
			return
		}
		first, last := part.pages[0], part.pages[len(part.pages)-1]
		if first.First > from || first.First+first.Rows <= from || last.First >= to || last.First+last.Rows < to {
			t.Errorf("rows %d to %d: got pages from %d+%d to %d+%d", from, to, first.First, first.Rows, last.First,
				last.Rows)
			return
		}
		for i, c := range part.cells {
			if !same(c, full.cells[int(first.First)+i]) {
				t.Errorf("read from row %d on: row %d: got %s", from, int(first.First)+i, show(c))
				return
			}
		}
	}
}

// checkSection reads the file as a section of a larger object, as in a container.
func checkSection(t *testing.T, data []byte, full *answer) {
	t.Helper()
	const before = 4096
	all := append(append(bytes.Repeat([]byte{0x5a}, before), data...), bytes.Repeat([]byte{0xa5}, 100)...)
	target := format.Target{Tree: store.NewMemory(map[string][]byte{"c": all}), Name: "c",
		At: vec.Range{From: before, To: before + int64(len(data))}}
	got, err := readAll(context.Background(), target, raw, nil)
	if err != nil {
		t.Errorf("as a section: %v", err)
		return
	}
	if len(got.cells) != len(full.cells) || len(got.pages) != len(full.pages) {
		t.Errorf("as a section: got %d cells in %d pages, want %d in %d", len(got.cells), len(got.pages),
			len(full.cells), len(full.pages))
		return
	}
	for i := range got.cells {
		if !same(got.cells[i], full.cells[i]) {
			t.Errorf("as a section: row %d: got %s, want %s", i, show(got.cells[i]), show(full.cells[i]))
			return
		}
	}
	for i := range got.pages {
		if g, w := got.pages[i].Spans[0], full.pages[i].Spans[0]; g.Off != w.Off+before || g.Len != w.Len ||
			g.Object != "c" {
			t.Errorf("as a section: page %d: got span %v, want %v moved by %d", i, g, w, before)
			return
		}
	}
	if cfile.Format.Describe == nil {
		return
	}
	for n, err := range cfile.Format.Describe(context.Background(), target, format.DescribeOptions{}) {
		if err != nil {
			t.Errorf("as a section: Describe: %v", err)
			return
		}
		if n.Inner < 0 && (n.At.Object != "c" || n.At.Off < before || n.At.End() > before+int64(len(data))) {
			t.Errorf("as a section: node %s at %v, outside the section", n.Name, n.At)
			return
		}
	}
}

// checkCoverage: the leaves of Describe partition the bytes, and every block is a node of its own.
func checkCoverage(t *testing.T, target format.Target, layout *kudugen.Layout) {
	t.Helper()
	if cfile.Format.Describe == nil {
		return // TestFormatIsComplete fails
	}
	for _, pages := range []bool{false, true} {
		var nodes []region.Node
		for n, err := range cfile.Format.Describe(context.Background(), target, format.DescribeOptions{Pages: pages}) {
			if err != nil {
				t.Errorf("Describe (pages %v): %v", pages, err)
				return
			}
			nodes = append(nodes, n)
		}
		last := layout.Blocks[len(layout.Blocks)-1]
		if err := covered(nodes, "f", last.Off+last.Len); err != nil {
			t.Errorf("Describe (pages %v): %v", pages, err)
			continue
		}
		exact := map[[2]int64]bool{}
		for _, n := range nodes {
			if n.Inner < 0 {
				exact[[2]int64{n.At.Off, n.At.Len}] = true
			}
		}
		for _, b := range layout.Blocks {
			if !exact[[2]int64{b.Off, b.Len}] {
				t.Errorf("Describe (pages %v): no node for the %s block at [%d+%d]", pages, b.Kind, b.Off, b.Len)
				break
			}
		}
	}
}

// covered checks the coverage law: the leaves with an exact span partition the object, and there are no gaps.
func covered(nodes []region.Node, object string, size int64) error {
	exact := nodes[:0:0]
	for _, n := range nodes {
		if n.Kind == region.Gap {
			return fmt.Errorf("%s at %v is a gap", n.Name, n.At)
		}
		if n.Name == "" || n.Depth < 0 {
			return fmt.Errorf("node without a name, or with depth %d, at %v", n.Depth, n.At)
		}
		if n.Inner < 0 {
			exact = append(exact, n)
		}
	}
	var leaves []region.Node
	var open []region.Node // ancestors
	for i, n := range exact {
		for len(open) > 0 && open[len(open)-1].Depth >= n.Depth {
			open = open[:len(open)-1]
		}
		if n.At.Object != object || n.At.Off < 0 || n.At.Len < 0 || n.At.End() > size {
			return fmt.Errorf("%s at %v is outside the %d bytes", n.Name, n.At, size)
		}
		if len(open) > 0 {
			if p := open[len(open)-1]; n.At.Off < p.At.Off || n.At.End() > p.At.End() {
				return fmt.Errorf("%s at %v is outside %s at %v", n.Name, n.At, p.Name, p.At)
			}
		}
		open = append(open, n)
		if (i+1 == len(exact) || exact[i+1].Depth <= n.Depth) && n.At.Len > 0 {
			leaves = append(leaves, n)
		}
	}
	sort.SliceStable(leaves, func(i, j int) bool { return leaves[i].At.Off < leaves[j].At.Off })
	at, before := int64(0), "the beginning"
	for _, n := range leaves {
		if n.At.Off != at {
			return fmt.Errorf("%s ends at %d, the next leaf is %s at %v", before, at, n.Name, n.At)
		}
		at, before = n.At.End(), n.Name
	}
	if at != size {
		return fmt.Errorf("the last leaf, %s, ends at %d, want %d", before, at, size)
	}
	return nil
}

// ---- synthetic files, with Kudu's verdicts

// refusals are the expected errors for the files that Kudu refuses.
var refusals = map[string]struct {
	classes  []fault.Class
	from, to int64 // range that must contain the error; if to is 0: anywhere in the file
}{
	// Later versions use bit 1 for array blocks, which Kudu 1.18.1 does not have. As array blocks these are damaged.
	"bad_feature_bit1":                  {[]fault.Class{fault.Unsupported, fault.Corrupt}, 0, 0},
	"bad_one_byte_flipped":              {[]fault.Class{fault.Corrupt}, 16, 16 + 4128},
	"bad_v1_group_varint_uint32_footer": {[]fault.Class{fault.Unsupported, fault.Corrupt}, 0, 0},
	"bad_v1_magic_on_v2_lz4":            {[]fault.Class{fault.Corrupt}, 0, 0},
	"bad_v1_magic_on_v2_lz4index":       {[]fault.Class{fault.Corrupt}, 0, 0},
}

func runSynthetic(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.cfile"))
	if err != nil {
		t.Fatal(err)
	}
	read, refused := 0, 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(name), ".cfile")
		t.Run(base, func(t *testing.T) {
			target := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
			rc, err := os.ReadFile(strings.TrimSuffix(name, ".cfile") + ".kudu_rc.txt")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(rc), "rc=0") {
				bad, ok := refusals[base]
				if !ok {
					t.Fatalf("Kudu returns %s, and refusals has no entry", rc)
				}
				a, err := readAll(context.Background(), target, raw, nil)
				if err == nil {
					t.Fatalf("got %d cells, want an error; Kudu returns %s", len(a.cells), rc)
				}
				e, err := placed(err, "f", int64(len(data)))
				if err != nil {
					t.Fatal(err)
				}
				ok = false
				for _, c := range bad.classes {
					ok = ok || e.Class == c
				}
				if !ok {
					t.Errorf("%v: got class %v, want one of %v", e, e.Class, bad.classes)
				}
				if bad.to > 0 && (e.At.Off < bad.from || e.At.End() > bad.to) {
					t.Errorf("got %v, want an error in [%d,%d)", e, bad.from, bad.to)
				}
				if cfile.Format.Verify != nil && !reports(target) {
					t.Error("Verify reports nothing, want a finding")
				}
				t.Log(e)
				refused++
				return
			}
			dump := strings.TrimSuffix(name, ".cfile") + ".kudu_dump.txt"
			if _, err := os.Stat(dump); err != nil {
				dump += ".gz"
			}
			d, err := readDump(dump)
			if err != nil {
				t.Fatal(err)
			}
			layout, err := kudugen.Walk(data)
			if err != nil {
				t.Fatal(err)
			}
			x := expected{col: kudugen.Column{Type: strings.ToLower(d.Footer["data_type"])}}
			for i := range d.Lines {
				c, exact, err := d.Value(i, x.col)
				if err != nil || !exact {
					t.Fatal(d.Lines[i], err)
				}
				x.cells = append(x.cells, c)
			}
			got, err := readAll(context.Background(), target, raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, got, layout, x)
			checkCells(t, got.cells, x)
			checkPages(t, got, layout)
			checkHints(t, target, got)
			checkSection(t, data, got)
			checkCoverage(t, target, layout)
			if cfile.Format.Verify != nil {
				for f := range cfile.Format.Verify(context.Background(), target, format.OpenOptions{}) {
					if f.Severity == region.Error {
						t.Errorf("Verify: %+v", f)
					}
				}
			}
			read++
		})
	}
	t.Logf("%d files: %d read as by Kudu, %d refused", len(names), read, refused)
	if read != 20 || refused != 5 {
		t.Errorf("got %d files read, %d refused, want 20, 5", read, refused)
	}
}

// placed checks the form of an error about a file's content: it must have a class that blames the file, and a span in
// it.
func placed(err error, object string, size int64) (*fault.Error, error) {
	var e *fault.Error
	if !errors.As(err, &e) {
		return nil, fmt.Errorf("not a *fault.Error: %T %v", err, err)
	}
	if e.Class != fault.Corrupt && e.Class != fault.Unsupported && e.Class != fault.Limit {
		return e, fmt.Errorf("class %v: %v", e.Class, err)
	}
	if e.At.Object != object || e.At.Off < 0 || e.At.Len < 0 || e.At.End() > size {
		return e, fmt.Errorf("span %v is outside the %d bytes of %s: %v", e.At, size, object, err)
	}
	return e, nil
}

// reports reports whether Verify has a finding other than notes.
func reports(target format.Target) bool {
	for f := range cfile.Format.Verify(context.Background(), target, format.OpenOptions{}) {
		if f.Severity >= region.Warning {
			return true
		}
	}
	return false
}

// ---- facts about values without reading them: bounds, order, narrowing

// checkMetadata: all values are within the bounds of the row group and in the declared order, and narrowing keeps every
// row for which a predicate is true.
func checkMetadata(t *testing.T, target format.Target, full *answer, x expected) {
	t.Helper()
	ctx := context.Background()
	r, err := cfile.Format.Open(ctx, target, raw)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if order := r.Order(); len(order) > 0 {
		if len(order) != 1 || order[0] != (format.Key{}) {
			t.Errorf("got order %+v, want the only column", order)
		}
		for i := 1; i < len(x.cells); i++ {
			if order := compareCells(x.col, x.cells[i-1], x.cells[i]); order > 0 {
				t.Errorf("an order is declared, but row %d is less than row %d", i, i-1)
				break
			}
		}
	}
	for part, err := range r.Parts(ctx, format.Query{Cols: []int{0}}) {
		if err != nil {
			t.Fatal(err)
		}
		groups, err := r.RowGroups(ctx, part, format.Query{Cols: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			checkBounds(t, g, full, x)
			if n, ok := r.(format.Narrower); ok {
				checkNarrow(t, n, g, full, x)
			}
		}
	}
}

func compareCells(c kudugen.Column, a, b kudugen.Cell) int {
	switch c.Type {
	case "string", "varchar", "binary":
		return bytes.Compare(a, b)
	case "float", "double", "bool":
		panic("no order")
	}
	return a.Signed().Cmp(b.Signed())
}

func checkBounds(t *testing.T, g format.RowGroup, full *answer, x expected) {
	t.Helper()
	b, ok := g.Bounds[0]
	if !ok {
		return
	}
	nulls := int64(0)
	for _, c := range x.cells {
		if c == nil {
			nulls++
		}
	}
	if b.Nulls >= 0 && b.Nulls != nulls || b.Rows >= 0 && b.Rows != int64(len(x.cells)) {
		t.Errorf("bounds: got %d nulls of %d rows, want %d of %d", b.Nulls, b.Rows, nulls, len(x.cells))
	}
	for _, limit := range []struct {
		v    *pred.Value
		sign int
	}{{b.Min, 1}, {b.Max, -1}} {
		if limit.v == nil {
			continue
		}
		var cell kudugen.Cell
		switch {
		case x.col.Width() == 0:
			cell = kudugen.Cell(limit.v.Text)
		case x.col.Type == "decimal":
			cell = kudugen.Big(16, limit.v.Dec.BigInt())
		default:
			n, ok := limit.v.Stored(full.column.Type)
			if !ok {
				t.Errorf("bound %v is not a %s", limit.v, full.column.Type)
				continue
			}
			cell = kudugen.Int(8, n)
		}
		met := false
		for i, c := range x.cells {
			if c == nil {
				continue
			}
			d := compareCells(x.col, c, cell) * limit.sign
			met = met || d == 0
			if d < 0 {
				t.Errorf("row %d, %s, is outside the bound %v", i, show(c), limit.v)
				return
			}
		}
		if !met {
			t.Errorf("no value is the bound %v", limit.v) // min_key and max_key are values of the column
		}
	}
}

func checkNarrow(t *testing.T, n format.Narrower, g format.RowGroup, full *answer, x expected) {
	t.Helper()
	ctx := context.Background()
	next := predicates(x, 5)
	if next == nil {
		return
	}
	total := int64(len(x.cells))
	for range 24 {
		text, holds := next()
		e, err := pred.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		bound, err := pred.Bind(e, full.schema)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		ranges, err := n.Narrow(ctx, g, bound)
		if err != nil {
			t.Errorf("Narrow %.200s: %v", text, err)
			return
		}
		last := int64(-1)
		for _, r := range ranges {
			if r.From <= last || r.To <= r.From || r.To > total {
				t.Errorf("Narrow %.200s: ranges %v of %d rows", text, ranges, total)
				return
			}
			last = r.To
		}
		k := 0
		for i, c := range x.cells {
			for k < len(ranges) && ranges[k].To <= int64(i) {
				k++
			}
			if in := k < len(ranges) && ranges[k].From <= int64(i); !in && holds(c) {
				t.Errorf("Narrow %.200s: got %v, want row %d, %s, in it", text, ranges, i, show(c))
				return
			}
		}
	}
}

type test func(c kudugen.Cell) bool

// predicates returns a function that draws random predicates, as text and as a function of a cell. nil: the type has no
// order.
func predicates(x expected, seed uint64) func() (string, test) {
	if typ := x.col.Type; typ == "float" || typ == "double" || typ == "bool" {
		return nil
	}
	var values []kudugen.Cell
	for _, c := range x.cells {
		if c != nil {
			values = append(values, c)
		}
	}
	if len(values) == 0 {
		return nil
	}
	rnd := rand.New(rand.NewPCG(seed, uint64(len(values))))
	pick := func() kudugen.Cell {
		c := values[rnd.IntN(len(values))]
		if rnd.IntN(3) > 0 {
			return c
		}
		c = bytes.Clone(c) // a neighbour, which may or may not be among the values
		if len(c) > 0 && x.col.Width() == 0 {
			switch rnd.IntN(3) {
			case 0:
				c = c[:rnd.IntN(len(c))]
			case 1:
				c = append(c, 'a')
			case 2:
				c[len(c)-1] ^= 1
			}
			c = kudugen.Cell(strings.ToValidUTF8(string(c), ""))
		} else if len(c) > 0 {
			c[0] ^= byte(1 + rnd.IntN(3))
		}
		return c
	}
	var make func(depth int) (string, test)
	make = func(depth int) (string, test) {
		k := rnd.IntN(13)
		if depth == 0 {
			k %= 9
		}
		a, b := pick(), pick()
		at := func(c kudugen.Cell) int { return compareCells(x.col, c, a) }
		switch k {
		case 0, 1:
			return "value = " + literal(x.col, a), func(c kudugen.Cell) bool { return c != nil && at(c) == 0 }
		case 2:
			return "value < " + literal(x.col, a), func(c kudugen.Cell) bool { return c != nil && at(c) < 0 }
		case 3:
			return "value <= " + literal(x.col, a), func(c kudugen.Cell) bool { return c != nil && at(c) <= 0 }
		case 4:
			return "value > " + literal(x.col, a), func(c kudugen.Cell) bool { return c != nil && at(c) > 0 }
		case 5:
			return literal(x.col, a) + " <= value", func(c kudugen.Cell) bool { return c != nil && at(c) >= 0 }
		case 6:
			return "value between " + literal(x.col, a) + " and " + literal(x.col, b), func(c kudugen.Cell) bool {
				return c != nil && at(c) >= 0 && compareCells(x.col, c, b) <= 0
			}
		case 7:
			return "value in (" + literal(x.col, a) + ", " + literal(x.col, b) + ")", func(c kudugen.Cell) bool {
				return c != nil && (at(c) == 0 || compareCells(x.col, c, b) == 0)
			}
		case 8:
			return "value != " + literal(x.col, a), func(c kudugen.Cell) bool { return c != nil && at(c) != 0 }
		case 9, 10:
			s1, t1 := make(depth - 1)
			s2, t2 := make(depth - 1)
			return "(" + s1 + " and " + s2 + ")", func(c kudugen.Cell) bool { return t1(c) && t2(c) }
		case 11:
			s1, t1 := make(depth - 1)
			s2, t2 := make(depth - 1)
			return "(" + s1 + " or " + s2 + ")", func(c kudugen.Cell) bool { return t1(c) || t2(c) }
		}
		s1, t1 := make(depth - 1)
		return "not (" + s1 + ")", func(c kudugen.Cell) bool { return c != nil && !t1(c) }
	}
	return func() (string, test) { return make(2) }
}

// literal formats a cell as a literal of --where.
func literal(c kudugen.Column, x kudugen.Cell) string {
	switch c.Type {
	case "string", "varchar":
		if bytes.IndexByte(x, 0) < 0 {
			return "'" + strings.ReplaceAll(string(x), "'", "''") + "'"
		}
		fallthrough
	case "binary":
		return "x'" + hex.EncodeToString(x) + "'"
	case "date":
		return "date '" + time.Unix(x.Signed().Int64()*86400, 0).UTC().Format("2006-01-02") + "'"
	case "unixtime_micros":
		return "timestamp '" + time.UnixMicro(x.Signed().Int64()).UTC().Format("2006-01-02T15:04:05.000000Z") + "'"
	}
	return x.Signed().String()
}

// typed returns a cell as a key for Seek.
func typed(c kudugen.Column, x kudugen.Cell) any {
	switch c.Type {
	case "string", "varchar":
		return string(x)
	case "binary":
		return []byte(x)
	case "date", "unixtime_micros":
		_, plain, _ := strings.Cut(literal(c, x), " '")
		return strings.Trim(plain, "'")
	}
	if n := x.Signed(); !n.IsInt64() {
		return pred.Decimal(decimal128.FromBigInt(n), 0)
	}
	return x.Signed().Int64()
}

// ---- package stoa and the scan engine

// checkEngine reads the file as a user of the library does: all rows, random ranges, random filters, single rows, by
// key, and with a damaged block.
func checkEngine(t *testing.T, data []byte, layout *kudugen.Layout, full *answer, x expected) {
	t.Helper()
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	open := func(data []byte) *stoa.Table {
		tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{From: "cfile", Opts: raw.Opts,
			Tree: store.NewMemory(map[string][]byte{"f": data})})
		if err != nil {
			t.Fatal("stoa.Open:", err)
		}
		return tab
	}
	tab := open(data)
	defer tab.Close()
	cells := full.cells
	rnd := rand.New(rand.NewPCG(9, uint64(len(data))))
	total := int64(len(cells))
	next := predicates(x, 11)
	for k := range 6 {
		spec := stoa.ScanSpec{Alloc: alloc}
		text, holds := "", test(func(kudugen.Cell) bool { return true })
		if k > 0 {
			spec.Batch = []int{0, 1 + rnd.IntN(300), 64}[rnd.IntN(3)]
			if rnd.IntN(2) == 0 {
				spec.Rows.From = rnd.Int64N(total)
				spec.Rows.To = spec.Rows.From + 1 + rnd.Int64N(total-spec.Rows.From)
			}
			if rnd.IntN(4) == 0 {
				spec.Limit = 1 + rnd.Int64N(total)
			}
			if rnd.IntN(4) > 0 && next != nil {
				text, holds = next()
				e, err := pred.Parse(text)
				if err != nil {
					t.Fatal(text, err)
				}
				spec.Filter = e
			}
		}
		var want []kudugen.Cell
		for i, c := range cells {
			if spec.Rows != (vec.Range{}) && (int64(i) < spec.Rows.From || int64(i) >= spec.Rows.To) {
				continue
			}
			if holds(c) && (spec.Limit == 0 || int64(len(want)) < spec.Limit) {
				want = append(want, c)
			}
		}
		what := fmt.Sprintf("scan of rows %v, limit %d, batch %d, %.200s", spec.Rows, spec.Limit, spec.Batch, text)
		got, err := collect(tab.Scan(ctx, spec), spec.Batch)
		sameCells(t, what, got, want, err)
		if n, err := tab.Count(ctx, spec); spec.Limit == 0 && (err != nil || n != int64(len(want))) {
			t.Errorf("%s: Count: got %d, %v, want %d", what, n, err, len(want))
		}
	}
	for range 3 {
		n := rnd.Int64N(total)
		got, err := collect(tab.Row(ctx, n, stoa.ScanSpec{Alloc: alloc}), 0)
		sameCells(t, fmt.Sprintf("row %d", n), got, cells[n:n+1], err)
	}
	if len(tab.Keys()) == 1 && next != nil {
		for range 3 {
			key := cells[rnd.IntN(len(cells))]
			if key == nil {
				continue
			}
			var want []kudugen.Cell
			for _, c := range cells {
				if same(c, key) {
					want = append(want, c)
				}
			}
			lit := key
			if x.col.Type == "decimal" {
				lit = key[:x.col.Width()]
			}
			value := typed(x.col, lit)
			got, err := collect(tab.Seek(ctx, []any{value}, stoa.ScanSpec{Alloc: alloc}), 0)
			sameCells(t, fmt.Sprintf("seek of %v", value), got, want, err)
		}
	}

	// A damaged block: its rows are lost, all other rows are read, and the loss is reported.
	if !layout.Checksums || layout.Levels["posidx"] == 0 {
		return
	}
	var blocks []kudugen.Block
	for _, b := range layout.Blocks {
		if b.Kind == "data" {
			blocks = append(blocks, b)
		}
	}
	hit := blocks[rnd.IntN(len(blocks))]
	bad := bytes.Clone(data)
	bad[hit.Off+rnd.Int64N(hit.Len)] ^= 1 << rnd.IntN(8)
	damaged := open(bad)
	defer damaged.Close()
	_, err := collect(damaged.Scan(ctx, stoa.ScanSpec{Alloc: alloc}), 0)
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt || e.At.Off < hit.Off || e.At.End() > hit.Off+hit.Len {
		t.Errorf("a damaged block at [%d+%d]: got %v, want class Corrupt in it", hit.Off, hit.Len, err)
	}
	for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
		var want []kudugen.Cell
		for i, c := range cells {
			if int64(i) < hit.First || int64(i) >= hit.First+hit.Rows {
				want = append(want, c)
			} else if policy == stoa.NullCells {
				want = append(want, nil)
			}
		}
		var lost []region.Loss
		got, err := collect(damaged.Scan(ctx,
			stoa.ScanSpec{Alloc: alloc, Damaged: policy, Lost: func(l region.Loss) { lost = append(lost, l) }}), 0)
		sameCells(t, fmt.Sprintf("a damaged block of rows %d+%d, policy %v", hit.First, hit.Rows, policy), got,
			want, err)
		if len(lost) != 1 || lost[0].Rows != [2]int64{hit.First, hit.First + hit.Rows} || !lost[0].Exact {
			t.Errorf("a damaged block of rows %d+%d: got losses %+v", hit.First, hit.Rows, lost)
		}
	}
}

func sameCells(t *testing.T, what string, got, want []kudugen.Cell, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d cells, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !same(got[i], want[i]) {
			t.Errorf("%s: cell %d of %d: got %s, want %s", what, i, len(got), show(got[i]), show(want[i]))
			return
		}
	}
}

// collect returns the batches of a scan as cells, using Arrow's own accessors. limit is the maximum size of a batch; 0
// means any.
func collect(batches iter.Seq2[arrow.RecordBatch, error], limit int) (out []kudugen.Cell, err error) {
	for batch, err := range batches {
		if err != nil {
			return out, err
		}
		if batch.NumCols() != 1 || batch.NumRows() == 0 || limit > 0 && batch.NumRows() > int64(limit) {
			return out, fmt.Errorf("a batch of %d columns, %d rows", batch.NumCols(), batch.NumRows())
		}
		col := batch.Column(0)
		nulls := 0
		for i := range col.Len() {
			if col.IsNull(i) {
				nulls++
				out = append(out, nil)
				continue
			}
			var c kudugen.Cell
			switch a := col.(type) {
			case *array.Boolean:
				c = kudugen.Bool(a.Value(i))
			case *array.Int8:
				c = kudugen.Int(1, int64(a.Value(i)))
			case *array.Int16:
				c = kudugen.Int(2, int64(a.Value(i)))
			case *array.Int32:
				c = kudugen.Int(4, int64(a.Value(i)))
			case *array.Int64:
				c = kudugen.Int(8, a.Value(i))
			case *array.Timestamp:
				c = kudugen.Int(8, int64(a.Value(i)))
			case *array.Date32:
				c = kudugen.Int(4, int64(a.Value(i)))
			case *array.Float32:
				c = kudugen.Int(4, int64(math.Float32bits(a.Value(i))))
			case *array.Float64:
				c = kudugen.Double(a.Value(i))
			case *array.Decimal128:
				c = kudugen.Big(16, a.Value(i).BigInt())
			case *array.String:
				c = append(kudugen.Cell{}, a.Value(i)...)
			case *array.Binary:
				c = append(kudugen.Cell{}, a.Value(i)...)
			default:
				return out, fmt.Errorf("an array of type %T", col)
			}
			out = append(out, c)
		}
		if nulls != col.NullN() {
			return out, fmt.Errorf("%d nulls, the array counts %d", nulls, col.NullN())
		}
	}
	return out, nil
}

// ---- auxiliary files as tables

// auxRows returns the rows of an auxiliary file: values by column.
func auxRows(t *testing.T, data []byte, opts map[string]string) []map[string]any {
	t.Helper()
	ctx := context.Background()
	tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{From: "cfile", Opts: opts,
		Tree: store.NewMemory(map[string][]byte{"f": data})})
	if err != nil {
		t.Fatal("stoa.Open:", err)
	}
	defer tab.Close()
	var out []map[string]any
	for batch, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			t.Error(err)
			return nil
		}
		names := batch.Schema().Fields()
		for i := range int(batch.NumRows()) {
			row := map[string]any{}
			for j, f := range names {
				row[f.Name] = value(batch.Column(j), i)
			}
			out = append(out, row)
		}
	}
	return out
}

// value returns a value of an array as a Go value: bytes as strings, lists as []any.
func value(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int64:
		return a.Value(i)
	case *array.Uint64:
		return a.Value(i)
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for k := from; k < to; k++ {
			out = append(out, value(a.ListValues(), int(k)))
		}
		return out
	}
	return fmt.Errorf("an array of type %T", a)
}

func sameRows(t *testing.T, got, want []map[string]any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("as a table: got %d rows, want %d", len(got), len(want))
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("as a table: row %d: got %.300q, want %.300q", i, fmt.Sprint(got[i]), fmt.Sprint(want[i]))
			return
		}
	}
}

func checkBloomTable(t *testing.T, data []byte, layout *kudugen.Layout) {
	t.Helper()
	var want []map[string]any
	for _, b := range layout.Blocks {
		if b.Kind != "data" {
			continue
		}
		x := data[b.Off : b.Off+b.Len]
		if layout.Checksums {
			x = x[:len(x)-4]
		}
		n := 4 + int(binary.LittleEndian.Uint32(x))
		set := 0
		for _, y := range x[n:] {
			set += bits.OnesCount8(y)
		}
		want = append(want, map[string]any{"first_key": string(b.Key), "hashes": int64(x[5]),
			"bits": 8 * int64(len(x)-n), "set_bits": int64(set), "filter": string(x[n:])})
	}
	sameRows(t, auxRows(t, data, nil), want)
}

func checkDeltaTable(t *testing.T, data []byte, x expected) {
	t.Helper()
	var want []map[string]any
	for _, c := range x.cells {
		d, err := kudugen.DecodeDelta(c)
		if err != nil {
			t.Fatal(err)
		}
		ids, vals := []any{}, []any{}
		for _, c := range d.Changes {
			ids = append(ids, int64(c.Column))
			if c.Value == nil {
				vals = append(vals, nil)
			} else {
				vals = append(vals, string(c.Value))
			}
		}
		op := []string{"", "update", "delete", "reinsert"}[d.Op]
		want = append(want, map[string]any{"row": int64(d.Row), "timestamp": d.Time, "op": op, "column_ids": ids,
			"values": vals})
	}
	sameRows(t, auxRows(t, data, nil), want)
}

func checkIndexTable(t *testing.T, data []byte, b block) {
	t.Helper()
	rs, err := tables()[b.Table].Rowset(b.Partition, b.Rowset)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, c := range rs.Columns {
		if c.Key {
			name := c.Type
			if name == "decimal" {
				name += fmt.Sprint(8 * c.Width())
			}
			types = append(types, name)
		}
	}
	var want []map[string]any
	for _, row := range rs.Rows {
		m := map[string]any{}
		for i, name := range types {
			var v any = row[i].Signed().Int64()
			switch {
			case rs.Columns[i].Width() == 0:
				v = string(row[i])
			case strings.HasPrefix(name, "decimal"):
				v = row[i].Signed().String()
			}
			m[fmt.Sprint("k", i)] = v
		}
		want = append(want, m)
	}
	sameRows(t, auxRows(t, data, map[string]string{"kind": "index", "key": strings.Join(types, ",")}), want)
}

// ---- bloom files

// judgeBloom: every key of the rowset tests positive in the block that the value index names for it, hardly any other
// key does, and the blocks' first keys ascend. The blocks are those of kudugen.Walk.
func judgeBloom(t *testing.T, data []byte, layout *kudugen.Layout, x expected) (probes int64) {
	t.Helper()
	type part struct {
		first  []byte
		filter *bloom.Filter
	}
	var parts []part
	for _, b := range layout.Blocks {
		if b.Kind != "data" {
			continue
		}
		raw := data[b.Off : b.Off+b.Len]
		if layout.Checksums {
			raw = raw[:len(raw)-4]
		}
		n := int(binary.LittleEndian.Uint32(raw))
		if n != 2 || raw[4] != 0x08 { // BloomBlockHeaderPB{num_hash_functions (1): one byte}
			t.Fatalf("bloom block at %d: header % x", b.Off, raw[:4+n])
		}
		parts = append(parts, part{b.Key, &bloom.Filter{Bits: raw[4+n:], Hashes: int(raw[5])}})
		if len(parts) > 1 && bytes.Compare(parts[len(parts)-2].first, b.Key) >= 0 {
			t.Errorf("first keys %x, %x do not ascend", parts[len(parts)-2].first, b.Key)
		}
	}
	has := func(key []byte) bool {
		i := sort.Search(len(parts), func(i int) bool { return bytes.Compare(parts[i].first, key) > 0 })
		return i > 0 && parts[i-1].filter.Has(bloom.Hash(key))
	}
	other := 0
	for i, k := range x.keys {
		if !has(k) {
			t.Errorf("key %d, %x, tests negative", i, k)
			return
		}
		if has(append(bytes.Clone(k), "other"...)) {
			other++
		}
		probes += 2
	}
	if other > len(x.keys)/20+1 {
		t.Errorf("%d of %d other keys test positive", other, len(x.keys))
	}
	return probes
}

// checkBloom checks the native reader of bloom files.
func checkBloom(t *testing.T, tree store.Tree, x expected) {
	t.Helper()
	ctx := context.Background()
	src, err := tree.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	f, err := cfile.OpenBloom(ctx, src, "f", format.OpenOptions{})
	if err != nil {
		t.Fatal("OpenBloom:", err)
	}
	other := 0
	for i, k := range x.keys {
		if ok, err := f.MayContain(ctx, k); !ok || err != nil {
			t.Errorf("MayContain: key %d, %x: %v %v", i, k, ok, err)
			return
		}
		ok, err := f.MayContain(ctx, append(bytes.Clone(k), "other"...))
		if err != nil {
			t.Errorf("MayContain: a key other than %x: %v", k, err)
			return
		}
		if ok {
			other++
		}
	}
	if other > len(x.keys)/20+1 {
		t.Errorf("MayContain: %d of %d other keys test positive", other, len(x.keys))
	}
	if len(x.keys[0]) > 0 && x.keys[0][0] > 0 {
		if ok, err := f.MayContain(ctx, []byte{0}); ok || err != nil {
			t.Errorf("MayContain: a key before the first: %v %v", ok, err)
		}
	}
}

// ---- delta files

// checkDeltas checks the native reader of delta files: all entries, the entries from a row on, and the statistics that
// Kudu lists.
func checkDeltas(t *testing.T, tree store.Tree, b block, x expected) {
	t.Helper()
	ctx := context.Background()
	src, err := tree.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	f, err := cfile.OpenDelta(ctx, src, "f", format.OpenOptions{})
	if err != nil {
		t.Fatal("OpenDelta:", err)
	}
	var want []kudugen.Delta
	for i, c := range x.cells {
		d, err := kudugen.DecodeDelta(c)
		if err != nil {
			t.Fatal(i, err)
		}
		want = append(want, d)
	}
	if f.Len() != int64(len(want)) {
		t.Errorf("Len: got %d, want %d", f.Len(), len(want))
	}
	rnd := rand.New(rand.NewPCG(3, uint64(len(want))))
	last := int64(want[len(want)-1].Row)
	from := []int64{0, last, last + 1, 1<<32 - 1}
	for range 12 {
		from = append(from, rnd.Int64N(last+1))
	}
	for _, row := range from {
		rest := want
		for len(rest) > 0 && int64(rest[0].Row) < row {
			rest = rest[1:]
		}
		var ds *cfile.Deltas
		var err error
		if row == 0 {
			ds, err = f.All(ctx)
		} else {
			ds, err = f.SeekRow(ctx, row)
		}
		if err != nil {
			t.Errorf("deltas from row %d on: %v", row, err)
			return
		}
		n := 0
		for ; ; n++ {
			d, err := ds.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil || n >= len(rest) {
				t.Errorf("deltas from row %d on: delta %d of %d: %v", row, n, len(rest), err)
				return
			}
			if w := rest[n]; !sameDelta(d, w) {
				t.Errorf("deltas from row %d on: delta %d: got %+v, want %+v", row, n, d, w)
				return
			}
		}
		if n != len(rest) {
			t.Errorf("deltas from row %d on: got %d, want %d", row, n, len(rest))
			return
		}
	}
	stats, ok := f.Stats()
	if !ok {
		t.Error("got no statistics, want some")
		return
	}
	// Kudu lists them as: ts range=[a, b], delete_count=[n], reinsert_count=[n], update_counts_by_col_id=[id:n,…]
	listed := b.CFile["delta-stats"]
	listed, counts, _ := strings.Cut(strings.TrimSuffix(listed, "]"), "update_counts_by_col_id=[")
	updates := map[uint32]int64{}
	for pair := range strings.SplitSeq(counts, ",") {
		var id uint32
		var n int64
		if _, err := fmt.Sscanf(pair, "%d:%d", &id, &n); err == nil {
			updates[id] = n
		}
	}
	got := fmt.Sprintf("ts range=[%d, %d], delete_count=[%d], reinsert_count=[%d], ",
		stats.MinTimestamp, stats.MaxTimestamp, stats.Deletes, stats.Reinserts)
	if got != listed || !maps.Equal(updates, stats.Updates) {
		t.Errorf("statistics: got %s %v, want %s", got, stats.Updates, b.CFile["delta-stats"])
	}
}

func sameDelta(a cfile.Delta, b kudugen.Delta) bool {
	if a.Row != int64(b.Row) || a.Timestamp != b.Time || byte(a.Op) != b.Op || len(a.Changes) != len(b.Changes) {
		return false
	}
	for i, c := range b.Changes {
		if x := a.Changes[i]; int(x.Column) != c.Column || !same(x.Value, c.Value) {
			return false
		}
	}
	return true
}
