package trevni_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/nest"
	judge "stoa/interop/trevni"
	"stoa/store"
	"stoa/vec"
)

// The corpus of real files judges the reader. Expectations come from the generator's formula (expect.jsonl, the input
// of Avro's writer) or from the records as they were built (avro.jsonl), never from this package.
//
// TestGolden runs this over the subset in corpus/, TestCorpus over everything.

const golden = "../../corpus/trevni"

func TestCorpus(t *testing.T) {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the golden subset is tried")
	}
	runCorpus(t, filepath.Join(dir, "trevni"), 109)
}

func TestGolden(t *testing.T) { runCorpus(t, golden, 41) }

// entry is a file of a manifest.
type entry struct {
	File, Expect, About string
	ExpectAvro          string `json:"expect_avro"`
}

func manifest(t testing.TB, dir string) []entry {
	t.Helper()
	var m struct{ Files []entry }
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Files
}

func runCorpus(t *testing.T, dir string, want int) {
	ran, rows := 0, 0
	for _, e := range manifest(t, dir) {
		rows += e.check(t, dir)
		ran++
	}
	t.Logf("%d files, %d rows", ran, rows)
	if ran != want {
		t.Errorf("%d files ran, the manifest had %d", ran, want)
	}
}

// check compares a file with its expected contents.
func (e entry) check(t *testing.T, dir string) (rows int) {
	data, err := os.ReadFile(filepath.Join(dir, e.File))
	if err != nil {
		t.Error(err)
		return 0
	}
	r, cols, err := readAll(t.Context(), data, format.OpenOptions{})
	if err != nil {
		t.Errorf("%s: %v", e.File, err)
		return 0
	}
	fields := r.Schema().Fields()
	n := 0
	switch {
	case e.Expect != "":
		for line := range lines(t, filepath.Join(dir, e.Expect)) {
			var row struct {
				Row int
				V   []any
			}
			parse(t, line, &row)
			if row.Row != n || len(row.V) != len(cols) {
				t.Fatalf("%s: row %d of %d columns, the file has %d", e.File, row.Row, len(row.V), len(cols))
			}
			for c := range cols {
				if err := judge.Equal(judge.Core, fields[c], cols[c], n, row.V[c]); err != nil {
					t.Errorf("%s row %d column %s: %v", e.File, n, fields[c].Name, err)
					return n
				}
			}
			n++
		}
	case e.ExpectAvro != "":
		for line := range lines(t, filepath.Join(dir, e.ExpectAvro)) {
			var v any
			parse(t, line, &v)
			whole, isRow := v.(map[string]any)
			for c := range cols {
				want := v
				if isRow && !(len(fields) == 1 && fields[0].Name == "value") {
					var ok bool
					if want, ok = whole[fields[c].Name]; !ok || len(whole) != len(cols) {
						t.Fatalf("%s: the row has no %q", e.File, fields[c].Name)
					}
				}
				if err := judge.Equal(judge.Avro, fields[c], cols[c], n, want); err != nil {
					t.Errorf("%s row %d column %s: %v", e.File, n, fields[c].Name, err)
					return n
				}
			}
			n++
		}
	default: // contents as the manifest describes them: true from row 300000 on
		n = 600000
		for i := range n {
			if got := cols[0].(*array.Boolean); got.Len() != n || got.Value(i) != (i >= 300000) {
				t.Errorf("%s: %d rows, row %d is wrong", e.File, got.Len(), i)
				break
			}
		}
	}
	rg, err := r.RowGroups(t.Context(), format.Part{}, format.Query{})
	if err != nil || rg[0].Rows != int64(n) {
		t.Errorf("%s: %d rows expected, the file says %d (%v)", e.File, n, rg[0].Rows, err)
	}
	return n
}

func lines(t *testing.T, name string) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		f, err := os.Open(name)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		var in io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if in, err = gzip.NewReader(f); err != nil {
				t.Error(err)
				return
			}
		}
		s := bufio.NewScanner(in)
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			if !yield(s.Bytes()) {
				return
			}
		}
		if s.Err() != nil {
			t.Error(s.Err())
		}
	}
}

func parse(t *testing.T, line []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

// readAll opens a file in memory and decodes every column, without the engine.
func readAll(ctx context.Context, data []byte, o format.OpenOptions) (format.Reader, []arrow.Array, error) {
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	r, err := trevni.Format.Open(ctx, format.Target{Tree: m, Name: "f.trv"}, o)
	if err != nil {
		return nil, nil, err
	}
	cols, err := columnsOf(ctx, r, data)
	return r, cols, err
}

// columnsOf decodes the physical columns of a reader, and assembles them with package nest.
func columnsOf(ctx context.Context, r format.Reader, data []byte) ([]arrow.Array, error) {
	groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
	if err != nil {
		return nil, err
	}
	all := r.Columns()
	ins := make([]nest.Input, len(all))
	for i, c := range all {
		var up arrow.Array
		if c.Parent >= 0 {
			up = ins[c.Parent].Array
		}
		if ins[i], err = decodeColumn(ctx, r, groups[0], i, up, data); err != nil {
			return nil, err
		}
	}
	var out []arrow.Array
	for k, f := range r.Schema().Fields() {
		if i := flatColumn(all, k); i >= 0 {
			out = append(out, ins[i].Array)
			continue
		}
		var use []int
		var in []nest.Input
		for i, c := range all {
			if c.Path[0] == k {
				use, in = append(use, i), append(in, ins[i])
			}
		}
		a, err := nest.NewAssembler(f, all, use, nil)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		arr, err := a.Assemble(in, int(groups[0].Rows), memory.DefaultAllocator)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		out = append(out, arr)
	}
	return out, nil
}

// flatColumn returns the column of a field that needs no assembly; -1 for other fields.
func flatColumn(all []format.Column, field int) int {
	for i, c := range all {
		if c.Path[0] == field && len(c.Path) == 1 && c.Parent < 0 && c.Has == format.Values {
			return i
		}
	}
	return -1
}

// lengthsOf returns the lengths by which a column counts its children.
func lengthsOf(a arrow.Array) []int32 {
	if l, ok := a.(*array.List); ok {
		out := make([]int32, l.Len())
		for i := range out {
			from, to := l.ValueOffsets(i)
			out[i] = int32(to - from)
		}
		return out
	}
	return a.(*array.Int32).Int32Values()
}

func decodeColumn(ctx context.Context, r format.Reader, g format.RowGroup, i int, up arrow.Array,
	data []byte) (in nest.Input, err error) {
	col := r.Columns()[i]
	c, err := r.Chunk(ctx, g, i, vec.Range{From: 0, To: math.MaxInt64})
	if err != nil {
		return in, err
	}
	v, err := vec.New(col.Type, memory.DefaultAllocator)
	if err != nil {
		return in, err
	}
	var lengths []int32
	perRow := []int64{} // entries of the parent up to each row
	if up != nil {
		lengths = lengthsOf(up)
		perRow = rowsOf(r, g, col.Parent)
	}
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return in, err
		}
		if p.Lost != nil {
			return in, p.Lost
		}
		t := format.Task{Page: p, N: p.Entries, Scratch: &vec.Arena{}}
		if up != nil {
			t.N = 0
			for _, l := range lengths[perRow[p.First]:perRow[p.First+p.Rows]] {
				t.N += int64(l)
			}
		}
		for _, s := range p.Spans {
			t.Bytes = append(t.Bytes, bytes.Clone(data[s.Off:s.End()]))
		}
		if err := c.Decode(&t, v); err != nil {
			return in, err
		}
		for _, b := range t.Bytes {
			clear(b)
		}
	}
	in.Def, in.Rep = v.Def(), v.Rep()
	in.Array, err = v.Emit(v.Len())
	counts[key{r, i}] = in.Array
	return in, err
}

// counts remembers what was decoded, so that rowsOf can count.
var counts = map[key]arrow.Array{}

type key struct {
	r   format.Reader
	col int
}

// rowsOf returns, for each row, where its entries in column i begin.
func rowsOf(r format.Reader, g format.RowGroup, i int) []int64 {
	out := make([]int64, g.Rows+1)
	parent := r.Columns()[i].Parent
	if parent < 0 {
		for k := range out {
			out[k] = int64(k)
		}
		return out
	}
	up := rowsOf(r, g, parent)
	lengths := lengthsOf(counts[key{r, parent}])
	sum, at := int64(0), int64(0)
	for k := range out {
		for ; at < up[k]; at++ {
			sum += int64(lengths[at])
		}
		out[k] = sum
	}
	return out
}
