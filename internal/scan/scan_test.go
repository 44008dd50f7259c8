package scan_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// toy is a format in memory, so that the engine is tested independently of real formats. A column is a list of pages; a
// page of ints has 8 bytes a value, null is the minimum int. Strings are codes of a dictionary, or numbers that are
// spelled out.
type toy struct {
	columns []toyColumn
	rows    int
	hide    bool // row numbers are unknown before decoding
	narrow  vec.Ranges
}

type toyColumn struct {
	prefix  string // of the object's name
	name    string
	typ     arrow.DataType
	vals    []int64 // of each row; toyNull: null
	cuts    []int   // first rows of the pages
	coded   []bool  // of each page of strings: dictionary codes
	bad     map[int]bool
	unknown bool // bad pages have an unknown encoding, instead of damage
}

const toyNull = -1 << 63

func (c *toyColumn) object() string { return c.prefix + c.name }

// bytes returns the content of the column's object: all values, and the dictionary.
func (c *toyColumn) bytes() []byte {
	var b []byte
	for _, v := range c.vals {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return append(b, "dictionary"...)
}

func (c *toyColumn) text(v int64) string {
	switch {
	case v == toyNull:
		return "null"
	case c.typ.ID() == arrow.STRING:
		return spell(v)
	case c.typ.ID() == arrow.LIST:
		return fmt.Sprint(items(v))
	}
	return fmt.Sprint(v)
}

func spell(v int64) string { return strings.Repeat("x", int(v%7)) + fmt.Sprint(v%10) }

func items(v int64) []int64 {
	var out []int64
	for i := range v % 4 {
		out = append(out, v+i)
	}
	return out
}

func (t *toy) Schema() *arrow.Schema {
	var fs []arrow.Field
	for _, c := range t.columns {
		fs = append(fs, arrow.Field{Name: c.name, Type: c.typ, Nullable: true})
	}
	return arrow.NewSchema(fs, nil)
}

func (t *toy) Columns() []format.Column {
	var out []format.Column
	for i, c := range t.columns {
		out = append(out, format.Column{Name: c.name, Path: []int{i}, Parent: -1, Has: format.Values, Type: c.typ})
	}
	return out
}
func (t *toy) Order() []format.Key     { return nil }
func (t *toy) Meta() []format.KeyValue { return nil }
func (t *toy) Close() error            { return nil }
func (t *toy) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) { yield(format.Part{Ref: "toy", Rows: -1}, nil) }
}
func (t *toy) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	g := format.RowGroup{Part: "toy", Rows: int64(t.rows)}
	if t.hide {
		g.Rows = -1
	}
	if t.rows%2 == 1 {
		g.Bounds = map[int]pred.Bounds{}
		for i := range t.columns {
			if b := t.columns[i].bounds(0, t.rows); b != nil {
				g.Bounds[i] = *b
			}
		}
	}
	return []format.RowGroup{g}, nil
}
func (t *toy) Narrow(context.Context, format.RowGroup, *pred.Expr) (vec.Ranges, error) {
	if t.narrow == nil {
		return vec.Ranges{{From: 0, To: 1 << 62}}, nil
	}
	return t.narrow, nil
}

func (t *toy) Chunk(_ context.Context, _ format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c := &t.columns[col]
	ch := &toyChunk{toyColumn: c, hide: t.hide}
	if !t.hide {
		for ch.next+1 < len(c.cuts) && int64(c.cuts[ch.next+1]) <= rows.From {
			ch.next++
		}
	}
	return ch, nil
}

type toyChunk struct {
	*toyColumn
	next int
	hide bool
}

func (c *toyChunk) Next(context.Context) (format.Page, error) {
	if c.next >= len(c.cuts) {
		return format.Page{}, io.EOF
	}
	i := c.next
	c.next++
	from, to := c.cuts[i], len(c.vals)
	if i+1 < len(c.cuts) {
		to = c.cuts[i+1]
	}
	n := int64(to - from)
	p := format.Page{Ordinal: i, First: int64(from), Rows: n, Entries: n,
		Spans: []fault.Span{{Object: c.object(), Off: int64(8 * from), Len: 8 * n}}}
	p.Bounds = c.bounds(from, to)
	if c.hide {
		p.First, p.Rows, p.Entries = -1, -1, -1
	}
	return p, nil
}

// bounds returns the bounds of the rows [from, to) of a column of ints; some pages have none.
func (c *toyColumn) bounds(from, to int) *pred.Bounds {
	if c.typ.ID() != arrow.INT64 || from > 0 && from%3 == 0 {
		return nil
	}
	b := &pred.Bounds{Rows: int64(to - from)}
	var lowest, highest int64
	for i, v := range c.vals[from:to] {
		if v == toyNull {
			b.Nulls++
			continue
		}
		if int64(i) == b.Nulls || v < lowest {
			lowest = v
		}
		if int64(i) == b.Nulls || v > highest {
			highest = v
		}
	}
	if b.Nulls < b.Rows {
		lo, hi := pred.Int(lowest), pred.Int(highest)
		b.Min, b.Max = &lo, &hi
	}
	return b
}

func (c *toyChunk) Dict() (format.Page, bool) {
	if c.typ.ID() != arrow.STRING {
		return format.Page{}, false
	}
	return format.Page{Ordinal: -1, Entries: 70,
		Spans: []fault.Span{{Object: c.object(), Off: int64(8 * len(c.vals)), Len: 10}}}, true
}

func (c *toyChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if t.Page.Ordinal < 0 {
		if string(t.Bytes[0]) != "dictionary" {
			return errors.New("not the dictionary")
		}
		var all []string
		for v := range int64(70) {
			all = append(all, spell(v))
		}
		fillStrings(dst, all)
		return nil
	}
	if c.bad[t.Page.Ordinal] && c.unknown {
		return fault.Unsupportedf(t.Page.Spans[0], "toy", "encoding 16")
	}
	if c.bad[t.Page.Ordinal] {
		return fault.Corruptf(t.Page.Spans[0], "toy", "bad page")
	}
	b := t.Bytes[0]
	vals := make([]int64, len(b)/8)
	for i := range vals {
		vals[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	if t.Want != nil && t.Want.N != len(vals) {
		return fmt.Errorf("want has %d entries, the page %d", t.Want.N, len(vals))
	}
	for i := range vals {
		if !t.Want.Has(i) && vals[i] != toyNull {
			vals[i] = 0 // values of unwanted entries are undefined
		}
	}
	at := dst.Len()
	switch c.typ.ID() {
	case arrow.INT64:
		dst.Extend(len(vals))
		copy(vec.Fixed[int64](dst, at), vals)
	case arrow.STRING:
		if c.coded[t.Page.Ordinal] {
			codes := dst.ExtendCodes(len(vals), t.Dict)
			for i, v := range vals {
				codes[i] = uint32(max(v, 0) % 70)
			}
		} else {
			var all []string
			for _, v := range vals {
				all = append(all, spell(max(v, 0)))
			}
			fillStrings(dst, all)
		}
	case arrow.LIST:
		dst.Extend(len(vals))
		o := dst.Offsets(at)
		for i, v := range vals {
			list := items(max(v, 0))
			k := dst.Items.Extend(len(list))
			copy(vec.Fixed[int64](dst.Items, k), list)
			o[i+1] = o[i] + int32(len(list))
		}
	}
	for i, v := range vals {
		if v == toyNull {
			bits := dst.Validity()
			bits[(at+i)/8] &^= 1 << ((at + i) % 8)
			dst.AddNulls(1)
		}
	}
	return nil
}

func fillStrings(dst *vec.Vector, all []string) {
	at := dst.Extend(len(all))
	o := dst.Offsets(at)
	n := 0
	for i, s := range all {
		n += len(s)
		o[i+1] = o[0] + int32(n)
	}
	b, _ := dst.Bytes(o[0], int64(n))
	copy(b, strings.Join(all, ""))
}

func drawToy(t *rapid.T) *toy {
	f := &toy{rows: rapid.IntRange(0, 400).Draw(t, "rows"), hide: rapid.Bool().Draw(t, "hide")}
	seed := rapid.Uint64().Draw(t, "seed")
	for i, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String,
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.PrimitiveTypes.Int64} {
		c := toyColumn{name: string(rune('a' + i)), typ: typ, bad: map[int]bool{}}
		for r := range f.rows {
			x := seed + uint64(1000*i+r)*0x9e3779b97f4a7c15
			x ^= x >> 31
			v := int64(x % 70)
			if x%11 == 0 {
				v = toyNull
			}
			c.vals = append(c.vals, v)
		}
		for at := 0; at < f.rows; at += rapid.IntRange(1, 60).Draw(t, "page") {
			c.cuts = append(c.cuts, at)
			c.coded = append(c.coded, rapid.Bool().Draw(t, "coded"))
		}
		f.columns = append(f.columns, c)
	}
	return f
}

func (t *toy) source(counter *store.Counter) scan.Source {
	return scan.Source{Reader: t, Objects: scan.NewObjects(counter), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}
}

func (t *toy) tree() *store.Counter {
	m := store.NewMemory(nil)
	for i := range t.columns {
		m.Put(t.columns[i].object(), t.columns[i].bytes())
	}
	return store.NewCounter(m)
}

// line returns a row as text.
func (t *toy) line(cols []int, row int) string {
	var out []string
	for _, c := range cols {
		out = append(out, t.columns[c].text(t.columns[c].vals[row]))
	}
	return strings.Join(out, "|")
}

func lines(b arrow.RecordBatch) []string {
	var out []string
	for i := range int(b.NumRows()) {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, cellText(c, i))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

func cellText(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	l, ok := a.(*array.List)
	if !ok {
		return a.ValueStr(i)
	}
	from, to := l.ValueOffsets(i)
	out := []int64{}
	for k := from; k < to; k++ {
		out = append(out, l.ListValues().(*array.Int64).Value(int(k)))
	}
	return fmt.Sprint(out)
}

func drawSpec(t *rapid.T, f *toy) (spec scan.Spec, cols []int) {
	spec = scan.Spec{Batch: rapid.SampledFrom([]int{1, 7, 50, 1000}).Draw(t, "batch"),
		Ahead:    rapid.SampledFrom([]int64{0, -1, 100}).Draw(t, "ahead"),
		Parallel: rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "parallel")}
	cols = []int{0, 1, 2, 3}
	if rapid.Bool().Draw(t, "project") {
		cols = rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 4, rapid.ID[int]).Draw(t, "cols")
		spec.Columns = []string{}
		for _, c := range cols {
			spec.Columns = append(spec.Columns, f.columns[c].name)
		}
	}
	if rapid.Bool().Draw(t, "some rows") {
		spec.Rows.From = rapid.Int64Range(0, 450).Draw(t, "from")
		spec.Rows.To = spec.Rows.From + rapid.Int64Range(1, 300).Draw(t, "len")
	}
	if rapid.Bool().Draw(t, "limited") {
		spec.Limit = rapid.Int64Range(1, 300).Draw(t, "limit")
	}
	return spec, cols
}

// expect returns the rows that a scan must return, by plain reading.
func expect(f *toy, spec scan.Spec, cols []int, keep func(row int) bool) []string {
	var want []string
	for r := range f.rows {
		if spec.Rows != (vec.Range{}) && (int64(r) < spec.Rows.From || int64(r) >= spec.Rows.To) || !keep(r) {
			continue
		}
		if spec.Limit > 0 && int64(len(want)) == spec.Limit {
			break
		}
		want = append(want, f.line(cols, r))
	}
	return want
}

// TestScanAgainstPlainReading: a scan with any options returns the same rows as plain reading, and releases all memory.
func TestScanAgainstPlainReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		spec, cols := drawSpec(t, f)
		keep := func(int) bool { return true }
		if rapid.Bool().Draw(t, "filtered") {
			limit := rapid.SampledFrom([]int64{0, 1, 5, 35, 69}).Draw(t, "bound")
			spec.Filter = parse(t, fmt.Sprintf("a < %d and d is not null", limit))
			keep = func(r int) bool {
				return f.columns[0].vals[r] != toyNull && f.columns[0].vals[r] < limit &&
					f.columns[3].vals[r] != toyNull
			}
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		spec.Alloc = mem
		src := f.source(f.tree())
		var got []string
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if b.NumRows() == 0 || b.NumRows() > int64(spec.Batch) {
				t.Fatalf("a batch of %d rows, want at most %d", b.NumRows(), spec.Batch)
			}
			got = append(got, lines(b)...)
		}
		want := expect(f, spec, cols, keep)
		if !slices.Equal(got, want) {
			t.Fatalf("got %d rows, want %d\ngot  %q\nwant %q", len(got), len(want), got, want)
		}
		src.Dicts.Close()
		mem.AssertSize(failer{t}, 0)
	})
}

type failer struct{ *rapid.T }

func (failer) Helper() {}

func parse(t interface{ Fatal(...any) }, s string) *pred.Expr {
	e, err := pred.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFilterOverLostCells: a filter over a lost cell is unknown, even "is null".
func TestFilterOverLostCells(t *testing.T) {
	for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
		f := &toy{rows: 100, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64,
			vals: make([]int64, 100), cuts: []int{0, 51}, bad: map[int]bool{1: true}}}}
		f.columns[0].vals[7] = toyNull
		lost, n := 0, 0
		spec := scan.Spec{Damaged: policy, Filter: parse(t, "a is null"), Lost: func(region.Loss) { lost++ }}
		for b, err := range scan.Run(context.Background(), f.source(f.tree()), spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			n += int(b.NumRows())
		}
		if n != 1 || lost != 1 {
			t.Errorf("policy %d: got %d rows, %d losses, want 1, 1", policy, n, lost)
		}
	}
}

// TestUnknownEncodings: a page with an unknown encoding costs its rows, as damage does; a table of only such pages is
// refused.
func TestUnknownEncodings(t *testing.T) {
	for _, c := range []struct {
		policy       scan.Damaged
		bad          map[int]bool
		rows, losses int
		refused      bool
	}{
		{scan.SkipRows, map[int]bool{1: true}, 51, 1, false}, {scan.NullCells, map[int]bool{1: true}, 100, 1, false},
		{scan.Fail, map[int]bool{0: true}, 0, 0, true}, {scan.SkipRows, map[int]bool{0: true, 1: true}, 0, 2, true},
	} {
		for _, parallel := range []int{1, 3} {
			f := &toy{rows: 100, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64,
				vals: make([]int64, 100), cuts: []int{0, 51}, bad: c.bad, unknown: true}}}
			rows, losses := 0, 0
			var failed error
			spec := scan.Spec{Damaged: c.policy, Parallel: parallel, Lost: func(region.Loss) { losses++ }}
			for b, err := range scan.Run(context.Background(), f.source(f.tree()), spec, nil) {
				if failed = err; err == nil {
					rows += int(b.NumRows())
				}
			}
			if rows != c.rows || losses != c.losses || errors.Is(failed, fault.Unsupported) != c.refused ||
				(failed != nil) != c.refused {
				t.Errorf("policy %d, pages %v, %d workers: got %d rows, %d losses, %v, want %d, %d", c.policy, c.bad,
					parallel, rows, losses, failed, c.rows, c.losses)
			}
		}
	}
}

// TestDamagePolicies: a damaged page ends the scan, or costs its rows or cells, which are reported as lost.
func TestDamagePolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		f.hide = false
		if f.rows == 0 {
			return
		}
		col := rapid.IntRange(0, 3).Draw(t, "damaged column")
		c := &f.columns[col]
		page := rapid.IntRange(0, len(c.cuts)-1).Draw(t, "damaged page")
		c.bad[page] = true
		from, to := c.cuts[page], f.rows
		if page+1 < len(c.cuts) {
			to = c.cuts[page+1]
		}
		policy := rapid.SampledFrom([]scan.Damaged{scan.Fail, scan.SkipRows, scan.NullCells}).Draw(t, "policy")
		var losses []region.Loss
		spec := scan.Spec{Damaged: policy, Batch: rapid.SampledFrom([]int{1, 7, 50, 1000}).Draw(t, "batch"),
			Lost: func(l region.Loss) { losses = append(losses, l) }}
		var want []string
		for r := range f.rows {
			lost := r >= from && r < to
			if lost && policy == scan.SkipRows {
				continue
			}
			saved := c.vals[r]
			if lost {
				c.vals[r] = toyNull
			}
			want = append(want, f.line([]int{0, 1, 2, 3}, r))
			c.vals[r] = saved
		}
		var got []string
		var failed error
		for b, err := range scan.Run(context.Background(), f.source(f.tree()), spec, nil) {
			if failed = err; err == nil {
				got = append(got, lines(b)...)
			}
		}
		if policy == scan.Fail {
			if !errors.Is(failed, fault.Corrupt) || len(losses) != 0 {
				t.Fatalf("got error %v, losses %v, want class Corrupt and none", failed, losses)
			}
			return
		}
		if failed != nil || !slices.Equal(got, want) {
			t.Fatalf("error %v\ngot  %q\nwant %q", failed, got, want)
		}
		if len(losses) != 1 || losses[0].Column != c.name || losses[0].Rows != [2]int64{int64(from), int64(to)} ||
			!losses[0].Exact || losses[0].Err == nil {
			t.Fatalf("got losses %+v, want rows %d to %d of %s", losses, from, to, c.name)
		}
	})
}

// TestExcludedPagesAreNotFetched: pages of the filter's columns whose bounds exclude all their rows are not fetched.
func TestExcludedPagesAreNotFetched(t *testing.T) {
	f := &toy{rows: 100, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64,
		cuts: []int{0, 20, 40, 50, 80}}}}
	for i := range f.rows {
		f.columns[0].vals = append(f.columns[0].vals, int64(i))
	}
	counter := f.tree()
	spec := scan.Spec{Filter: parse(t, "a between 43 and 52")}
	n := int64(0)
	for b, err := range scan.Run(context.Background(), f.source(counter), spec, nil) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.NumRows()
	}
	bytes := 0
	for _, read := range counter.Reads() {
		bytes += read.Len
	}
	if n != 10 || bytes != 8*40 {
		t.Fatalf("got %d rows from %d bytes, want 10 from %d, the pages of rows 40 to 80", n, bytes, 8*40)
	}
}

// TestOnlyNeededPagesAreFetched: pages without a row that is wanted and passes the filter are not fetched.
func TestOnlyNeededPagesAreFetched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		f.hide = false
		spec, _ := drawSpec(t, f)
		spec.Columns, spec.Limit, spec.Ahead = []string{"b"}, 0, -1
		filtered := rapid.Bool().Draw(t, "filtered")
		if filtered {
			spec.Filter = parse(t, "a = 5")
		}
		counter := f.tree()
		for _, err := range scan.Run(context.Background(), f.source(counter), spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
		}
		needed := map[int]bool{}
		b := &f.columns[1]
		for r := range f.rows {
			if spec.Rows != (vec.Range{}) && (int64(r) < spec.Rows.From || int64(r) >= spec.Rows.To) || filtered &&
				f.columns[0].vals[r] != 5 {
				continue
			}
			needed[sort.SearchInts(b.cuts, r+1)-1] = true
		}
		for _, read := range counter.Reads() {
			if read.Name != "b" || read.Off >= int64(8*f.rows) {
				continue
			}
			if page := sort.SearchInts(b.cuts, int(read.Off/8)+1) - 1; !needed[page] {
				t.Fatalf("page %d fetched, want only %v", page, needed)
			}
		}
	})
}

// TestBreakReleasesAll: a break from the loop releases all memory.
func TestBreakReleasesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawToy(t)
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		leave := rapid.IntRange(0, 10).Draw(t, "leave after")
		src := f.source(f.tree())
		for range scan.Run(context.Background(), src, scan.Spec{Alloc: mem, Batch: 20}, nil) {
			if leave--; leave < 0 {
				break
			}
		}
		src.Dicts.Close()
		mem.AssertSize(failer{t}, 0)
	})
}

func TestCancelledContextEndsTheScan(t *testing.T) {
	f := &toy{rows: 100, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 100),
		cuts: []int{0, 50}}}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	n := 0
	for b, err := range scan.Run(ctx, f.source(f.tree()), scan.Spec{Batch: 10}, nil) {
		if last = err; err != nil {
			continue
		}
		n += int(b.NumRows())
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n != 10 {
		t.Errorf("got %d rows, %v, want 10, %v", n, last, context.Canceled)
	}
}

// TestCancelledWorkers: a cancelled scan ends with the context's error, whichever worker notices first.
func TestCancelledWorkers(t *testing.T) {
	f := &toy{rows: 3000, columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 3000)}}}
	for at := 0; at < f.rows; at += 7 {
		f.columns[0].cuts = append(f.columns[0].cuts, at)
	}
	for after := range 60 {
		ctx, cancel := context.WithCancel(context.Background())
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		var last error
		n := 0
		for b, err := range scan.Run(ctx, f.source(f.tree()),
			scan.Spec{Batch: 5, Parallel: 1 + after%4, Alloc: mem}, nil) {
			if last = err; err != nil {
				continue
			}
			if n += int(b.NumRows()); n >= 10*after {
				cancel()
			}
		}
		cancel()
		if !errors.Is(last, context.Canceled) || n == f.rows {
			t.Errorf("cancelled after %d rows: got %d rows, %v, want %v", 10*after, n, last, context.Canceled)
		}
		mem.AssertSize(t, 0)
	}
}

// TestColumnsOfDifferentLength: columns of different length are damage.
func TestColumnsOfDifferentLength(t *testing.T) {
	f := &toy{rows: 100, hide: true, columns: []toyColumn{
		{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 100), cuts: []int{0, 50}},
		{name: "b", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 90), cuts: []int{0, 50}},
	}}
	for _, hide := range []bool{true, false} {
		f.hide = hide
		var last error
		for _, err := range scan.Run(context.Background(), f.source(f.tree()), scan.Spec{}, nil) {
			last = err
		}
		if !errors.Is(last, fault.Corrupt) || !strings.Contains(last.Error(), "90") {
			t.Errorf("hide=%t: got %v, want class Corrupt with the 90 rows", hide, last)
		}
	}
}

// miscounted declares a number of rows other than that of the toy's pages.
type miscounted struct {
	*toy
	declared int64
}

func (l miscounted) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	return []format.RowGroup{{Part: "toy", Rows: l.declared}}, nil
}

// TestMoreRowsThanDeclared: rows in excess of the declared number are damage.
func TestMoreRowsThanDeclared(t *testing.T) {
	for _, cuts := range [][]int{{0, 50}, {0, 90}} { // the excess rows are part of a page, or a page
		f := &toy{rows: 100, hide: true,
			columns: []toyColumn{{name: "a", typ: arrow.PrimitiveTypes.Int64, vals: make([]int64, 100), cuts: cuts}}}
		var last error
		for _, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), miscounted{f, 90}),
			scan.Spec{}, nil) {
			last = err
		}
		if !errors.Is(last, fault.Corrupt) || !strings.Contains(last.Error(), "90") {
			t.Errorf("pages at %v: got %v, want class Corrupt with the 90 rows", cuts, last)
		}
	}
}

func withReader(s scan.Source, r format.Reader) scan.Source {
	s.Reader = r
	return s
}

// longStrings is the toy format with a dictionary of strings of 1 MiB, so that the rows exceed a batch's maximum size.
type longStrings struct{ *toy }

type longChunk struct{ format.Chunk }

func (l longStrings) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c, err := l.toy.Chunk(ctx, g, col, rows)
	return longChunk{c}, err
}

func (c longChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if t.Page.Ordinal < 0 {
		at := dst.Extend(70)
		o := dst.Offsets(at)
		for i := range 70 {
			o[i+1] = o[i] + 1<<20
		}
		_, err := dst.Bytes(0, 70<<20)
		return err
	}
	return c.Chunk.Decode(t, dst)
}

// TestLongDictionaryStrings: rows of long strings by dictionary codes are divided into several batches.
func TestLongDictionaryStrings(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 3 GB")
	}
	f := &toy{rows: 2600, columns: []toyColumn{{name: "s", typ: arrow.BinaryTypes.String, vals: make([]int64, 2600),
		cuts: []int{0}, coded: []bool{true}, bad: map[int]bool{}}}}
	c := &f.columns[0] // the last page is plain, as after an overflow of the dictionary
	c.cuts, c.coded = []int{0, 2500}, []bool{true, false}
	rows, batches := 0, 0
	for b, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), longStrings{f}),
		scan.Spec{Alloc: vec.NewPool(2 << 30)}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		rows += int(b.NumRows())
		batches++
	}
	if rows != 2600 || batches < 3 {
		t.Errorf("got %d rows in %d batches, want 2600 in 3 or more", rows, batches)
	}
}

// wideStrings is the toy format with plain strings of 20 MiB, so that a few pages exceed a window's maximum size.
type wideStrings struct{ *toy }

type wideChunk struct{ format.Chunk }

func (l wideStrings) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c, err := l.toy.Chunk(ctx, g, col, rows)
	return wideChunk{c}, err
}

func (c wideChunk) Decode(t *format.Task, dst *vec.Vector) error {
	if t.Page.Ordinal < 0 {
		return c.Chunk.Decode(t, dst)
	}
	n := int(t.Page.Entries)
	o := dst.Offsets(dst.Extend(n))
	for i := range n {
		o[i+1] = o[i] + 20<<20
	}
	_, err := dst.Bytes(o[0], int64(n)*20<<20)
	return err
}

// TestLongPlainStrings: pages of long strings are divided into several windows.
func TestLongPlainStrings(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 1 GB")
	}
	f := &toy{rows: 100, columns: []toyColumn{{name: "s", typ: arrow.BinaryTypes.String, vals: make([]int64, 100),
		cuts: []int{0, 7, 30, 33, 60, 90}, coded: make([]bool, 6), bad: map[int]bool{}}}}
	for _, spec := range []scan.Spec{{Alloc: vec.NewPool(2 << 30)}, {Alloc: vec.NewPool(2 << 30), Batch: 10}} {
		rows := 0
		for b, err := range scan.Run(context.Background(), withReader(f.source(f.tree()), wideStrings{f}), spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows += int(b.NumRows())
		}
		if rows != 100 {
			t.Errorf("got %d rows, want 100", rows)
		}
	}
}

// TestSpansPastTheEndAreRefused: a span past the end of the file is refused before memory is allocated for it.
func TestSpansPastTheEndAreRefused(t *testing.T) {
	o := scan.NewObjects(store.NewMemory(map[string][]byte{"f": make([]byte, 10)}))
	for _, at := range []fault.Span{{Object: "f", Off: 5, Len: 6}, {Object: "f", Len: 1 << 60},
		{Object: "f", Off: -1, Len: 2}, {Object: "f", Len: -1}} {
		b, err := scan.ReadSpan(context.Background(), o, at)
		var e *fault.Error
		if !errors.As(err, &e) || e.Class != fault.Corrupt || e.At != at || b != nil {
			t.Errorf("%v: got %d bytes, %v, want class Corrupt at the span", at, len(b), err)
		}
	}
}
