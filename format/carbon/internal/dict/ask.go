package dict

import (
	"context"
	"sort"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
)

// Names that `stoa explain --analyze` prints for the means by which pages or rows were excluded.
const (
	ByInverted = "inverted index"
	byCodeSort = "order of the dictionary"
)

// verdict evaluates a test for the values with the codes lo to hi. The sort index turns a range of values into a range
// of ranks, with which the rank of each code is compared. Bounds of the values would exclude less, because codes are in
// the order in which values were first seen.
func (g *GlobalDictionary) verdict(ctx context.Context, test *pred.Expr, lo, hi uint32) pred.Verdict {
	o, err := g.ordered(ctx)
	if err != nil || hi >= uint32(len(o.values)) || g.Col.Type == layout.TypeFloat || g.Col.Type == layout.TypeDouble {
		return pred.Some
	}
	var ranges [][2]int
	if vs, ok := test.Equals(test.Column); ok {
		for i := range vs {
			ranges = append(ranges, [2]int{o.rankOf(g.Col, &vs[i], false), o.rankOf(g.Col, &vs[i], true)})
		}
	} else if low, high, lowIn, highIn := test.KeyRange(test.Column); low != nil || high != nil {
		r := [2]int{0, len(o.codes)}
		if low != nil {
			r[0] = o.rankOf(g.Col, low, !lowIn)
		}
		if high != nil {
			r[1] = o.rankOf(g.Col, high, highIn)
		}
		ranges = append(ranges, r)
	} else {
		return pred.Some
	}
	for _, r := range ranges {
		if r[0] < 0 || r[1] < 0 || o.anyRankIn(r[0], r[1], lo, hi) {
			return pred.Some
		}
	}
	return pred.None
}

// PageBounds returns the bounds of a page of codes; nil if m has none. The dictionary is read and sorted when a filter
// first needs it.
func (g *GlobalDictionary) PageBounds(ctx context.Context, m *layout.MinMax) *pred.Bounds {
	lo, hi, ok := m.At(0)
	if !ok {
		return nil
	}
	a, z, ok := codeRange(lo, hi)
	if !ok {
		return nil
	}
	b := &pred.Bounds{Nulls: -1, Rows: -1, By: byCodeSort,
		Ask: func(test *pred.Expr) pred.Verdict { return g.verdict(ctx, test, a, z) }}
	if a > schema.NullCode {
		b.Nulls = 0
	}
	return b
}

// rankOf returns the first rank whose value is at least v (above: greater than v); -1 if they cannot be compared.
func (o *dictOrder) rankOf(col *schema.Column, v *pred.Value, above bool) int {
	t, err := col.Arrow()
	if err != nil {
		return -1
	}
	comparable := true
	r := sort.Search(len(o.codes), func(r int) bool {
		b := o.values[o.codes[r]].Bounds(t)
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

// anyRankIn reports whether a code in lo…hi has a rank in [low, high), or has a value that is not of the column's type.
func (o *dictOrder) anyRankIn(low, high int, lo, hi uint32) bool {
	for c := lo; c <= hi; c++ {
		if r := int(o.ranks[c]); r < 0 && c != schema.NullCode || r >= low && r < high {
			return true
		}
	}
	return false
}

// codeRange reads the bounds of codes; ok is false unless 0 < a ≤ b.
func codeRange(lo, hi []byte) (a, b uint32, ok bool) {
	a, ok1 := schema.ParseCode(lo)
	b, ok2 := schema.ParseCode(hi)
	return a, b, ok1 && ok2 && a <= b && a > 0
}
