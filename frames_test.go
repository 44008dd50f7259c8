package stoa_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// maxFrames is the maximum number of functions from Table.Scan to the one that calls a format's decoder, both included.
const maxFrames = 8

// tallestStack is the deepest stack of calls to any decoder, as names of functions.
type tallestStack []string

func (s *tallestStack) look() {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		if strings.HasSuffix(name, ".readAll") || !more { // readAll calls the scan
			break
		}
		names = append(names, name)
	}
	if len(names) > len(*s) {
		*s = names
	}
}

// stackReader is a reader whose decoders record their callers.
type stackReader struct {
	format.Reader
	stack *tallestStack
}

type stackChunk struct {
	format.Chunk
	stack *tallestStack
}

func (r stackReader) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c, err := r.Reader.Chunk(ctx, g, col, rows)
	if err != nil {
		return nil, err
	}
	return stackChunk{c, r.stack}, nil
}

// Decode ignores dictionaries, which are read before the first page that needs them.
func (c stackChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if d, ok := c.Dict(); !ok || !slices.Equal(d.Spans, t.Page.Spans) {
		c.stack.look()
	}
	return c.Chunk.Decode(t, dst)
}

// readAll counts the rows of a scan.
func readAll(t *testing.T, table *stoa.Table, spec stoa.ScanSpec) (rows int64) {
	t.Helper()
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
	}
	return rows
}

// TestTheWayToADecoderIsShort: few calls lead from a scan to the decoding of a page, in each format that has pages, in
// tables of one and of several files, with a filter and without, for nested and flat columns.
func TestTheWayToADecoderIsShort(t *testing.T) {
	inner := arrow.ListOf(arrow.StructOf(arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "q", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}))
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "l", Type: inner, Nullable: true}}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(
		`[{"a": 1, "l": [{"p": 1, "q": ["x", "y"]}, {"p": 4, "q": null}]}, {"a": 2, "l": null}, {"a": 3, "l": []}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	flat := rec.Columns()[:1]
	filter, err := pred.Parse("a > 1")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stoa.Formats {
		switch f.Name {
		case "cfile", "trevni", "trevni-avro", "redfile", "parquet", "carbon":
		default:
			continue // no pages, or not written by stoa
		}
		t.Run(f.Name, func(t *testing.T) {
			var stack tallestStack
			rec := rec
			if f.Name == "cfile" { // it does not support lists
				rec = array.NewRecordBatch(arrow.NewSchema(sc.Fields()[:1], nil), flat, rec.NumRows())
			}
			open := f.Open
			looking := f
			looking.Open = func(ctx context.Context, g format.Target, o format.OpenOptions) (format.Reader, error) {
				r, err := open(ctx, g, o)
				if err != nil {
					return nil, err
				}
				return stackReader{r, &stack}, nil
			}
			dir := t.TempDir()
			places := []string{filepath.Join(dir, "a"+f.Extensions[0]), filepath.Join(dir, "b"+f.Extensions[0])}
			for _, place := range places {
				w, err := stoa.Create(t.Context(), place, rec.Schema(), stoa.CreateOptions{To: f.Name})
				if err == nil {
					err = w.Write(t.Context(), rec)
				}
				if err == nil {
					_, err = w.Close(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range []string{places[0], filepath.Join(dir, "*")} {
				table, err := stoa.Open(t.Context(), p, stoa.OpenOptions{Formats: []format.Format{looking}})
				if err != nil {
					t.Fatal(err)
				}
				files := int64(1)
				if p != places[0] {
					files = 2
				}
				if n := readAll(t, table, stoa.ScanSpec{}); n != 3*files {
					t.Errorf("got %d rows, want %d", n, 3*files)
				}
				if n := readAll(t, table, stoa.ScanSpec{Filter: filter}); n != 2*files {
					t.Errorf("got %d filtered rows, want %d", n, 2*files)
				}
				if err := table.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if len(stack) == 0 || len(stack) > maxFrames {
				t.Errorf("got a stack of %d functions, want 1 to %d:\n%s", len(stack), maxFrames,
					strings.Join(stack, "\n"))
			}
		})
	}
}
