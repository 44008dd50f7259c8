package scalar

import (
	"slices"

	"stoa/fault"
	"stoa/internal/sorted"
)

// needBool returns an error unless all nodes are boolean, or null.
func needBool(what string, nodes ...*Node) error {
	for _, n := range nodes {
		if n.Type.Kind != Bool && n.Type.Kind != Null || n.IsAny() {
			return fault.Invalidf("expected a condition for %s, not %s", what, n.Type)
		}
	}
	return nil
}

// truth returns value i of a boolean, and whether it is null.
func (v *vec) truth(i int) (value, null bool) {
	if v.bools == nil || v.isNull(i) {
		return false, true
	}
	return v.bools[i&v.mask], false
}

// Junction returns nodes joined by "and" or "or". Each is evaluated only for the rows that the earlier ones leave open.
func Junction(or bool, nodes ...*Node) (*Node, error) {
	if err := needBool("and and or", nodes...); err != nil {
		return nil, err
	}
	return node(Type{Kind: Bool}, nodes, func(r *run, live []bool) *vec {
		v := r.alloc(Type{Kind: Bool}, r.falses(r.n))
		open := r.boolPool.get(r.n)
		for i := range open {
			open[i] = live == nil || live[i]
			v.bools[i] = !or
		}
		for _, n := range nodes {
			x := n.eval(r, open)
			next := r.boolPool.get(r.n)
			copy(next, open)
			for i := range open {
				if !open[i] {
					continue
				}
				switch value, null := x.truth(i); {
				case null:
					v.null[i] = true
				case value == or:
					v.bools[i], v.null[i], next[i] = or, false, false
				}
			}
			open = next
		}
		return v
	}).loose(), nil
}

// Not returns not n.
func Not(n *Node) (*Node, error) {
	if err := needBool("not", n); err != nil {
		return nil, err
	}
	return node(Type{Kind: Bool}, []*Node{n}, func(r *run, live []bool) *vec {
		x := n.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(x))
		for i := range v.bools {
			value, _ := x.truth(i)
			v.bools[i] = !value
		}
		return v
	}), nil
}

// IsNullOf returns n is null.
func IsNullOf(n *Node) (*Node, error) {
	if n.IsAny() {
		return nil, fault.Invalidf("any and all of a list can only be compared")
	}
	return node(Type{Kind: Bool}, []*Node{n}, func(r *run, live []bool) *vec {
		x := n.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, nil)
		for i := range v.bools {
			v.bools[i] = x.isNull(i) || n.Type.Kind == Null
		}
		return v
	}).loose(), nil
}

// share returns a node for x that is evaluated once though it occurs several times in one node, which starts with
// forget. The first evaluation is for all the rows that the later ones are for.
func share(x *Node) *Node {
	if x.one != nil || x.name != "" {
		return x
	}
	p := node(x.Type, []*Node{x}, nil)
	p.eval = func(r *run, live []bool) *vec {
		v := r.shared[p]
		if v == nil {
			v = x.eval(r, live)
			if r.shared == nil {
				r.shared = map[*Node]*vec{}
			}
			r.shared[p] = v
		}
		return v
	}
	return p
}

// forget makes n forget the value of a shared node in it before it is evaluated.
func forget(n *Node, err error, shared *Node) (*Node, error) {
	if err != nil {
		return nil, err
	}
	eval := n.eval
	n.eval = func(r *run, live []bool) *vec {
		delete(r.shared, shared)
		return eval(r, live)
	}
	return n, nil
}

// common returns the type that all nodes can have, and the nodes converted to it.
func common(what string, nodes []*Node) (Type, []*Node, error) {
	var t Type
	for _, n := range nodes {
		if n.IsAny() {
			return t, nil, fault.Invalidf("any and all of a list can only be compared")
		}
		s, ok := wider(t, n.Type)
		if !ok {
			return t, nil, fault.Invalidf("the values of %s are of different types, %s and %s", what, t, n.Type)
		}
		t = s
	}
	if t.Kind == List {
		return t, nil, fault.Invalidf("%s is not for lists", what)
	}
	out := slices.Clone(nodes)
	for i, n := range out {
		if n.Type != t {
			out[i], _ = convert(n, t).Fold()
		}
	}
	return t, out, nil
}

// wider returns the type that holds the values of both.
func wider(s, t Type) (Type, bool) {
	switch {
	case s == t, t.Kind == Null:
		return s, true
	case s.Kind == Null:
		return t, true
	case s.isNumber() && t.isNumber():
		switch {
		case s.Kind == Float && t.Kind == Float:
			return Type{Kind: Float, Bits: max(s.Bits, t.Bits)}, true
		case s.Kind == Float:
			return s, true
		case t.Kind == Float:
			return t, true
		}
		return Type{Kind: Decimal, Scale: max(s.Scale, t.Scale)}, true
	case s.isDay() && t.isDay():
		return Type{Kind: Timestamp, Per: max(s.Per, t.Per, 1e6)}, true
	}
	return s, false
}

// Coalesce returns the first of nodes that is not null. Each is evaluated only where the earlier ones are null.
func Coalesce(nodes ...*Node) (*Node, error) {
	t, nodes, err := common("coalesce", nodes)
	if err != nil {
		return nil, err
	}
	return node(t, nodes, func(r *run, live []bool) *vec {
		v := r.alloc(t, r.boolPool.get(r.n))
		for i := range v.null {
			v.null[i] = true
		}
		for _, n := range nodes {
			open := r.boolPool.get(r.n)
			some := false
			for i := range open {
				open[i] = v.null[i] && (live == nil || live[i])
				some = some || open[i]
			}
			if !some {
				break
			}
			x := n.eval(r, open)
			for i := range open {
				if open[i] && !x.isNull(i) {
					v.copyFrom(i, x, i)
					v.null[i] = false
				}
			}
		}
		return v
	}).loose(), nil
}

// NullIf returns a, or null if a = b.
func NullIf(a, b *Node) (*Node, error) {
	if a.IsAny() || b.IsAny() {
		return nil, fault.Invalidf("any and all of a list can only be compared")
	}
	a = share(a)
	equal, err := Compare("=", a, b)
	if err != nil {
		return nil, err
	}
	n := node(a.Type, []*Node{a, equal}, func(r *run, live []bool) *vec {
		x, same := a.eval(r, live), equal.eval(r, live)
		v := r.alloc(a.Type, r.falses(r.n))
		for i := range v.null {
			if yes, _ := same.truth(i); yes || x.isNull(i) {
				v.null[i] = true
			} else {
				v.copyFrom(i, x, i)
			}
		}
		return v
	})
	return forget(n.loose(), nil, a)
}

// Case returns the value of the first condition that is TRUE, or otherwise, which may be nil: null. With subject not
// nil, conditions are values that it is compared with. A value is evaluated only where it is taken.
func Case(subject *Node, conditions, values []*Node, otherwise *Node) (*Node, error) {
	if otherwise == nil {
		otherwise = null
	}
	t, results, err := common("case", append(slices.Clone(values), otherwise))
	if err != nil {
		return nil, err
	}
	if subject == nil {
		if err := needBool("when", conditions...); err != nil {
			return nil, err
		}
	} else if subject, conditions, err = equals(subject, conditions); err != nil {
		return nil, err
	}
	n := node(t, append(slices.Clone(conditions), results...), func(r *run, live []bool) *vec {
		v := r.alloc(t, r.falses(r.n))
		open, take := r.boolPool.get(r.n), r.boolPool.get(r.n)
		for i := range open {
			open[i] = live == nil || live[i]
		}
		for k, value := range results {
			copy(take, open)
			if k < len(conditions) {
				x := conditions[k].eval(r, open)
				for i := range take {
					yes, _ := x.truth(i)
					take[i] = open[i] && yes
				}
			}
			if slices.Contains(take, true) {
				x := value.eval(r, slices.Clone(take))
				for i := range take {
					if take[i] {
						if v.null[i] = x.isNull(i); !v.null[i] {
							v.copyFrom(i, x, i)
						}
						open[i] = false
					}
				}
			}
		}
		return v
	}).loose()
	return forget(n, nil, subject)
}

// equals returns whether x, which is shared, equals each of items.
func equals(x *Node, items []*Node) (*Node, []*Node, error) {
	if x.IsAny() {
		return nil, nil, fault.Invalidf("any and all of a list can only be compared")
	}
	x = share(x)
	var out []*Node
	for _, item := range items {
		e, err := Compare("=", x, item)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, e)
	}
	return x, out, nil
}

// Between returns low <= x and x <= high.
func Between(x, low, high *Node) (*Node, error) {
	if x.IsAny() || low.IsAny() || high.IsAny() {
		return nil, fault.Invalidf("any and all of a list can only be compared")
	}
	x = share(x)
	a, err := Compare(">=", x, low)
	if err != nil {
		return nil, err
	}
	b, err := Compare("<=", x, high)
	if err != nil {
		return nil, err
	}
	n, err := Junction(false, a, b)
	return forget(n, err, x)
}

// In returns x in items.
func In(x *Node, items []*Node) (*Node, error) {
	if x.IsAny() {
		return nil, fault.Invalidf("any and all of a list can only be compared")
	}
	if set, err := x.inSet(items); set != nil || err != nil {
		return set, err
	}
	x, equal, err := equals(x, items)
	if err != nil {
		return nil, err
	}
	n, err := Junction(true, equal...)
	return forget(n, err, x)
}

// inSet is In for many constants of x's own type, among which it searches; nil if they are others.
func (x *Node) inSet(items []*Node) (*Node, error) {
	if len(items) > 0 && len(items) < 4 || x.Type.Kind == List || x.Type.Kind == Null {
		return nil, nil
	}
	all := (&run{n: len(items)}).alloc(x.Type, nil)
	unknown := false
	var at []int
	for i, item := range items {
		switch {
		case item.IsNull():
			unknown = true
			continue
		case item.one == nil || item.Type != x.Type:
			return nil, nil
		}
		all.copyFrom(i, item.one, 0)
		at = append(at, i)
	}
	c := order(x.Type, x.Type, all, all)
	sorted.By(at, c)
	return node(Type{Kind: Bool}, []*Node{x}, func(r *run, live []bool) *vec {
		a := x.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(a))
		c := order(x.Type, x.Type, all, a)
		for i := range v.bools {
			v.bools[i] = false
			if !asked(live, v.null, i) {
				continue
			}
			_, v.bools[i] = slices.BinarySearchFunc(at, i, c)
			v.setNull(r, i, unknown && !v.bools[i])
		}
		return v
	}), nil
}
