package redfile_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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
	"stoa/format/redfile"
	"stoa/internal/nest"
	"stoa/internal/scan"
	"stoa/store"
	"stoa/vec"
)

// The reader is tested on a corpus of real files. Expected contents were computed by the generator that wrote the file.
// The full corpus has no more RED1 files than the project's own; it is also read if STOA_CORPUS names it.

const golden = "../../corpus/redfile"

func TestGolden(t *testing.T) { runCorpus(t, golden) }

func TestCorpus(t *testing.T) {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the golden files are tried")
	}
	runCorpus(t, filepath.Join(dir, "redfile"))
}

type corpusFile struct{ File, Sha256, Expect, Writer string }

func corpusFiles(t testing.TB, dir string) []corpusFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Files []corpusFile }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var out []corpusFile
	for _, f := range m.Files {
		if strings.HasSuffix(f.File, ".red") {
			out = append(out, f)
		}
	}
	if len(out) != 11 {
		t.Fatalf("%d files of RED1 in the manifest, there were 11", len(out))
	}
	return out
}

func runCorpus(t *testing.T, dir string) {
	ran, rows := 0, 0
	for _, cf := range corpusFiles(t, dir) {
		t.Run(cf.File, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, cf.File))
			if err != nil {
				t.Fatal(err)
			}
			if s := sha256.Sum256(b); hex.EncodeToString(s[:]) != cf.Sha256 {
				t.Fatal("not the file of the manifest")
			}
			mem := store.NewMemory(map[string][]byte{"f.red": b})
			r, err := redfile.Format.Open(context.Background(), format.Target{Tree: mem, Name: "f.red"},
				format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			dense := strings.HasPrefix(cf.File, "red1a/")
			want := expected(t, filepath.Join(dir, cf.Expect))
			got := rowsOf(t, r, mem, dense)
			if len(got) != len(want) {
				t.Fatalf("%d rows, %d are expected", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("row %d:\n got %s\nwant %s", i, got[i], want[i])
				}
			}
			ran++
			rows += len(want)
		})
	}
	t.Logf("%d of 11 files ran, %d rows", ran, rows)
	if ran != 11 {
		t.Errorf("%d of 11 files ran", ran)
	}
}

// expected returns the rows of a file, as JSON with sorted keys; numbers are float64 or, if integers, unchanged.
func expected(t *testing.T, name string) []string {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, asJSON(canonicalNumbers(v)))
	}
	return out
}

func canonicalNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = canonicalNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = canonicalNumbers(v[i])
		}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, _ := v.Float64()
			return floatText(f)
		}
	}
	return v
}

func floatText(f float64) any { return fmt.Sprintf("float %x", math.Float64bits(f)) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// arrays reads every row group of a file as one array per top-level field.
func arrays(t testing.TB, r format.Reader, tree store.Tree) [][]arrow.Array {
	t.Helper()
	groups, err := r.RowGroups(context.Background(), format.Part{}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return arraysOf(t, r, tree, groups)
}

// arraysOf is arrays for some row groups.
func arraysOf(t testing.TB, r format.Reader, tree store.Tree, groups []format.RowGroup) [][]arrow.Array {
	t.Helper()
	objects := scan.NewObjects(tree)
	defer objects.Close()
	var out [][]arrow.Array
	cols := r.Columns()
	for _, g := range groups {
		var fields []arrow.Array
		for i, f := range r.Schema().Fields() {
			var use []int
			var in []nest.Input
			rows := int(g.Rows)
			for c := range cols {
				if cols[c].Path[0] != i {
					continue
				}
				v := readColumn(t, r, objects, g, c)
				def, rep := append([]byte(nil), v.Def()...), append([]byte(nil), v.Rep()...)
				a, err := v.Emit(v.Len())
				if err != nil {
					t.Fatal(err)
				}
				use, in = append(use, c), append(in, nest.Input{Array: a, Def: def, Rep: rep})
				if rows < 0 {
					rows = nest.CountRows(rep)
				}
			}
			if len(use) == 1 && len(cols[use[0]].Path) == 1 {
				fields = append(fields, in[0].Array)
				continue
			}
			asm, err := nest.NewAssembler(f, cols, use, nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := asm.Assemble(in, rows, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, a)
		}
		out = append(out, fields)
	}
	return out
}

// readColumn decodes a whole column chunk.
func readColumn(t testing.TB, r format.Reader, objects *scan.Objects, g format.RowGroup, col int) *vec.Vector {
	t.Helper()
	ctx := context.Background()
	c, err := r.Chunk(ctx, g, col, vec.Range{From: 0, To: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	v, err := vec.New(r.Columns()[col].Type, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	var arena vec.Arena
	for {
		arena.Reset()
		p, err := c.Next(ctx)
		if err == io.EOF {
			return v
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := scan.ReadSpan(ctx, objects, p.Spans[0])
		if err != nil {
			t.Fatal(err)
		}
		before := v.Len()
		if err := c.Decode(&format.Task{Page: p, N: p.Entries, Bytes: [][]byte{b}, Scratch: &arena,
			Limits: format.Limits{}.WithDefaults()}, v); err != nil {
			t.Fatal(err)
		}
		if int64(v.Len()-before) != p.Entries {
			t.Fatalf("%d entries appended, %d are declared", v.Len()-before, p.Entries)
		}
	}
}

// rowsOf returns the rows of a file as text. In the notation of redelm every field is an array; dense leaves fields
// unchanged.
func rowsOf(t testing.TB, r format.Reader, tree store.Tree, dense bool) []string {
	var out []string
	for _, fields := range arrays(t, r, tree) {
		if len(fields) == 0 {
			continue
		}
		for row := range fields[0].Len() {
			m := map[string]any{}
			for i, f := range r.Schema().Fields() {
				put(m, f, fields[i], row, dense)
			}
			out = append(out, asJSON(m))
		}
	}
	return out
}

func put(m map[string]any, f arrow.Field, a arrow.Array, row int, dense bool) {
	switch {
	case a.IsNull(row) && dense:
		m[f.Name] = nil
	case a.IsNull(row):
	case dense:
		m[f.Name] = cell(a, row, dense)
	default:
		if l, ok := a.(*array.List); ok {
			from, to := l.ValueOffsets(row)
			if from < to {
				var items []any
				for i := from; i < to; i++ {
					items = append(items, cell(l.ListValues(), int(i), dense))
				}
				m[f.Name] = items
			}
			return
		}
		m[f.Name] = []any{cell(a, row, dense)}
	}
}

func cell(a arrow.Array, i int, dense bool) any {
	switch a := a.(type) {
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return floatText(float64(a.Value(i)))
	case *array.Float64:
		return floatText(a.Value(i))
	case *array.Boolean:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.Struct:
		m := map[string]any{}
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			put(m, f, a.Field(k), i, dense)
		}
		return m
	}
	return base64.StdEncoding.EncodeToString([]byte(a.ValueStr(i)))
}
