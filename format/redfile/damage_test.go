package redfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

var ctx = context.Background()

var scratch vec.Arena // shared by all tests, which run one after another

func target(b []byte) format.Target {
	return format.Target{Tree: store.NewMemory(map[string][]byte{"f.red": b}), Name: "f.red"}
}

// chunkText returns the cells and levels of a column chunk up to the first error, and that error.
func chunkText(r format.Reader, tg format.Target, g format.RowGroup, col int) (pages []string, err error) {
	c, err := r.Chunk(ctx, g, col, vec.Range{From: 0, To: math.MaxInt64})
	if err != nil {
		return nil, err
	}
	objects := scan.NewObjects(tg.Tree)
	defer objects.Close()
	for entries := int64(0); ; {
		p, err := c.Next(ctx)
		if err == io.EOF {
			return pages, nil
		}
		if err != nil {
			return pages, err
		}
		if entries += p.Entries; entries > 1<<20 {
			return pages, nil // runs of very many nulls are valid, but too large to print
		}
		scratch.Reset()
		b, err := scan.ReadSpan(ctx, objects, p.Spans[0])
		if err != nil {
			return pages, err
		}
		v, err := vec.New(r.Columns()[col].Type, memory.DefaultAllocator)
		if err != nil {
			return pages, err
		}
		t := format.Task{Page: p, N: p.Entries, Bytes: [][]byte{b}, Scratch: &scratch,
			Limits: format.Limits{Page: 64 << 20, Metadata: 16 << 20}}
		if err := c.Decode(&t, v); err != nil {
			pages = append(pages, "lost: "+err.Error())
			continue
		}
		text := fmt.Sprint(v.Def(), v.Rep())
		a, err := v.Emit(v.Len())
		if err != nil {
			return pages, err
		}
		pages = append(pages, text+fmt.Sprint(a))
		a.Release()
	}
}

// content returns everything that can be read from a file, with the errors encountered.
func content(tg format.Target) (text string, errs []error) {
	r, err := redfile.Format.Open(ctx, tg,
		format.OpenOptions{Limits: format.Limits{Page: 64 << 20, Metadata: 16 << 20}})
	if err != nil {
		return "", []error{err}
	}
	defer r.Close()
	return readerContent(r, tg)
}

func readerContent(r format.Reader, tg format.Target) (text string, errs []error) {
	var b strings.Builder
	fmt.Fprintln(&b, r.Schema())
	groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
	if err != nil {
		return "", []error{err}
	}
	for _, g := range groups {
		for col := range r.Columns() {
			pages, err := chunkText(r, tg, g, col)
			for _, p := range pages {
				if strings.HasPrefix(p, "lost: ") {
					errs = append(errs, errors.New(p))
				}
			}
			if err != nil {
				errs = append(errs, err)
			}
			fmt.Fprintln(&b, g.Index, g.Rows, col, strings.Join(pages, ""))
		}
	}
	return b.String(), errs
}

// findings returns the errors that verify reports.
func findings(tg format.Target) (out []region.Finding) {
	for f := range redfile.Format.Verify(ctx, tg,
		format.OpenOptions{Limits: format.Limits{Page: 64 << 20, Metadata: 16 << 20}}) {
		if f.Severity >= region.Warning {
			out = append(out, f)
		}
	}
	return out
}

// describeAll describes a file with the insides of its pages.
func describeAll(tg format.Target) (nodes []region.Node, err error) {
	for n, e := range redfile.Format.Describe(ctx, tg, format.DescribeOptions{Pages: true}) {
		if e != nil {
			err = e
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes, err
}

// TestHealthyFiles: verify finds nothing in the files of the corpus, and describe claims every byte of them.
func TestHealthyFiles(t *testing.T) {
	for _, cf := range corpusFiles(t, golden) {
		b, err := os.ReadFile(filepath.Join(golden, cf.File))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings(target(b)) {
			t.Errorf("%s: %+v", cf.File, f)
		}
		nodes, err := describeAll(target(b))
		if err != nil {
			t.Errorf("%s: %v", cf.File, err)
		}
		formattest.Partition(t, nodes, "f.red", int64(len(b)))
		if m, err := redfile.Format.Probe(ctx, target(b)); m != format.Certain || err != nil {
			t.Errorf("%s: probed %v, %v", cf.File, m, err)
		}
	}
}

// writeTable writes one or more batches as a file.
func writeTable(t testing.TB, opts map[string]string, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	mem := store.NewMemory(nil)
	w, err := redfile.Format.Create(ctx, mem.Sink("f.red"), batches[0].Schema(),
		format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return mem.Bytes("f.red")
}

// writeSample writes the first n rows of the sample table.
func writeSample(t testing.TB, n int, opts map[string]string) []byte {
	t.Helper()
	b := sampleBatch(0, n)
	defer b.Release()
	return writeTable(t, opts, b)
}

// TestStatsOfRowGroups: the minimum and the maximum are those of all row groups.
func TestStatsOfRowGroups(t *testing.T) {
	tg := target(writeSample(t, 300, map[string]string{"row-group-rows": "60"}))
	tab, err := stoa.Open(ctx, tg.Name, stoa.OpenOptions{Tree: tg.Tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	st, err := tab.Stats(ctx, stoa.Fail, nil)
	if err != nil || st[0].Name != "id" || st[0].Min != "-7" || st[0].Max != fmt.Sprint(299*1000003-7) ||
		st[0].Blocks < 5 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestChangedBytesNeverPanic: verify decodes pages without checksums, whatever their levels and lengths. The column has
// runs of nulls, so that one changed byte turns all of them into values.
func TestChangedBytesNeverPanic(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range 90 {
		if i/30 != 1 {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", 12))
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	whole := writeTable(t, map[string]string{"crc": "false", "compression": "none", "sync": "0"}, batch)
	for at := 4; at < len(whole)-8; at++ {
		for _, flip := range []byte{2, 0xff} {
			changed := bytes.Clone(whole)
			changed[at] ^= flip
			for range redfile.Format.Verify(ctx, target(changed), format.OpenOptions{Depth: format.Deep}) {
			}
		}
	}
}

// TestOwnFilesAreHealthy: files of our writer, with every kind of structure, pass verification.
func TestOwnFilesAreHealthy(t *testing.T) {
	for _, opts := range []map[string]string{
		{"sync": "1", "row-group-rows": "30", "page-size": "200"},
		{"sync": "2", "row-group-rows": "30", "generation": "A", "protocol": "binary"},
		{"sync": "0", "index": "false", "compression": "gzip"}, {"crc": "false", "generation": "A"},
	} {
		b := writeSample(t, 100, opts)
		for f := range redfile.Format.Verify(ctx, target(b), format.OpenOptions{}) {
			t.Errorf("%v: %+v", opts, f)
		}
		nodes, err := describeAll(target(b))
		if err != nil {
			t.Errorf("%v: %v", opts, err)
		}
		formattest.Partition(t, nodes, "f.red", int64(len(b)))
	}
}

// TestFlippedBits flips every bit of small files: no panic, every error has a class and a location, and where there are
// checksums, verify reports every flip that changes an answer.
func TestFlippedBits(t *testing.T) {
	files := map[string][]byte{
		"E": writeSample(t, 12, map[string]string{"row-group-rows": "6", "page-size": "40", "sync": "2"}),
		"A": writeSample(t, 12, map[string]string{"row-group-rows": "6", "page-size": "40", "sync": "0",
			"generation": "A", "compression": "none"}),
	}
	for _, name := range []string{"red1/dremel.red", "red1a/a_plain.red"} {
		b, err := os.ReadFile(filepath.Join(golden, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	for name, whole := range files {
		want, errs := content(target(whole))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		checked := name == "E" || name == "A"
		changed, unnoticed, harmless := 0, 0, 0
		for bit := range 8 * len(whole) {
			if os.Getenv("STOA_LONG") == "" && bit%7 != 0 {
				continue // every byte, and every bit position in some byte
			}
			b := append([]byte(nil), whole...)
			b[bit/8] ^= 1 << (bit % 8)
			got, errs := content(target(b))
			for _, err := range errs {
				checkError(t, err, len(b))
			}
			switch {
			case len(errs) > 0:
			case got == want:
				harmless++
			default:
				changed++
				if len(findings(target(b))) == 0 {
					if unnoticed++; checked {
						t.Errorf("%s: bit %d of byte %d: another answer, and verify reports nothing\n%s", name, bit%8,
							bit/8, firstDifference(got, want))
					}
				}
			}
			if bit%91 == 0 {
				describeAll(target(b))
				findings(target(b))
				if r, _, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{}); err == nil {
					readerContent(r, target(b))
					r.Close()
				}
			}
		}
		t.Logf("%s: %d bits, %d changed the answer without an error, of which verify was silent about %d; %d "+
			"changed nothing", name, 8*len(whole), changed, unnoticed, harmless)
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprint(len(x), len(y))
}

func checkError(t *testing.T, err error, size int) {
	t.Helper()
	var e *fault.Error
	if strings.HasPrefix(err.Error(), "lost: f.red[") {
		return
	}
	if !errors.As(err, &e) {
		t.Fatalf("not classed: %v", err)
	}
	if e.Class == fault.Bug || e.Class != fault.Invalid &&
		(e.At.Object != "f.red" || e.At.Off < 0 || e.At.End() > int64(size)+1) {
		t.Fatalf("not placed: %v", err)
	}
}

// TestErrorRecovery checks the document's paragraph "Error recovery", sentence by sentence. The file has two row groups
// of 40 rows, three columns and several pages a chunk.
func TestErrorRecovery(t *testing.T) {
	for _, gen := range []string{"A", "E"} {
		opts := map[string]string{"generation": gen, "row-group-rows": "40", "page-size": "100", "sync": "0",
			"index": "false", "compression": "none"}
		whole := writeSample(t, 80, opts)
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		place := func(path ...string) fault.Span {
			depth := 0
			for _, n := range nodes {
				if n.Depth == depth && n.Name == path[depth] {
					if depth++; depth == len(path) {
						return n.At
					}
				}
			}
			t.Fatalf("no node %v", path)
			return fault.Span{}
		}
		before := map[string][]string{} // pages of each chunk
		r, err := redfile.Format.Open(ctx, target(whole), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups, _ := r.RowGroups(ctx, format.Part{}, format.Query{})
		for _, g := range groups {
			for col := range r.Columns() {
				if before[fmt.Sprint(g.Index, col)], err = chunkText(r, target(whole), g, col); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.Close()
		// lose damages a location and returns the rest of each chunk: its pages, with "" for a lost page.
		lose := func(at fault.Span, skip int64) (map[string][]string, error) {
			b := append([]byte(nil), whole...)
			for i := at.Off + skip; i < at.End(); i++ {
				b[i] ^= 0xff
			}
			r, err := redfile.Format.Open(ctx, target(b), format.OpenOptions{})
			if err != nil {
				return nil, err
			}
			defer r.Close()
			if len(findings(target(b))) == 0 {
				t.Error("verify reports nothing")
			}
			out := map[string][]string{}
			groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
			if err != nil {
				return nil, err
			}
			for _, g := range groups {
				for col := range r.Columns() {
					key := fmt.Sprint(g.Index, col)
					pages, err := chunkText(r, target(b), g, col)
					if err != nil {
						pages = append(pages, "the rest is lost")
					}
					out[key] = pages
				}
			}
			return out, nil
		}
		// same compares every chunk but one with its original content.
		same := func(got map[string][]string, but string) {
			t.Helper()
			for key, pages := range before {
				if key != but && strings.Join(got[key], "") != strings.Join(pages, "") {
					t.Errorf("generation %s: chunk %s: got different values", gen, key)
				}
			}
		}

		// "If the file metadata is corrupt, the file is lost."
		if _, err := lose(place("file_metadata"), 0); !errors.Is(err, fault.Corrupt) {
			t.Errorf("generation %s, file metadata: %v", gen, err)
		}
		// "If the column metadata is corrupt, that column chunk is lost (but column chunks for this column in other row
		// groups are okay)." In generation E the file metadata has a copy, so nothing is lost.
		got, err := lose(place("row_groups[0].columns[1]", "column_metadata"), 0)
		if err != nil {
			t.Fatal(err)
		}
		same(got, "0 1")
		switch {
		case gen == "A" && strings.Join(got["0 1"], "") != "the rest is lost":
			t.Errorf("column metadata: %v", got["0 1"])
		case gen == "E":
			same(got, "")
		}
		// "If a page header is corrupt, the remaining pages in that chunk are lost."
		if got, err = lose(place("row_groups[1].columns[0]", "page[1]", "header"), 0); err != nil {
			t.Fatal(err)
		}
		same(got, "1 0")
		if len(before["1 0"]) < 3 || len(got["1 0"]) != 2 || got["1 0"][0] != before["1 0"][0] ||
			got["1 0"][1] != "the rest is lost" {
			t.Errorf("generation %s, page header: %d pages, %d are left", gen, len(before["1 0"]), len(got["1 0"]))
		}
		// "If the data within a page is corrupt, that page is lost."
		if got, err = lose(place("row_groups[1].columns[0]", "page[1]", "body"), 0); err != nil {
			t.Fatal(err)
		}
		same(got, "1 0")
		for i, p := range got["1 0"] {
			if lost := strings.HasPrefix(p, "lost: "); lost != (i == 1) || !lost && p != before["1 0"][i] {
				t.Errorf("generation %s, page data: page %d: %s", gen, i, p)
			}
		}
	}
}

// TestIndexSavesPages: with an index page, a damaged header loses only its own page.
func TestIndexSavesPages(t *testing.T) {
	whole := writeSample(t, 80, map[string]string{"page-size": "100", "compression": "none"})
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Name != "page[1]" {
			continue
		}
		b := append([]byte(nil), whole...)
		b[n.At.Off] ^= 0xff
		r, err := redfile.Format.Open(ctx, target(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups, _ := r.RowGroups(ctx, format.Part{}, format.Query{})
		pages, err := chunkText(r, target(b), groups[0], 0)
		r.Close()
		lost := 0
		for _, p := range pages {
			if strings.HasPrefix(p, "lost: ") {
				lost++
			}
		}
		if err != nil || lost != 1 || len(pages) < 5 {
			t.Errorf("%v, %d of %d pages lost", err, lost, len(pages))
		}
		return
	}
	t.Fatal("no second page")
}

// TestRecoverColumn: without the metadata of the file, a chunk whose own metadata is damaged is lost, and no other
// chunk.
func TestRecoverColumn(t *testing.T) {
	for _, opts := range []map[string]string{{"generation": "A", "sync": "0"}, {"sync": "100"}} {
		opts["row-group-rows"], opts["page-size"] = "40", "100"
		whole := writeSample(t, 120, opts)
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		b := append([]byte(nil), whole...)
		chunk := ""
		for _, n := range nodes {
			if n.Depth == 0 {
				chunk = n.Name
			}
			if chunk == "row_groups[1].columns[1]" && n.Name == "column_metadata" {
				for i := n.At.Off; i < n.At.End(); i++ {
					b[i] ^= 0xff
				}
			}
			if n.Depth == 0 && n.Name == "file_metadata" {
				b = b[:n.At.Off+5]
			}
		}
		r, found, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
		if err != nil || len(groups) != 3 {
			t.Fatalf("%v: %v, %d row groups of 3; %+v", opts, err, len(groups), found)
		}
		for _, g := range groups {
			for col := range r.Columns() {
				_, err := chunkText(r, target(b), g, col)
				if lost := g.Index == 1 && col == 1; lost != (err != nil) {
					t.Errorf("%v: row group %d, column %d: %v", opts, g.Index, col, err)
				}
				if g.Rows != 40 {
					t.Errorf("%v: row group %d has %d rows", opts, g.Index, g.Rows)
				}
			}
		}
		if len(found) == 0 {
			t.Error("recover reports nothing")
		}
		r.Close()
	}
}

// FuzzFile reads, verifies, describes and recovers arbitrary bytes.
func FuzzFile(f *testing.F) {
	for _, cf := range corpusFiles(f, golden) {
		if b, err := os.ReadFile(filepath.Join(golden, cf.File)); err == nil && len(b) < 4000 {
			f.Add(b)
		}
	}
	f.Add(writeSample(f, 12, map[string]string{"row-group-rows": "6", "page-size": "40", "sync": "1"}))
	f.Add(writeSample(f, 12, map[string]string{"row-group-rows": "6", "page-size": "40", "sync": "1",
		"generation": "A", "protocol": "binary", "compression": "gzip"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer formattest.Bound(t, 640<<20)()
		for _, fix := range []bool{false, true} {
			if fix { // a fitting length, so that more code is reached
				if len(b) < 20 {
					return
				}
				b = append([]byte(nil), b...)
				copy(b[len(b)-4:], "RED1")
				copy(b, "RED1")
				if n := binary.LittleEndian.Uint32(b[len(b)-8:]); int64(n) > int64(len(b)) {
					binary.LittleEndian.PutUint32(b[len(b)-8:], n%uint32(len(b)))
				}
			}
			tg := target(b)
			_, errs := content(tg)
			for _, err := range errs {
				checkError(t, err, len(b))
			}
			findings(tg)
			describeAll(tg)
			if r, _, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{}); err == nil {
				readerContent(r, tg)
				r.Close()
			}
		}
	})
}
