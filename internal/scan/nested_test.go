package scan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// nested is a toy format of nested columns: the entries of every physical column are in memory, divided into pages; a
// page has one byte to fetch.
type nested struct {
	schema  *arrow.Schema
	rows    int
	columns []nestedColumn
	hide    bool // the row group's number of rows is unknown
}

type nestedColumn struct {
	format.Column
	def, rep []byte
	values   []any   // of each entry: int64, string or nil
	first    []int64 // of each row: its first entry; at the end the number of entries
	cuts     []int   // first entries of the pages
	indexed  bool    // the rows of pages are known although the column is repeated
	bad      int     // the page that cannot be decoded; -1: none
}

func (n *nested) Schema() *arrow.Schema   { return n.schema }
func (n *nested) Order() []format.Key     { return nil }
func (n *nested) Meta() []format.KeyValue { return nil }
func (n *nested) Close() error            { return nil }
func (n *nested) Columns() (out []format.Column) {
	for _, c := range n.columns {
		out = append(out, c.Column)
	}
	return out
}
func (n *nested) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) { yield(format.Part{Ref: "nested", Rows: -1}, nil) }
}
func (n *nested) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	g := format.RowGroup{Part: "nested", Rows: int64(n.rows)}
	if n.hide {
		g.Rows = -1
	}
	return []format.RowGroup{g}, nil
}

func (n *nested) Chunk(_ context.Context, _ format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	c := &n.columns[col]
	ch := &nestedChunk{nestedColumn: c}
	for c.placed() && ch.next+1 < len(c.cuts) && c.rowAt(c.cuts[ch.next+1]) <= rows.From {
		ch.next++
	}
	return ch, nil
}

// aligned reports whether pages hold complete rows, placed whether the rows that start in each page are known.
func (c *nestedColumn) aligned() bool { return c.MaxRep == 0 }
func (c *nestedColumn) placed() bool  { return c.aligned() || c.indexed }

// rowAt returns the row that begins with entry e.
func (c *nestedColumn) rowAt(e int) int64 {
	k, _ := slices.BinarySearch(c.first, int64(e))
	return int64(k)
}

type nestedChunk struct {
	*nestedColumn
	next int
}

func (c *nestedChunk) end(i int) int {
	if i+1 < len(c.cuts) {
		return c.cuts[i+1]
	}
	return len(c.values)
}

func (c *nestedChunk) Next(context.Context) (format.Page, error) {
	if c.next >= len(c.cuts) {
		return format.Page{}, io.EOF
	}
	i := c.next
	c.next++
	p := format.Page{Ordinal: i, First: -1, Rows: -1, Entries: int64(c.end(i) - c.cuts[i]),
		Spans: []fault.Span{{Object: c.Name, Off: int64(i), Len: 1}}}
	if c.placed() {
		p.First = c.rowAt(c.cuts[i])
		p.Rows = int64(len(c.first)-1) - p.First
		if i+1 < len(c.cuts) {
			p.Rows = c.rowAt(c.cuts[i+1]) - p.First
		}
	}
	if c.Parent >= 0 {
		p.Entries = -1
	}
	return p, nil
}

func (c *nestedChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (c *nestedChunk) Decode(t *format.Task, dst *vec.Vector) error {
	i := t.Page.Ordinal
	if i == c.bad {
		return fault.Corruptf(t.Page.Spans[0], "toy", "bad page")
	}
	from, to := c.cuts[i], c.end(i)
	if t.N != int64(to-from) {
		return fault.Corruptf(t.Page.Spans[0], "toy", "expected %d entries, found %d", t.N, to-from)
	}
	var texts []string
	at := dst.Len()
	for _, v := range c.values[from:to] {
		switch v := v.(type) {
		case int64:
			k := dst.Extend(1)
			if dst.Type.ID() == arrow.INT32 {
				vec.Fixed[int32](dst, k)[0] = int32(v)
			} else {
				vec.Fixed[int64](dst, k)[0] = v
			}
		case string:
			texts = append(texts[:0], v)
			fillStrings(dst, texts)
		case nil:
			dst.ExtendNulls(1)
		}
	}
	if c.Has&format.Levels != 0 {
		def, rep := dst.ExtendLevels(dst.Len() - at)
		copy(def, c.def[from:to])
		copy(rep, c.rep[from:to])
	}
	return nil
}

var nestedSchema = arrow.NewSchema([]arrow.Field{
	{Name: "a", Type: arrow.PrimitiveTypes.Int64},
	{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "s", Type: arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.ListOfNonNullable(arrow.StructOf(
			arrow.Field{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "q", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)})), Nullable: true},
		arrow.Field{Name: "z", Type: arrow.BinaryTypes.String})},
	{Name: "n", Type: arrow.Null, Nullable: true},
	{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true},
}, nil)

// drawValue returns a random value of a field in JSON form.
func drawValue(t *rapid.T, f arrow.Field, depth int) any {
	if f.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return nil
	}
	n := func() int { return rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5}).Draw(t, "n") }
	switch typ := f.Type.(type) {
	case *arrow.NullType:
		return nil
	case *arrow.Int64Type:
		return rapid.IntRange(0, 50).Draw(t, "int")
	case *arrow.StringType:
		return rapid.StringMatching("[a-c]{0,3}").Draw(t, "text")
	case *arrow.StructType:
		m := map[string]any{}
		for _, c := range typ.Fields() {
			m[c.Name] = drawValue(t, c, depth+1)
		}
		return m
	case *arrow.MapType:
		out := []any{}
		for range n() {
			out = append(out, map[string]any{"key": drawValue(t, typ.KeyField(), depth+1),
				"value": drawValue(t, typ.ItemField(), depth+1)})
		}
		return out
	case *arrow.ListType:
		out := []any{}
		for range n() {
			out = append(out, drawValue(t, typ.ElemField(), depth+1))
		}
		return out
	}
	panic(f.Type)
}

// drawNested draws rows and stores them, by levels or by lengths.
func drawNested(t *rapid.T) (*nested, arrow.RecordBatch) {
	n := &nested{schema: nestedSchema, rows: rapid.IntRange(0, 60).Draw(t, "rows"), hide: rapid.Bool().Draw(t, "hide")}
	rows := []any{}
	for i := range n.rows {
		one := map[string]any{"a": i}
		for _, f := range nestedSchema.Fields()[1:] {
			one[f.Name] = drawValue(t, f, 0)
		}
		rows = append(rows, one)
	}
	text, _ := json.Marshal(rows)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, nestedSchema, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	levels := rapid.Bool().Draw(t, "levels")
	for i, f := range nestedSchema.Fields() {
		if f.Type.ID() == arrow.NULL {
			continue // has no physical column
		}
		if levels && i > 0 {
			n.addLevels(t, i, f, rec.Column(i))
		} else {
			starts := make([]int64, n.rows+1)
			for k := range starts {
				starts[k] = int64(k)
			}
			n.addLengths(i, []int{i}, f, rec.Column(i), -1, starts)
		}
	}
	for i := range n.columns {
		n.columns[i].cut(t)
	}
	return n, rec
}

func (n *nested) addLevels(t *rapid.T, i int, f arrow.Field, a arrow.Array) {
	shreds, err := nest.Shred(f, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shreds {
		c := nestedColumn{bad: -1, Column: format.Column{Name: f.Name + s.Name, Path: append([]int{i}, s.Path...),
			Parent: -1,
			Has:    format.Values | format.Levels, MaxDef: s.MaxDef, MaxRep: s.MaxRep, Type: s.Type}, def: s.Def,
			rep: s.Rep}
		if c.def == nil {
			c.def = make([]byte, s.Entries)
		}
		if c.rep == nil {
			c.rep = make([]byte, s.Entries)
		}
		k := 0
		for e := range s.Entries {
			if c.rep[e] == 0 {
				c.first = append(c.first, int64(e))
			}
			if c.def[e] < s.MaxDef {
				c.values = append(c.values, nil)
				continue
			}
			at := k
			if s.Present != nil {
				at = int(s.Present[k])
			}
			c.values = append(c.values, plainValue(s.Values, at))
			k++
		}
		c.first = append(c.first, int64(s.Entries))
		n.columns = append(n.columns, c)
	}
}

func plainValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int64:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	}
	panic(a)
}

// addLengths stores a in columns of lengths and values; first are the first entries of the rows.
func (n *nested) addLengths(i int, path []int, f arrow.Field, a arrow.Array, parent int, first []int64) {
	c := nestedColumn{bad: -1, Column: format.Column{Name: fmt.Sprint(f.Name, path), Path: path, Parent: parent},
		first: first}
	below := func(k int) []int { return append(slices.Clone(path), k) }
	switch a := a.(type) {
	case *array.Struct:
		for k, child := range f.Type.(*arrow.StructType).Fields() { // structs themselves are never null here
			n.addLengths(i, below(k), child, a.Field(k), parent, first)
		}
		return
	case array.ListLike:
		c.Has, c.Type = format.Lengths, arrow.PrimitiveTypes.Int32
		var parts []arrow.Array
		starts := []int64{0}
		for e := range a.Len() {
			if a.IsNull(e) {
				c.values = append(c.values, nil)
				starts = append(starts, starts[e])
				continue
			}
			from, to := a.ValueOffsets(e)
			c.values = append(c.values, to-from)
			starts = append(starts, starts[e]+to-from)
			parts = append(parts, array.NewSlice(a.ListValues(), from, to))
		}
		parts = append(parts, array.NewSlice(a.ListValues(), 0, 0))
		items, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			panic(err)
		}
		mine := len(n.columns)
		n.columns = append(n.columns, c)
		var childFirst []int64
		for _, e := range first {
			childFirst = append(childFirst, starts[e])
		}
		elem := f.Type.(arrow.NestedType).Fields()[0]
		n.addLengths(i, below(0), elem, items, mine, childFirst)
		return
	}
	c.Has, c.Type = format.Values, f.Type
	for e := range a.Len() {
		c.values = append(c.values, plainValue(a, e))
	}
	n.columns = append(n.columns, c)
}

// cut divides the entries into pages: anywhere in a column with repetition levels, between rows in others.
func (c *nestedColumn) cut(t *rapid.T) {
	at := 0
	for at < len(c.values) {
		c.cuts = append(c.cuts, at)
		at += rapid.IntRange(1, 20).Draw(t, "page")
		if c.aligned() {
			k, found := slices.BinarySearch(c.first, int64(at))
			if !found && k < len(c.first) {
				at = int(c.first[k])
			}
		}
	}
	if len(c.cuts) == 0 && len(c.first) > 1 {
		c.cuts = []int{0}
	}
	c.indexed = rapid.Bool().Draw(t, "indexed")
}

func (n *nested) source() (scan.Source, *store.Counter) {
	m := store.NewMemory(nil)
	for _, c := range n.columns {
		m.Put(c.Name, make([]byte, len(c.cuts)))
	}
	tree := store.NewCounter(m)
	return scan.Source{Reader: n, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}, tree
}

// show returns the rows of a batch, each as JSON values.
func show(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for _, c := range b.Columns() {
		for i := range out {
			text, _ := json.Marshal(c.GetOneForMarshal(i))
			out[i] += string(text) + "|"
		}
	}
	return out
}

// TestNestedAgainstPlainReading: a scan of nested columns with any options returns the same rows as plain reading.
func TestNestedAgainstPlainReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rec := drawNested(t)
		spec := scan.Spec{Batch: rapid.SampledFrom([]int{1, 5, 17, 1000}).Draw(t, "batch"),
			Ahead:    rapid.SampledFrom([]int64{0, -1}).Draw(t, "ahead"),
			Parallel: rapid.SampledFrom([]int{0, 3}).Draw(t, "parallel")}
		want := show(rec)
		if rapid.Bool().Draw(t, "project") {
			spec.Columns = rapid.SampledFrom([][]string{{"a"}, {"l"}, {"s.x"}, {"s.y", "a"}, {"m", "s.z", "s"},
				{"s.z", "s.x"}, {"n"}, {"n", "s.x"}, {}}).Draw(t, "columns")
			want = make([]string, n.rows)
			for _, name := range spec.Columns {
				col := rec.Column(nestedSchema.FieldIndices(strings.Split(name, ".")[0])[0])
				if _, sub, ok := strings.Cut(name, "."); ok {
					k, _ := col.DataType().(*arrow.StructType).FieldIdx(sub)
					col = col.(*array.Struct).Field(k)
				}
				for i := range want {
					text, _ := json.Marshal(col.GetOneForMarshal(i))
					want[i] += string(text) + "|"
				}
			}
		}
		from, to := 0, n.rows
		if rapid.Bool().Draw(t, "some rows") {
			spec.Rows.From = rapid.Int64Range(0, 60).Draw(t, "from")
			spec.Rows.To = spec.Rows.From + rapid.Int64Range(1, 40).Draw(t, "len")
			from, to = min(int(spec.Rows.From), to), min(int(spec.Rows.To), to)
		}
		keep := func(int) bool { return true }
		x := rec.Column(2).(*array.Struct).Field(0).(*array.Int64)
		switch rapid.IntRange(0, 2).Draw(t, "filter") {
		case 1:
			spec.Filter, _ = pred.Parse("s.x < 20")
			keep = func(i int) bool { return x.IsValid(i) && x.Value(i) < 20 }
		case 2:
			spec.Filter, _ = pred.Parse("a > 30 or a = 7")
			keep = func(i int) bool { return i > 30 || i == 7 }
		}
		var left []string
		for i := from; i < to; i++ {
			if keep(i) {
				left = append(left, want[i])
			}
		}
		src, _ := n.source()
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		spec.Alloc = dirty{mem}
		var got []string
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if int(b.NumRows()) > spec.Batch {
				t.Fatalf("got a batch of %d rows, want at most %d", b.NumRows(), spec.Batch)
			}
			if spec.Columns == nil || len(spec.Columns) > 0 {
				got = append(got, show(b)...)
			} else {
				got = append(got, make([]string, b.NumRows())...)
			}
		}
		if !slices.Equal(got, left) {
			t.Fatalf("got  %q\nwant %q", got, left)
		}
		mem.AssertSize(failer{t}, 0)
	})
}

// dirty allocates memory that is not zeroed, as a pool does.
type dirty struct{ memory.Allocator }

func (d dirty) Allocate(n int) []byte {
	b := d.Allocator.Allocate(n)
	for i := range b {
		b[i] = 0xA5
	}
	return b
}

func (d dirty) Reallocate(n int, b []byte) []byte {
	was := len(b)
	b = d.Allocator.Reallocate(n, b)
	for i := was; i < n; i++ {
		b[i] = 0xA5
	}
	return b
}

// TestNestedDamage: a page that cannot be decoded costs rows of its field only; the rows returned are correct, and all
// others are reported as lost.
func TestNestedDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rec := drawNested(t)
		n.hide = false
		var bad []int
		for i, c := range n.columns {
			if len(c.cuts) > 0 && c.Path[0] > 0 {
				bad = append(bad, i)
			}
		}
		if len(bad) == 0 {
			return
		}
		c := &n.columns[rapid.SampledFrom(bad).Draw(t, "bad column")]
		c.bad = rapid.IntRange(0, len(c.cuts)-1).Draw(t, "bad page")
		src, _ := n.source()
		spec := scan.Spec{Alloc: dirty{memory.DefaultAllocator},
			Batch:    rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "batch"),
			Parallel: rapid.SampledFrom([]int{0, 3}).Draw(t, "parallel")}
		var failed error
		for _, err := range scan.Run(context.Background(), src, spec, nil) {
			failed = err
		}
		if failed == nil || !strings.Contains(failed.Error(), "bad page") {
			t.Fatalf("got error %v, want bad page", failed)
		}
		lost := make([]bool, n.rows)
		spec.Lost = func(l region.Loss) {
			for i := l.Rows[0]; i < l.Rows[1] && int(i) < n.rows; i++ {
				lost[i] = true
			}
		}
		spec.Damaged = scan.NullCells
		row := 0
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(b.NumRows()) {
				for k, col := range b.Columns() {
					x, _ := json.Marshal(col.GetOneForMarshal(i))
					y, _ := json.Marshal(rec.Column(k).GetOneForMarshal(row))
					if k == c.Path[0] && lost[row] {
						y = []byte("null")
					}
					if string(x) != string(y) {
						t.Fatalf("row %d, column %d: got %s, want %s (lost: %v)", row, k, x, y, lost[row])
					}
				}
				row++
			}
		}
		if c.Has&format.Levels != 0 { // the page's rows, and the row before, which may end in it
			from, to := c.rowAt(c.cuts[c.bad]), int64(n.rows)
			if c.bad+1 < len(c.cuts) {
				to = c.rowAt(c.cuts[c.bad+1])
			}
			for i, l := range lost {
				if l && (int64(i) < from-1 || int64(i) >= to) {
					t.Fatalf("row %d is lost, want at most those of the bad page, %d to %d of %d", i, from, to, n.rows)
				}
			}
		}
		if row != n.rows || !slices.Contains(lost, true) {
			t.Fatalf("got %d of %d rows, lost: %v", row, n.rows, lost)
		}
		spec.Damaged, spec.Lost = scan.SkipRows, nil
		got := 0
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			a := b.Column(0).(*array.Int64)
			for i := range a.Len() {
				if lost[a.Value(i)] {
					t.Fatalf("row %d is reported as lost and returned", a.Value(i))
				}
			}
			got += a.Len()
		}
		for _, l := range lost {
			if !l {
				got--
			}
		}
		if got != 0 {
			t.Fatalf("got %d more rows than expected", got)
		}
	})
}

// TestPagesOfNestedColumns: Pages yields every page of every column once, even if the number of entries is that of the
// parent.
func TestPagesOfNestedColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, _ := drawNested(t)
		src, _ := n.source()
		groups, _ := n.RowGroups(context.Background(), format.Part{}, format.Query{})
		for i, c := range n.columns {
			pages, entries := 0, 0
			err := scan.Pages(context.Background(), src, groups[0], i, func(p scan.PageInfo) error {
				pages++
				entries += p.Vector.Len()
				return nil
			}, func(l region.Loss) error { return l.Err })
			if err != nil {
				t.Fatal(err)
			}
			if pages != len(c.cuts) || entries != len(c.values) {
				t.Fatalf("column %s: got %d pages with %d entries, want %d with %d", c.Name, pages, entries,
					len(c.cuts), len(c.values))
			}
		}
	})
}
