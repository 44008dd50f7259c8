package pred

// prune returns the verdict about an expr: None if a column is null in all rows and makes it null, and what the
// bounds of two columns tell about their comparison. Otherwise nothing is known.
func (t *test) prune(bounds func(path string) *Bounds) Verdict {
	if t == nil {
		return Some
	}
	for _, path := range t.columns {
		b := bounds(path)
		if b != nil && (b.Rows == 0 || b.Rows > 0 && b.Nulls == b.Rows && t.node.Strict) {
			return None
		}
	}
	if t.left == nil {
		return Some
	}
	a, b := bounds(t.left.Column), bounds(t.right.Column)
	if a == nil || b == nil {
		return Some
	}
	below, above, ok := apart(domainOf(t.left.Type), domainOf(t.right.Type), a, b)
	if !ok {
		return Some
	}
	v := Some
	switch t.op {
	case OpLt, OpLe:
		v = pick(below, above)
	case OpGt, OpGe:
		v = pick(above, below)
	case OpEq:
		v = pick(false, below || above)
	case OpNe:
		v = pick(below || above, false)
	}
	if v == All && (a.Nulls != 0 || b.Nulls != 0) {
		return Some
	}
	return v
}

func pick(all, none bool) Verdict {
	switch {
	case all && none:
		return Some // the bounds contradict each other
	case all:
		return All
	case none:
		return None
	}
	return Some
}

// apart reports whether all values within the bounds a are less than all those within b, or greater.
func apart(d, e domain, a, b *Bounds) (below, above, ok bool) {
	if d.class == classBytes && e.class == classBytes {
		la, ha, openA, ok1 := a.texts()
		lb, hb, openB, ok2 := b.texts()
		return !openA && ha <= lb, !openB && hb <= la, ok1 && ok2
	}
	// Decimals are compared with floats after rounding, which may make them equal.
	decimal := func(d domain) bool {
		return d.class == classWide || d.scale != 0 || d.class == classUint && d.bits == 64
	}
	if d.class == classFloat && decimal(e) || e.class == classFloat && decimal(d) {
		return false, false, false
	}
	la, ha, ok1 := d.limits(a)
	lb, hb, ok2 := e.limits(b)
	less := func(x, y *Value) bool {
		if x == nil || y == nil {
			return false
		}
		c, ok := Compare(*x, *y)
		return ok && c < 0
	}
	return less(ha, lb), less(hb, la), ok1 && ok2
}

// limits returns the smallest and the largest value that there may be, nil if it is not known; false if the bounds
// cannot be trusted.
func (d domain) limits(b *Bounds) (low, high *Value, ok bool) {
	if d.class <= classNull || d.class == classBytes || b.MinCut || b.MaxCut {
		return nil, nil, false
	}
	lo, ok1 := d.bound(b.Min, d.min)
	hi, ok2 := d.bound(b.Max, d.max)
	if !ok1 || !ok2 || lo.cmp(hi) > 0 {
		return nil, nil, false
	}
	if d.class == classFloat && !b.NoNaN {
		hi = d.max
	}
	if v, ok := d.value(lo); ok {
		low = &v
	}
	if v, ok := d.value(hi); ok {
		high = &v
	}
	return low, high, true
}

// texts returns limits of strings or binary: from low up to high, excluding high, or without end; false if the bounds
// cannot be trusted.
func (b *Bounds) texts() (low, high string, open, ok bool) {
	open = true
	for _, v := range []*Value{b.Min, b.Max} {
		if v != nil && v.Kind != KindNull && !v.isText() {
			return "", "", true, false
		}
	}
	if b.Min != nil {
		low = b.Min.Text
	}
	if b.Max != nil && b.Max.Kind != KindNull {
		high, open = b.Max.Text+"\x00", false
		if b.MaxCut {
			high, open = successor(b.Max.Text)
		}
	}
	return low, high, open, open || high > low
}
