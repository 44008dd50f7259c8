package carbon

import (
	"bytes"
	"context"
	"encoding/binary"
	"sort"

	"stoa/pred"
	"stoa/vec"
)

// A dimension's page with an inverted index keeps its values sorted, and beside each the row that it belongs to. What a filter wants lies
// in runs of it, which are found by binary search; the rows of these runs may pass, no other row does. Nothing is believed of a page whose
// values are not in order (Carbon keeps no checksums): then every value is compared.
//
// Numbers and dates are not searched: they are decoded at once, and comparing them takes less time than looking whether they are sorted.

// The means by which a page's rows were found, as `stoa explain --analyze` tells them.
const (
	byInverted = "inverted index"
	byCodeSort = "order of the dictionary"
)

// mostSought is for how many values a page is searched one by one; for more, all are compared.
const mostSought = 64

// siftTexts finds the rows that can pass the filter. starts is where each row's value begins and ends in raw.
func (c *content) siftTexts(starts []uint32) {
	if c.t.Filter == nil || len(c.rowids) != c.n || c.n == 0 {
		return
	}
	value := func(i int) []byte { r := c.rowids[i]; return c.raw[starts[2*r]:starts[2*r+1]] }
	for i := 1; i < c.n; i++ {
		if bytes.Compare(value(i-1), value(i)) > 0 {
			return
		}
	}
	from := func(v string, above bool) int { // the first place whose value is at least v, or greater
		return sort.Search(c.n, func(i int) bool {
			order := bytes.Compare(value(i), []byte(v))
			return order > 0 || order == 0 && !above
		})
	}
	path := c.t.Filter.Columns()[0]
	if vs, ok := c.t.Filter.Equals(path); ok && len(vs) <= mostSought {
		c.pass(func(run func(i, j int)) {
			for _, v := range vs {
				run(from(v.Text, false), from(v.Text, true))
			}
		})
		return
	}
	low, high, lowIn, highIn := c.t.Filter.KeyRange(path)
	if low == nil && high == nil {
		return
	}
	c.pass(func(run func(i, j int)) {
		i, j := 0, c.n
		if low != nil {
			i = from(low.Text, !lowIn)
		}
		if high != nil {
			j = from(high.Text, highIn)
		}
		run(i, j)
	})
}

// siftCodes finds the rows whose codes stand for values that pass the filter. raw is sorted: w bytes each, big-endian.
func (c *content) siftCodes(w int) {
	hits := c.t.Hits
	if c.t.Filter == nil || hits == nil || hits.Count > mostSought || len(c.rowids) != c.n || w < 1 || w > 4 || len(c.raw) != c.n*w {
		return
	}
	code := func(i int) (v uint32) {
		for _, x := range c.raw[i*w : i*w+w] {
			v = v<<8 | uint32(x)
		}
		return v
	}
	for i, last := 0, uint32(0); i < c.n; i++ {
		v := code(i)
		if v < last || v >= uint32(hits.N) {
			return
		}
		last = v
	}
	c.pass(func(run func(i, j int)) {
		for v := range hits.N {
			if hits.Has(v) {
				run(sort.Search(c.n, func(i int) bool { return code(i) >= uint32(v) }), sort.Search(c.n, func(i int) bool { return code(i) > uint32(v) }))
			}
		}
	})
}

// pass tells the task the rows of the runs that each gives, from one place of the sorted values to another.
func (c *content) pass(each func(run func(i, j int))) {
	out := make([]byte, (c.n+7)/8)
	each(func(i, j int) {
		for ; i < j; i++ {
			r := c.rowids[i]
			out[r>>3] |= 1 << (r & 7)
		}
	})
	c.t.Passed, c.t.By = vec.NewSel(out, c.n), byInverted
	c.t.Want = c.t.Want.And(c.t.Passed)
}

// ask says whether a test can be true of a value whose code is from lo to hi: the order of the values, which the sort index keeps,
// makes a range of values one of ranks. It is exact where the bounds of the values are not: codes are given out as values come.
func (g *globalDictionary) ask(ctx context.Context, test *pred.Expr, lo, hi uint32) pred.Verdict {
	o, err := g.ordered(ctx)
	if err != nil || hi >= uint32(len(o.values)) || g.col.typ == typeFloat || g.col.typ == typeDouble {
		return pred.Some
	}
	var ranges [][2]int
	if vs, ok := test.Equals(test.Column); ok {
		for i := range vs {
			ranges = append(ranges, [2]int{o.place(g.col, &vs[i], false), o.place(g.col, &vs[i], true)})
		}
	} else if low, high, lowIn, highIn := test.KeyRange(test.Column); low != nil || high != nil {
		r := [2]int{0, len(o.codes)}
		if low != nil {
			r[0] = o.place(g.col, low, !lowIn)
		}
		if high != nil {
			r[1] = o.place(g.col, high, highIn)
		}
		ranges = append(ranges, r)
	} else {
		return pred.Some
	}
	for _, r := range ranges {
		if r[0] < 0 || r[1] < 0 || o.meets(r[0], r[1], lo, hi) {
			return pred.Some
		}
	}
	return pred.None
}

// pageBounds are those of a page of codes. The dictionary is put in order only if a filter asks.
func (g *globalDictionary) pageBounds(ctx context.Context, m *minMax) *pred.Bounds {
	lo, hi, ok := m.at(0)
	if !ok {
		return nil
	}
	a, z, ok := codeRange(lo, hi)
	if !ok {
		return nil
	}
	b := &pred.Bounds{Nulls: -1, Rows: -1, By: byCodeSort, Ask: func(test *pred.Expr) pred.Verdict { return g.ask(ctx, test, a, z) }}
	if a > nullCode {
		b.Nulls = 0
	}
	return b
}

// known reports whether all codes of a page are certain to stand for a value of the dictionary: where it is cut or damaged, the page must
// be read to tell.
func (c *chunk) known(p *storedPage) bool {
	if c.global == nil || p.minMax == nil {
		return false
	}
	_, hi, ok := p.minMax.at(0)
	if !ok {
		return false
	}
	code, ok := codeOf(hi)
	return ok && int64(code) < c.global.sure.Load()
}

// place is the first rank whose value is at least v, or greater; -1 if they cannot be compared.
func (o *dictOrder) place(col *column, v *pred.Value, above bool) int {
	t, err := col.arrow()
	if err != nil {
		return -1
	}
	comparable := true
	r := sort.Search(len(o.codes), func(r int) bool {
		b := o.values[o.codes[r]].bounds(t)
		if b.Min == nil {
			comparable = false
			return true
		}
		order, ok := pred.Compare(*b.Min, *v)
		comparable = comparable && ok
		return order > 0 || order == 0 && !above
	})
	if !comparable {
		return -1
	}
	return r
}

// meets reports whether a code from lo to hi has a rank from low up to high, which is not in it, or is a value that is none of the type.
func (o *dictOrder) meets(low, high int, lo, hi uint32) bool {
	for c := lo; c <= hi; c++ {
		if r := int(o.ranks[c]); r < 0 && c != nullCode || r >= low && r < high {
			return true
		}
	}
	return false
}

// codeRange reads the bounds of codes.
func codeRange(lo, hi []byte) (a, b uint32, ok bool) {
	a, ok1 := codeOf(lo)
	b, ok2 := codeOf(hi)
	return a, b, ok1 && ok2 && a <= b && a > 0
}

// codeOf is a code as an index has it.
func codeOf(b []byte) (uint32, bool) {
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	var four [4]byte
	copy(four[4-len(b):], b)
	return binary.BigEndian.Uint32(four[:]), true
}
