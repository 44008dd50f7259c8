// Package formattest is the suite that every format must pass. It tests a format only through the contract.
package formattest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Suite is a format and what it claims to support.
type Suite struct {
	Format format.Format
	// Types are the column types that it writes and reads back unchanged.
	Types []arrow.DataType
	// Options are combinations of write options to try; nil: the defaults only. Fits reports whether a combination may
	// be used for a column type; nil: always.
	Options []map[string]string
	Fits    func(opts map[string]string, t arrow.DataType) bool
	// SmallPages are options that make many pages of few rows.
	SmallPages map[string]string
	// NoChecksums are combinations of options for tables of small pages without checksums. Together they yield every
	// kind of page.
	NoChecksums []map[string]string
	// Rows of each table.
	Rows int
}

// Run runs the suite: a subtest for each law.
func Run(t *testing.T, s Suite) {
	if s.Rows == 0 {
		s.Rows = 700
	}
	if s.Options == nil {
		s.Options = []map[string]string{{}}
	}
	if testing.Short() { // the same laws, fewer cases
		s.Rows = min(s.Rows, 400)
		if n := len(s.Options); n > 3 {
			s.Options = []map[string]string{s.Options[0], s.Options[n/2], s.Options[n-1]}
		}
	}
	if s.Fits == nil {
		s.Fits = func(map[string]string, arrow.DataType) bool { return true }
	}
	t.Run("round trips", s.roundTrips)
	t.Run("windows", s.windows)
	t.Run("projection and filter", s.projection)
	t.Run("wanted entries", s.want)
	t.Run("unknown row numbers", s.hidden)
	t.Run("fetched is declared", s.fetched)
	t.Run("each page failed", s.failedPages)
	t.Run("damage without checksums", s.traceless)
	t.Run("retained batches", s.retained)
	t.Run("leaving the loop", s.leave)
	t.Run("coverage", s.coverage)
	t.Run("depths of verify", s.depths)
	t.Run("broken writers", s.noticed)
	t.Run("an aborted writer leaves nothing", s.aborted)
	t.Run("a failing sink leaves nothing", s.failingSink)
}

// table is a table that a test wrote, with its expected content.
type table struct {
	suite  *Suite
	mem    *store.Memory
	name   string
	schema *arrow.Schema
	lines  []string // of all columns
	cells  [][]string
	values [][]any // by column: see CellsOf
}

// write writes a table of columns of the given types.
func (s *Suite) write(t *testing.T, seed uint64, opts map[string]string, nulls int, types ...arrow.DataType) *table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	tab := &table{suite: s, mem: store.NewMemory(nil), name: "t"}
	var fields []arrow.Field
	for i, typ := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: typ, Nullable: nulls > 0})
	}
	tab.schema = arrow.NewSchema(fields, nil)
	ctx := context.Background()
	w, err := s.Format.Create(ctx, tab.mem.Sink(tab.name), tab.schema, format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatalf("create %v %v: %v", types, opts, err)
	}
	for left := s.Rows; left > 0; {
		n := min(left, 1+r.IntN(s.Rows))
		left -= n
		b := randomBatch(r, tab.schema, n, nulls)
		if err := w.Write(ctx, b); err != nil {
			t.Fatalf("write %v %v: %v", types, opts, err)
		}
		tab.add(b)
		b.Release()
	}
	sum, err := w.Close(ctx)
	if err != nil {
		t.Fatalf("close %v %v: %v", types, opts, err)
	}
	if sum.Rows != int64(s.Rows) {
		t.Errorf("got a summary of %d rows, want %d", sum.Rows, s.Rows)
	}
	Sound(t, &s.Format, tab.mem, tab.name)
	return tab
}

func randomBatch(r *rand.Rand, sc *arrow.Schema, n, nulls int) arrow.RecordBatch {
	var cols []arrow.Array
	for _, f := range sc.Fields() {
		cols = append(cols, Random(r, f.Type, n, nulls))
	}
	b := array.NewRecordBatch(sc, cols, int64(n))
	for _, c := range cols {
		c.Release()
	}
	return b
}

func (tab *table) add(b arrow.RecordBatch) {
	tab.lines = append(tab.lines, Lines(b)...)
	if tab.values == nil {
		tab.values = make([][]any, b.NumCols())
	}
	for i, c := range b.Columns() {
		tab.values[i] = append(tab.values[i], CellsOf(c)...)
	}
	for i := range int(b.NumRows()) {
		var row []string
		for _, c := range b.Columns() {
			row = append(row, Cell(c, i))
		}
		tab.cells = append(tab.cells, row)
	}
}

// open opens the table; its data is read through the counter.
func (tab *table) open(t *testing.T) (scan.Source, *store.Counter) {
	t.Helper()
	c := store.NewCounter(tab.mem)
	r, err := tab.suite.Format.Open(context.Background(), format.Target{Tree: tab.mem, Name: tab.name},
		format.OpenOptions{Limits: format.Limits{}.WithDefaults()})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { r.Close() })
	return scan.Source{Reader: r, Objects: scan.NewObjects(c), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}, c
}

// read scans and returns the rows as lines.
func read(t *testing.T, src scan.Source, spec scan.Spec) []string {
	t.Helper()
	var out []string
	for b, err := range scan.Run(context.Background(), src, spec, nil) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		out = append(out, Lines(b)...)
	}
	return out
}

func same(t *testing.T, what string, got, want []string) bool {
	t.Helper()
	if slices.Equal(got, want) {
		return true
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			g, w := "nothing", "nothing"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			t.Errorf("%s: got %d rows, want %d; row %d: got %s, want %s", what, len(got), len(want), i, g, w)
			return false
		}
	}
	return false
}

// roundTrips: the rows that are read are those written, for each type, with and without nulls, with each combination of
// options.
func (s Suite) roundTrips(t *testing.T) {
	ran := 0
	for i, typ := range s.Types {
		for j, opts := range s.Options {
			if !s.Fits(opts, typ) {
				continue
			}
			for _, nulls := range []int{0, 25, 100} {
				ran++
				tab := s.write(t, uint64(1000*i+10*j+nulls), opts, nulls, typ)
				src, _ := tab.open(t)
				if f := src.Reader.Schema().Field(0); f.Name != "c0" || !arrow.TypeEqual(f.Type, typ) {
					t.Errorf("%s %v: got field %s of type %s", typ, opts, f.Name, f.Type)
					continue
				}
				same(t, fmt.Sprintf("%s %v %d%% null", typ, opts, nulls), read(t, src, scan.Spec{}), tab.lines)
			}
		}
	}
	t.Logf("%d combinations", ran)
}

// wide writes a table of all types with small pages.
func (s *Suite) wide(t *testing.T, seed uint64) *table {
	return s.write(t, seed, s.SmallPages, 20, s.Types...)
}

// windows: any size of batch and any range of rows yield the same rows.
func (s Suite) windows(t *testing.T) {
	tab := s.wide(t, 1)
	src, _ := tab.open(t)
	n := int64(len(tab.lines))
	for _, batch := range []int{1, 7, 100, 1 << 20} {
		for _, rows := range []vec.Range{{}, {From: 0, To: 1}, {From: n - 1, To: n}, {From: 13, To: 400},
			{From: n / 2, To: n + 10}} {
			want := tab.lines
			if rows != (vec.Range{}) {
				want = want[rows.From:min(rows.To, n)]
			}
			same(t, fmt.Sprintf("batch %d rows %v", batch, rows), read(t, src, scan.Spec{Batch: batch, Rows: rows}),
				want)
		}
	}
}

// projection: a projected scan equals a full scan that is projected afterwards; likewise for filters.
func (s Suite) projection(t *testing.T) {
	tab := s.wide(t, 2)
	src, _ := tab.open(t)
	for c := range s.Types {
		name := fmt.Sprintf("c%d", c)
		var want []string
		for _, row := range tab.cells {
			want = append(want, row[c])
		}
		same(t, name, read(t, src, scan.Spec{Columns: []string{name}}), want)

		last := len(s.Types) - 1
		want = nil
		for _, row := range tab.cells {
			if row[c] == "null" {
				want = append(want, row[last])
			}
		}
		same(t, name+" is null", read(t, src,
			scan.Spec{Columns: []string{fmt.Sprintf("c%d", last)}, Filter: mustParse(t, name+" is null")}), want)
	}
}

// fetched: a scan reads no bytes but the declared spans of the pages that it needs.
func (s Suite) fetched(t *testing.T) {
	tab := s.wide(t, 5)
	src, _ := tab.open(t)
	rows := vec.Range{From: 200, To: 210}
	var need, all []fault.Span
	eachPage(t, src, func(_ int, c format.Chunk, p format.Page, _ *vec.Vector) {
		all = append(all, p.Spans...)
		if p.First < 0 || p.First < rows.To && rows.From < p.First+p.Rows {
			need = append(need, p.Spans...)
		}
		if d, ok := c.Dict(); ok {
			need = append(need, d.Spans...)
		}
	})
	src, counter := tab.open(t)
	same(t, "ten rows", read(t, src, scan.Spec{Rows: rows, Ahead: -1}), tab.lines[rows.From:rows.To])
	for _, rd := range counter.Reads() {
		if !slices.Contains(need, fault.Span{Object: rd.Name, Off: rd.Off, Len: int64(rd.Len)}) {
			t.Errorf("%s[%d+%d] was fetched for rows %v", rd.Name, rd.Off, rd.Len, rows)
		}
	}
	if len(all) <= len(need) {
		t.Errorf("got %d spans in all, of which %d are needed: SmallPages yields too few pages", len(all), len(need))
	}
}

// retained: a retained batch does not change when the pool's free buffers are overwritten.
func (s Suite) retained(t *testing.T) {
	tab := s.wide(t, 7)
	src, _ := tab.open(t)
	pool := &poisoner{Pool: vec.NewPool(1 << 30)}
	var kept []arrow.RecordBatch
	var want []string
	for b, err := range scan.Run(context.Background(), src, scan.Spec{Batch: 40, Alloc: pool}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) < 5 {
			b.Retain()
			kept = append(kept, b)
			want = append(want, Lines(b)...)
		}
	}
	var got []string
	for _, b := range kept {
		got = append(got, Lines(b)...)
		b.Release()
	}
	same(t, "retained", got, want)
}

// poisoner overwrites what is freed.
type poisoner struct{ *vec.Pool }

func (p *poisoner) Free(b []byte) {
	for i := range b {
		b[i] = 0xA5
	}
	p.Pool.Free(b)
}

// leave: after a break from the loop at any step no buffer is leaked.
func (s Suite) leave(t *testing.T) {
	tab := s.wide(t, 8)
	for steps := range 6 {
		src, _ := tab.open(t)
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		k := 0
		for _, err := range scan.Run(context.Background(), src, scan.Spec{Batch: 100, Alloc: mem}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if k++; k > steps {
				break
			}
		}
		src.Dicts.Close()
		mem.AssertSize(t, 0)
	}
}

// coverage: in a healthy file the described regions partition all bytes.
func (s Suite) coverage(t *testing.T) {
	if s.Format.Describe == nil {
		t.Skip("the format describes nothing")
	}
	tab := s.wide(t, 9)
	var nodes []region.Node
	for n, err := range s.Format.Describe(context.Background(), format.Target{Tree: tab.mem, Name: tab.name},
		format.DescribeOptions{OpenOptions: format.OpenOptions{Limits: format.Limits{}.WithDefaults()}}) {
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	for _, name := range tab.mem.Names() {
		Partition(t, nodes, name, int64(len(tab.mem.Bytes(name))))
	}
}

// aborted: an aborted writer leaves nothing behind.
func (s Suite) aborted(t *testing.T) {
	ctx := context.Background()
	mem := store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "c0", Type: s.Types[0]}}, nil)
	w, err := s.Format.Create(ctx, mem.Sink("t"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	b := randomBatch(rand.New(rand.NewPCG(1, 1)), sc, 100, 0)
	defer b.Release()
	if err := w.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	if names := mem.Names(); len(names) != 0 {
		t.Errorf("%v visible before Close, want none", names)
	}
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	if names := mem.Names(); len(names) != 0 {
		t.Errorf("%v left after Abort, want none", names)
	}
}

// failingSink: whichever operation fails, the writer returns the sink's error and no file becomes visible.
func (s Suite) failingSink(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c0", Type: s.Types[0]}}, nil)
	for k := 0; ; k++ {
		mem := store.NewMemory(nil)
		sink := &FailingSink{Sink: mem.Sink("t"), Left: k}
		err := func() error {
			w, err := s.Format.Create(ctx, sink, sc, format.WriteOptions{Rows: -1, Opts: s.SmallPages})
			if err != nil {
				return err
			}
			defer w.Abort(ctx)
			r := rand.New(rand.NewPCG(1, 1))
			for range 3 {
				b := randomBatch(r, sc, 300, 0)
				err := w.Write(ctx, b)
				b.Release()
				if err != nil {
					return err
				}
			}
			_, err = w.Close(ctx)
			return err
		}()
		if !sink.Failed {
			if err != nil {
				t.Errorf("no operation failed, got: %v", err)
			}
			t.Logf("failed at each of %d operations", k)
			return
		}
		if !errors.Is(err, ErrSink) {
			t.Errorf("operation %d failed: got %v, want the sink's error", k, err)
		}
		if names := mem.Names(); len(names) != 0 {
			t.Errorf("operation %d failed: %v visible, want none", k, names)
		}
		if k > 10000 {
			t.Fatal("too many operations")
		}
	}
}
