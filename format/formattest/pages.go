package formattest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// eachPage calls f with every page of every column chunk.
func eachPage(t *testing.T, src scan.Source, f func(col int, c format.Chunk, p format.Page, dict *vec.Vector)) {
	t.Helper()
	if _, ok := src.Reader.(format.Batcher); ok {
		t.Skip("the format yields batches, not pages")
	}
	ctx := context.Background()
	for part, err := range src.Reader.Parts(ctx, format.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		groups, err := src.Reader.RowGroups(ctx, part, format.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for col := range src.Reader.Columns() {
				c, err := src.Reader.Chunk(ctx, g, col, vec.Range{From: 0, To: math.MaxInt64})
				if err != nil {
					t.Fatal(err)
				}
				var dict *vec.Vector
				if p, ok := c.Dict(); ok {
					dict = decodePage(t, src, col, c, p, nil, nil)
				}
				for {
					p, err := c.Next(ctx)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					f(col, c, p, dict)
				}
			}
		}
	}
}

func decodePage(t *testing.T, src scan.Source, col int, c format.Chunk, p format.Page, dict *vec.Vector,
	want *vec.Sel) *vec.Vector {
	t.Helper()
	v, err := vec.New(src.Reader.Columns()[col].Type, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	task := format.Task{Page: p, N: p.Entries, Dict: dict, Want: want, Scratch: &vec.Arena{}, Limits: src.Limits}
	for _, sp := range p.Spans {
		b, err := scan.ReadSpan(context.Background(), src.Objects, sp)
		if err != nil {
			t.Fatal(err)
		}
		task.Bytes = append(task.Bytes, b)
	}
	stored := make([][]byte, len(task.Bytes))
	for i, b := range task.Bytes {
		stored[i] = bytes.Clone(b)
	}
	if err := c.Decode(&task, v); err != nil {
		t.Fatalf("column %d page %d: %v", col, p.Ordinal, err)
	}
	for i, b := range task.Bytes {
		if !bytes.Equal(b, stored[i]) {
			t.Errorf("column %d page %d: Decode wrote into the stored bytes", col, p.Ordinal)
		}
		for k := range b {
			b[k] = 0xA5 // makes a vector that refers to them fail
		}
	}
	return v
}

// want: a page decoded for some wanted entries has as many entries as the full page, and equals it in the wanted ones.
func (s Suite) want(t *testing.T) {
	tab := s.wide(t, 3)
	src, _ := tab.open(t)
	r := rand.New(rand.NewPCG(3, 3))
	pages := 0
	eachPage(t, src, func(col int, c format.Chunk, p format.Page, dict *vec.Vector) {
		pages++
		full := decodePage(t, src, col, c, p, dict, nil)
		n := full.Len()
		if p.Entries >= 0 && int64(n) != p.Entries {
			t.Errorf("column %d page %d: got %d entries, declared %d", col, p.Ordinal, n, p.Entries)
		}
		bits := make([]byte, (n+7)/8)
		for i := range bits {
			bits[i] = byte(r.Uint32())
		}
		sel := vec.NewSel(bits, n)
		part := decodePage(t, src, col, c, p, dict, sel)
		if part.Len() != n {
			t.Fatalf("column %d page %d: got %d entries for some wanted, want %d", col, p.Ordinal, part.Len(), n)
		}
		a, errA := full.Emit(n)
		b, errB := part.Emit(n)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i := range n {
			if a.IsNull(i) != b.IsNull(i) || sel.Has(i) && Cell(a, i) != Cell(b, i) {
				t.Fatalf("column %d page %d entry %d: got %s, want %s", col, p.Ordinal, i, Cell(b, i), Cell(a, i))
			}
		}
	})
	t.Logf("%d pages", pages)
}

// hidden: a scan yields the same rows if row numbers and counts are unknown.
func (s Suite) hidden(t *testing.T) {
	tab := s.wide(t, 4)
	src, _ := tab.open(t)
	if _, ok := src.Reader.(format.Batcher); ok {
		t.Skip("the format yields batches, not pages")
	}
	src.Reader = hidden{src.Reader}
	same(t, "hidden numbers", read(t, src, scan.Spec{Batch: 50}), tab.lines)
	same(t, "hidden numbers, some rows", read(t, src, scan.Spec{Rows: vec.Range{From: 100, To: 300}}),
		tab.lines[100:300])
}

// hidden hides the numbers of rows of row groups and pages.
type hidden struct{ format.Reader }

func (h hidden) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	gs, err := h.Reader.RowGroups(ctx, p, q)
	gs = slices.Clone(gs)
	for i := range gs {
		gs[i].Rows = -1
	}
	return gs, err
}

func (h hidden) Chunk(ctx context.Context, g format.RowGroup, col int, _ vec.Range) (format.Chunk, error) {
	c, err := h.Reader.Chunk(ctx, g, col, vec.Range{From: 0, To: math.MaxInt64})
	return hiddenChunk{c}, err
}

type hiddenChunk struct{ format.Chunk }

func (c hiddenChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.Chunk.Next(ctx)
	p.First, p.Rows = -1, -1
	return p, err
}

// failing reports the page at a span as lost.
type failing struct {
	format.Reader
	at fault.Span
}

func (f failing) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c, err := f.Reader.Chunk(ctx, g, col, rows)
	return failingChunk{c, f.at}, err
}

type failingChunk struct {
	format.Chunk
	at fault.Span
}

func (c failingChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.Chunk.Next(ctx)
	if err == nil && len(p.Spans) > 0 && p.Spans[0] == c.at {
		p.Lost = fault.Corruptf(c.at, "", "failed by the test")
	}
	return p, err
}

// failedPages loses every page in turn, under each policy: the reported loss is exact and all other cells are correct.
func (s Suite) failedPages(t *testing.T) {
	tab := s.wide(t, 6)
	src, _ := tab.open(t)
	type victim struct {
		col      int
		at       fault.Span
		from, to int64
	}
	var victims []victim
	eachPage(t, src, func(col int, _ format.Chunk, p format.Page, _ *vec.Vector) {
		if p.First >= 0 && p.Rows > 0 {
			victims = append(victims, victim{col, p.Spans[0], p.First, p.First + p.Rows})
		}
	})
	columns, step := src.Reader.Columns(), max(1, len(victims)/60)
	for i := 0; i < len(victims); i += step {
		v := victims[i]
		broken := src
		broken.Reader = failing{src.Reader, v.at}
		for _, policy := range []scan.Damaged{scan.Fail, scan.SkipRows, scan.NullCells} {
			var losses []region.Loss
			var got []string
			var failed error
			for b, err := range scan.Run(context.Background(), broken,
				scan.Spec{Damaged: policy, Lost: func(l region.Loss) { losses = append(losses, l) }}, nil) {
				if failed = err; err == nil {
					got = append(got, rowsAsText(b)...)
				}
			}
			if policy == scan.Fail {
				if !errors.Is(failed, fault.Corrupt) {
					t.Errorf("%v: got %v, want an error of class Corrupt", v, failed)
				}
				continue
			}
			var want []string
			for r := range tab.lines {
				lost := int64(r) >= v.from && int64(r) < v.to
				if lost && policy == scan.SkipRows {
					continue
				}
				row := make([]any, len(tab.values))
				for k := range row {
					if row[k] = tab.values[k][r]; lost && k == columns[v.col].Path[0] {
						row[k] = withoutCell(row[k], columns, v.col)
					}
				}
				want = append(want, asText(row))
			}
			same(t, fmt.Sprintf("policy %d, %v", policy, v), got, want)
			if failed != nil || len(losses) != 1 || losses[0].Rows != [2]int64{v.from, v.to} || !losses[0].Exact {
				t.Errorf("policy %d, %v: got error %v, losses %+v; want one exact loss", policy, v, failed, losses)
			}
		}
	}
	t.Logf("%d pages failed", (len(victims)+step-1)/step)
}
