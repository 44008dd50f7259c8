package pred

import "slices"

// KeyRange returns a range of column path outside of which e is certainly not TRUE, derived from the terms of its
// outermost and: for seeking in an index. A nil limit means unlimited. lowIncl and highIncl say whether low and high
// belong to the range. If the range is empty, high is less than low, or they are equal and not both included; if it is
// empty without any value being known, both are null. As soon as there is a limit, rows in which the column is null are
// outside. If e is bound, the limits are values of the column's type.
func (e *Expr) KeyRange(path string) (low, high *Value, lowIncl, highIncl bool) {
	r := &keyRange{}
	for _, c := range e.Conjuncts() {
		if c.Column == path && c.check(0) == nil {
			r.narrow(c)
		}
	}
	return r.low, r.high, r.lowIncl, r.highIncl
}

// keyRange is a range that narrow shrinks.
type keyRange struct {
	low, high         *Value
	lowIncl, highIncl bool
	empty             bool
}

// narrow intersects the range with the test e.
func (r *keyRange) narrow(e *Expr) {
	vs := slices.DeleteFunc(slices.Clone(e.Values), func(v Value) bool { return v.Kind == KindNull })
	if len(vs) < len(e.Values) && e.Op != OpIn {
		return
	}
	switch e.Op {
	case OpEq:
		r.above(vs[0], true)
		r.below(vs[0], true)
	case OpLt, OpLe:
		r.below(vs[0], e.Op == OpLe)
	case OpGt, OpGe:
		r.above(vs[0], e.Op == OpGe)
	case OpBetween:
		r.above(vs[0], true)
		r.below(vs[1], true)
	case OpLike:
		r.pattern(e)
	case OpIn:
		if len(vs) == 0 {
			r.none()
			return
		}
		order := func(a, b Value) int { c, _ := Compare(a, b); return c }
		r.above(slices.MinFunc(vs, order), true)
		r.below(slices.MaxFunc(vs, order), true)
	}
}

// none makes the range empty.
func (r *keyRange) none() {
	*r = keyRange{low: &Value{}, high: &Value{}, empty: true}
}

// above sets the lower limit, unless the present one is stronger.
func (r *keyRange) above(v Value, incl bool) {
	if r.empty {
		return
	}
	if r.low != nil {
		if c, ok := Compare(v, *r.low); !ok || c < 0 || c == 0 && incl {
			return
		}
	}
	r.low, r.lowIncl = &v, incl
}

// below sets the upper limit, unless the present one is stronger.
func (r *keyRange) below(v Value, incl bool) {
	if r.empty {
		return
	}
	if r.high != nil {
		if c, ok := Compare(v, *r.high); !ok || c > 0 || c == 0 && incl {
			return
		}
	}
	r.high, r.highIncl = &v, incl
}

// pattern intersects the range with the text before the pattern's first wildcard.
func (r *keyRange) pattern(e *Expr) {
	p, err := parsePattern(e.Values[0], e.Escape, true)
	if err != nil {
		return
	}
	text := func(s string) Value { return domain{means: meansString}.text(s) }
	if p.shape == exact {
		r.above(text(p.text), true)
		r.below(text(p.text), true)
		return
	}
	if len(p.steps) == 0 || p.steps[0].kind != stepText {
		return
	}
	from := p.steps[0].text
	r.above(text(from), true)
	if to, open := successor(from); !open {
		r.below(text(to), false)
	}
}

// Equals returns values such that e is certainly not TRUE unless the column at path equals one of them, derived from
// the terms of the outermost and: for Bloom filters and hash indexes. It returns false if there is no such list; an
// empty list means that e is never TRUE. Note that floats that are equal may differ in their bits: -0.0 and 0.0, and
// all NaN.
func (e *Expr) Equals(path string) ([]Value, bool) {
	var out []Value
	found := false
	for _, c := range e.Conjuncts() {
		if c.Column != path || c.Op != OpEq && c.Op != OpIn {
			continue
		}
		var vs []Value
		for _, v := range c.Values {
			if v.Kind != KindNull && (!found ||
				slices.ContainsFunc(out, func(o Value) bool { n, ok := Compare(v, o); return ok && n == 0 })) {
				vs = append(vs, v)
			}
		}
		out, found = vs, true
	}
	return out, found
}
