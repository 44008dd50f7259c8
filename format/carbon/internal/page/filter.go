package page

import (
	"bytes"
	"sort"

	"stoa/format/carbon/internal/dict"
	"stoa/vec"
)

// A page of a dimension with an inverted index has its values sorted, each with its row. The values that pass a filter
// are runs, which are found by binary search; no row outside of these runs passes. If the values are not in order the
// page is damaged (CarbonData has no checksums), the index is not used, and every value is compared.
//
// Numbers and dates are not searched: comparing each of them takes less time than checking that they are sorted.

// maxSought is the largest number of values of a filter that are searched for one by one. With more, every value of the
// page is compared instead.
const maxSought = 64

// filterTexts sets the rows that can pass the filter. starts are the start and end of each row's value in Raw.
func (c *Content) filterTexts(starts []uint32) {
	if c.T.Filter == nil || len(c.rowids) != c.N || c.N == 0 {
		return
	}
	value := func(i int) []byte { r := c.rowids[i]; return c.Raw[starts[2*r]:starts[2*r+1]] }
	for i := 1; i < c.N; i++ {
		if bytes.Compare(value(i-1), value(i)) > 0 {
			return
		}
	}
	from := func(v string, above bool) int { // first position whose value is at least v (above: greater than v)
		return sort.Search(c.N, func(i int) bool {
			order := bytes.Compare(value(i), []byte(v))
			return order > 0 || order == 0 && !above
		})
	}
	path := c.T.Filter.Columns()[0]
	if vs, ok := c.T.Filter.Equals(path); ok && len(vs) <= maxSought {
		c.pass(func(run func(i, j int)) {
			for _, v := range vs {
				run(from(v.Text, false), from(v.Text, true))
			}
		})
		return
	}
	low, high, lowIn, highIn := c.T.Filter.KeyRange(path)
	if low == nil && high == nil {
		return
	}
	c.pass(func(run func(i, j int)) {
		i, j := 0, c.N
		if low != nil {
			i = from(low.Text, !lowIn)
		}
		if high != nil {
			j = from(high.Text, highIn)
		}
		run(i, j)
	})
}

// filterCodes sets the rows whose codes have values that pass the filter. Codes have w bytes, big-endian.
func (c *Content) filterCodes(w int) {
	hits := c.T.Hits
	if c.T.Filter == nil || hits == nil || hits.Count > maxSought || len(c.rowids) != c.N || w < 1 || w > 4 ||
		len(c.Raw) != c.N*w {
		return
	}
	code := func(i int) (v uint32) {
		for _, x := range c.Raw[i*w : i*w+w] {
			v = v<<8 | uint32(x)
		}
		return v
	}
	for i, last := 0, uint32(0); i < c.N; i++ {
		v := code(i)
		if v < last || v >= uint32(hits.N) {
			return
		}
		last = v
	}
	c.pass(func(run func(i, j int)) {
		for v := range hits.N {
			if hits.Has(v) {
				run(sort.Search(c.N, func(i int) bool { return code(i) >= uint32(v) }),
					sort.Search(c.N, func(i int) bool { return code(i) > uint32(v) }))
			}
		}
	})
}

// pass sets the rows that may pass in the task. each calls run with ranges [i, j) of the sorted values.
func (c *Content) pass(each func(run func(i, j int))) {
	out := make([]byte, (c.N+7)/8)
	each(func(i, j int) {
		for ; i < j; i++ {
			r := c.rowids[i]
			out[r>>3] |= 1 << (r & 7)
		}
	})
	c.T.Passed, c.T.By = vec.NewSel(out, c.N), dict.ByInverted
	c.T.Want = c.T.Want.And(c.T.Passed)
}
