package scan_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// sortedGroups is a part of several row groups, each sorted by some columns.
type sortedGroups struct {
	groups []*changed
	keys   []format.Key
	bounds bool // low and high keys are known (only for the one key d)
}

func (h *sortedGroups) first() *toy              { return h.groups[0].toy }
func (h *sortedGroups) Order() []format.Key      { return h.keys }
func (h *sortedGroups) Schema() *arrow.Schema    { return h.first().Schema() }
func (h *sortedGroups) Columns() []format.Column { return h.first().Columns() }
func (h *sortedGroups) Meta() []format.KeyValue  { return nil }
func (h *sortedGroups) Close() error             { return nil }
func (h *sortedGroups) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return h.first().Parts(ctx, q)
}

func (h *sortedGroups) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	var out []format.RowGroup
	for i, g := range h.groups {
		one, _ := g.RowGroups(ctx, p, q)
		one[0].Index = i
		if d := g.columns[3].vals; h.bounds && len(d) > 0 {
			one[0].Low, one[0].High = fmt.Appendf(nil, "%09d", d[0]), fmt.Appendf(nil, "%09d", d[len(d)-1])
		}
		out = append(out, one[0])
	}
	return out, nil
}

func (h *sortedGroups) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	return h.groups[g.Index].Chunk(ctx, g, col, rows)
}

func (h *sortedGroups) Overlay(_ context.Context, g format.RowGroup, _ []int) (format.Overlay, error) {
	c := *h.groups[g.Index] // an overlay of its own for each scan and group
	c.last = 0
	return &c, nil
}

// row is one row, a value for each column.
type row []int64

func (h *sortedGroups) compare(a, b row) int {
	for _, k := range h.keys {
		x, y := a[k.Column], b[k.Column]
		c := cmp.Compare(x, y)
		if k.Column == 1 && x != toyNull && y != toyNull {
			c = cmp.Compare(spell(x), spell(y))
		}
		if k.Descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func drawSortedGroups(t *rapid.T) *sortedGroups {
	h := &sortedGroups{keys: rapid.SampledFrom([][]format.Key{{{Column: 3}}, {{Column: 1}, {Column: 3}},
		{{Column: 1, Descending: true}, {Column: 3}},
		{{Column: 0}, {Column: 1}, {Column: 3, Descending: true}}}).Draw(t, "order")}
	n := rapid.IntRange(2, 6).Draw(t, "groups")
	spread := rapid.Bool().Draw(t, "apart") // the keys of groups hardly overlap
	seed := rapid.Uint64().Draw(t, "keys")
	for i := range n {
		g := drawToy(t)
		for k := range g.columns {
			g.columns[k].prefix = fmt.Sprint("g", i, "/")
		}
		var rows []row
		for r := range g.rows {
			one := row{}
			for c := range g.columns {
				one = append(one, g.columns[c].vals[r])
			}
			one[3] = int64(mix(seed+uint64(r))%1000)*int64(n) + int64(i) // unique to the group
			if spread {
				one[3] += int64(i) * 800 * int64(n)
			}
			rows = append(rows, one)
		}
		slices.SortStableFunc(rows, h.compare)
		for r, one := range rows {
			for c := range g.columns {
				g.columns[c].vals[r] = one[c]
			}
		}
		c := &changed{toy: g, deleted: map[int]bool{}, cells: []map[int]int64{{}, {}, {}, {}}}
		for r := range g.rows {
			if x := mix(seed ^ uint64(1000*i+r)); x%9 == 0 {
				c.deleted[r] = true
			} else if x%9 == 1 {
				c.cells[2][r] = int64(x>>9) % 70
				if c.cells[2][r] < 0 {
					c.cells[2][r] *= -1
				}
			}
		}
		h.groups = append(h.groups, c)
	}
	h.bounds = h.keys[0].Column == 3 && rapid.Bool().Draw(t, "bounds")
	return h
}

// rows is a table of all rows, sorted by the key, or group by group.
func (h *sortedGroups) rows(ordered bool) *toy {
	var all []row
	for _, g := range h.groups {
		for r := range g.rows {
			if g.deleted[r] {
				continue
			}
			one := row{}
			for c := range g.columns {
				v := g.columns[c].vals[r]
				if w, ok := g.cells[c][r]; ok {
					v = w
				}
				one = append(one, v)
			}
			all = append(all, one)
		}
	}
	if ordered {
		slices.SortStableFunc(all, h.compare)
	}
	out := &toy{rows: len(all)}
	for c := range h.first().columns {
		col := toyColumn{name: h.first().columns[c].name, typ: h.first().columns[c].typ}
		for _, one := range all {
			col.vals = append(col.vals, one[c])
		}
		out.columns = append(out.columns, col)
	}
	return out
}

// TestMergeAgainstSorting: a scan returns the rows of row groups whose keys overlap sorted by the key, whatever its
// other options.
func TestMergeAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawSortedGroups(t)
		spec, cols := drawSpec(t, h.first())
		spec.Unordered = rapid.Bool().Draw(t, "unordered")
		keep := func(int) bool { return true }
		after := h.rows(!spec.Unordered)
		if rapid.Bool().Draw(t, "filtered") {
			e, err := pred.Parse("a < 35 and b <> 'x1'")
			if err != nil {
				t.Fatal(err)
			}
			spec.Filter = e
			keep = func(r int) bool {
				a, b := after.columns[0].vals[r], after.columns[1].vals[r]
				return a != toyNull && a < 35 && b != toyNull && spell(b) != "x1"
			}
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		spec.Alloc = mem
		m := store.NewMemory(nil)
		for _, g := range h.groups {
			for i := range g.columns {
				m.Put(g.columns[i].object(), g.columns[i].bytes())
			}
		}
		src := scan.Source{Reader: h, Objects: scan.NewObjects(m), Dicts: scan.NewDicts(),
			Limits: format.Limits{}.WithDefaults()}
		var got []string
		batch := 0
		for b, err := range scan.Run(context.Background(), src, spec, nil) {
			if err != nil {
				t.Fatal(err)
			}
			batch = max(batch, int(b.NumRows()))
			got = append(got, lines(b)...)
		}
		if want := expect(after, spec, cols, keep); !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		if batch > spec.Batch {
			t.Fatalf("a batch of %d rows, want at most %d", batch, spec.Batch)
		}
		src.Dicts.Close()
		mem.AssertSize(failer{t}, 0)
	})
}

// TestPositionsOverLostCells: a filter passes the same rows whether positions are counted or not, in one piece or in
// several, also where cells of its columns are lost.
func TestPositionsOverLostCells(t *testing.T) {
	unknown := 0
	rapid.Check(t, func(t *rapid.T) {
		h := drawSortedGroups(t)
		m := store.NewMemory(nil)
		seed := rapid.Uint64().Draw(t, "bad")
		for i, g := range h.groups {
			for c := range g.columns {
				col := &g.columns[c]
				key := slices.ContainsFunc(h.keys, func(k format.Key) bool { return k.Column == c })
				if col.bad = map[int]bool{}; !key {
					for p := range 4 {
						col.bad[p] = mix(seed^uint64(100*i+10*c+p))%3 == 0
					}
				}
				m.Put(col.object(), col.bytes())
			}
		}
		filters := []string{"a is null", "c is null or a < 35", "b <> 'x1'"}
		filter := parse(t, rapid.SampledFrom(filters).Draw(t, "filter"))
		policy := rapid.SampledFrom([]scan.Damaged{scan.SkipRows, scan.NullCells}).Draw(t, "policy")
		read := func(rows vec.Range) (out []string) {
			src := scan.Source{Reader: h, Objects: scan.NewObjects(m), Dicts: scan.NewDicts(),
				Limits: format.Limits{}.WithDefaults()}
			defer src.Dicts.Close()
			spec := scan.Spec{Rows: rows, Filter: filter, Damaged: policy,
				Lost: func(region.Loss) { unknown++ }}
			for b, err := range scan.Run(context.Background(), src, spec, nil) {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, lines(b)...)
			}
			return out
		}
		want := read(vec.Range{})
		if got := read(vec.Range{To: 1 << 40}); !slices.Equal(got, want) {
			t.Fatalf("by position %q\nwithout %q", got, want)
		}
		step := rapid.Int64Range(1, 80).Draw(t, "step")
		var pieces []string
		for at := int64(0); at < int64(h.rows(true).rows); at += step {
			pieces = append(pieces, read(vec.Range{From: at, To: at + step})...)
		}
		if !slices.Equal(pieces, want) {
			t.Fatalf("in pieces of %d %q\nwhole %q", step, pieces, want)
		}
	})
	if unknown == 0 {
		t.Error("nothing was lost")
	}
}
