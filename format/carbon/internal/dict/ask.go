package dict

import (
	"context"
	"sort"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
)

// The means by which a page's rows were found, as `stoa explain --analyze` says them.
const (
	ByInverted = "inverted index"
	byCodeSort = "order of the dictionary"
)

// ask says whether a test can be true of a value whose code is from lo to hi: the order of the values, which
// the sort index keeps, makes a range of values one of ranks. It is exact where the bounds of the values are
// not: codes are given out as values come.
func (g *GlobalDictionary) ask(ctx context.Context, test *pred.Expr, lo, hi uint32) pred.Verdict {
	o, err := g.ordered(ctx)
	if err != nil || hi >= uint32(len(o.values)) || g.Col.Typ == layout.TypeFloat || g.Col.Typ == layout.TypeDouble {
		return pred.Some
	}
	var ranges [][2]int
	if vs, ok := test.Equals(test.Column); ok {
		for i := range vs {
			ranges = append(ranges, [2]int{o.place(g.Col, &vs[i], false), o.place(g.Col, &vs[i], true)})
		}
	} else if low, high, lowIn, highIn := test.KeyRange(test.Column); low != nil || high != nil {
		r := [2]int{0, len(o.codes)}
		if low != nil {
			r[0] = o.place(g.Col, low, !lowIn)
		}
		if high != nil {
			r[1] = o.place(g.Col, high, highIn)
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

// PageBounds are those of a page of codes. The dictionary is put in order only if a filter asks.
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
		Ask: func(test *pred.Expr) pred.Verdict { return g.ask(ctx, test, a, z) }}
	if a > schema.NullCode {
		b.Nulls = 0
	}
	return b
}

// place is the first rank whose value is at least v, or greater; -1 if they cannot be compared.
func (o *dictOrder) place(col *schema.Column, v *pred.Value, above bool) int {
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

// meets reports whether a code from lo to hi has a rank from low up to high, which is not in it, or is a value
// that is none of the type.
func (o *dictOrder) meets(low, high int, lo, hi uint32) bool {
	for c := lo; c <= hi; c++ {
		if r := int(o.ranks[c]); r < 0 && c != schema.NullCode || r >= low && r < high {
			return true
		}
	}
	return false
}

// codeRange reads the bounds of codes.
func codeRange(lo, hi []byte) (a, b uint32, ok bool) {
	a, ok1 := schema.CodeOf(lo)
	b, ok2 := schema.CodeOf(hi)
	return a, b, ok1 && ok2 && a <= b && a > 0
}
