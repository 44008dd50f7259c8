package pred

import "sort"

// Verdict is what bounds tell about the rows that they cover.
type Verdict uint8

// The verdicts.
const (
	Some Verdict = iota // not known; some rows may match, or none, or all
	None                // the predicate is TRUE for no row (also if there are no rows)
	All                 // the predicate is TRUE for every row
)

func (v Verdict) String() string {
	switch v {
	case None:
		return "none"
	case All:
		return "all"
	}
	return "some"
}

// Bounds is what is known about the values of a column in some rows. Null bounds, and nil ones, are unknown. Bounds are
// not trusted if one of them is NaN, if they are in the wrong order, or if they are not values of the column's type
// (or, if that is what the type stores, the same number in another kind).
//
// Min and Max need not be values that occur: no value is less than Min, and none is greater than Max, with two
// qualifications:
//
//   - MinCut: Min is a prefix of the smallest value. As a prefix is never greater, this changes nothing;
//   - MaxCut: Max is a prefix of the largest value: values that begin with Max may occur, but none greater than all of
//     these. (A bound that was cut and then incremented, so that it is above all values, does not count as cut.)
//
// Cut bounds are for strings and binary; on other types they are not trusted.
//
// Bounds of floats cover the values that are not NaN. Whatever the bounds, NaN may occur, too, unless NoNaN is set.
type Bounds struct {
	Min, Max       *Value
	MinCut, MaxCut bool
	Exact          bool  // Min and Max are values that occur, and not only limits
	NoNaN          bool  // no value is NaN; meaningless for types without NaN
	Nulls          int64 // nulls among the rows, including those of enclosing structs; -1: unknown
	Rows           int64 // -1: unknown

	// Ask, if not nil, may know more than the bounds: it is called first for each test of the column, a bound node. It
	// returns Some if it does not know.
	Ask func(test *Expr) Verdict
	By  string // the means that Ask uses, for people; "" = bounds
}

// Prune infers from the bounds of columns, by path (nil: nothing is known), what Eval would return for all of the rows.
// e must be bound; otherwise the verdict is Some.
func (e *Expr) Prune(bounds func(path string) *Bounds) Verdict {
	if e == nil || !e.bound {
		return Some
	}
	switch e.Op {
	case OpTrue:
		return All
	case OpFalse, OpUnknown:
		return None
	case OpAnd:
		return fold(e.Args, bounds, All, None)
	case OpOr:
		return fold(e.Args, bounds, None, All)
	case OpExpr:
		return e.test.prune(bounds)
	}
	if b := bounds(e.Column); b != nil && e.leaf != nil {
		if b.Ask != nil {
			if v := b.Ask(e); v != Some {
				return v
			}
		}
		return e.leaf.prune(b)
	}
	if e.leaf != nil && (e.leaf.kind == leafNever || e.leaf.empty && !e.leaf.neg) {
		return None
	}
	return Some
}

// fold returns unit if all args have that verdict, zero if one has that, and otherwise Some.
func fold(args []*Expr, bounds func(path string) *Bounds, unit, zero Verdict) Verdict {
	out := unit
	for _, a := range args {
		switch a.Prune(bounds) {
		case zero:
			return zero
		case Some:
			out = Some
		}
	}
	return out
}

// prune returns the verdict about one column.
func (l *leaf) prune(b *Bounds) Verdict {
	rows, nulls := b.Rows, b.Nulls
	switch {
	case rows == 0 || l.kind == leafNever:
		return None
	case rows < 0 && nulls > 0 || nulls < 0 || nulls > rows && rows > 0:
		nulls = -1
	}
	// From here on nulls is 0, or all rows, or means only that there may be both nulls and values.
	allNull := nulls > 0 && nulls == rows
	if l.kind == leafNull {
		return nullVerdict(nulls == 0, allNull, l.neg)
	}
	if allNull {
		return None
	}
	v := l.values(b)
	if v == All && nulls != 0 {
		return Some
	}
	return v
}

func nullVerdict(noNull, allNull, neg bool) Verdict {
	switch {
	case noNull != neg && (noNull || allNull):
		return None
	case noNull || allNull:
		return All
	}
	return Some
}

// values returns the verdict about the cells that are not null.
func (l *leaf) values(b *Bounds) Verdict {
	v := None
	switch {
	case l.empty:
	case l.dom.class == classBytes:
		v = l.pruneTexts(b)
	default:
		v = l.pruneNumbers(b)
	}
	if l.neg && v != Some {
		return None + All - v
	}
	return v
}

// pruneNumbers returns the verdict of the leaf, ignoring neg, about values of fixed width.
func (l *leaf) pruneNumbers(b *Bounds) Verdict {
	d := l.dom
	lo, ok1 := d.bound(b.Min, d.min)
	hi, ok2 := d.bound(b.Max, d.max)
	if !ok1 || !ok2 || b.MinCut {
		lo = d.min
	}
	if !ok1 || !ok2 || b.MaxCut {
		hi = d.max
	}
	if lo.cmp(hi) > 0 {
		return Some
	}
	v := l.pruneSpan(lo, hi)
	if d.class == classFloat && !b.NoNaN && hi != d.max && v != l.pruneSpan(d.max, d.max) {
		return Some
	}
	return v
}

// bound converts a bound to a num; an unknown one becomes missing. It returns false if the bound cannot be trusted, and
// then neither can the other one.
func (d domain) bound(v *Value, missing num) (num, bool) {
	if v == nil || v.Kind == KindNull || v.check() != nil {
		return missing, true
	}
	p, err := d.place(*v)
	if err != nil || !p.exact || p.side != 0 || d.class == classFloat && p.at == d.max {
		return missing, false
	}
	return p.at, true
}

// pruneSpan returns the verdict about values from lo to hi.
func (l *leaf) pruneSpan(lo, hi num) Verdict {
	if l.kind != leafSet {
		switch {
		case hi.cmp(l.lo) < 0 || lo.cmp(l.hi) > 0:
			return None
		case lo.cmp(l.lo) >= 0 && hi.cmp(l.hi) <= 0:
			return All
		}
		return Some
	}
	switch n := l.keysIn(lo, hi); {
	case n == 0:
		return None
	case hi.sub(lo) == num{3: uint64(n - 1)}:
		return All // every possible value is one of the keys
	}
	return Some
}

// pruneTexts returns the verdict of the leaf, ignoring neg, about strings and binary.
func (l *leaf) pruneTexts(b *Bounds) Verdict {
	lo, hi, open := "", "", true // values from lo up to hi, excluding hi
	for _, v := range []*Value{b.Min, b.Max} {
		if v != nil && v.Kind != KindNull && !v.isText() {
			return Some
		}
	}
	if b.Min != nil {
		lo = b.Min.Text
	}
	if b.Max != nil && b.Max.Kind != KindNull {
		hi, open = b.Max.Text+"\x00", false
		if b.MaxCut {
			hi, open = successor(b.Max.Text)
		}
	}
	if !open && hi <= lo {
		return Some
	}
	switch {
	case !open && hi <= l.from, !l.open && lo >= l.to:
		return None
	case l.kind == leafLike:
		return Some
	case l.kind == leafSet:
		return l.pruneTextSet(lo, hi, open)
	case lo >= l.from && (l.open || !open && hi <= l.to):
		return All
	}
	return Some
}

// pruneTextSet is pruneTexts for a list.
func (l *leaf) pruneTextSet(lo, hi string, open bool) Verdict {
	i := sort.SearchStrings(l.sorted, lo)
	switch {
	case i == len(l.sorted) || !open && l.sorted[i] >= hi:
		return None
	case l.sorted[i] == lo && !open && hi == lo+"\x00":
		return All
	}
	return Some
}
