package pred

import (
	"strings"

	"stoa/fault"
	"stoa/internal/civil"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
)

// expr binds an expr, or its negation. What is equivalent to tests of a column with literals, as year(ts) = 2026 is to
// a range of ts, becomes these tests, which formats can make use of.
func (b *binder) expr(e *Expr, not bool) (*Expr, error) {
	t := e.term
	for t.Op == "not" {
		t, not = t.Args[0], !not
	}
	n, err := b.build(t)
	if err != nil {
		return nil, err
	}
	if k := n.Type.Kind; k != scalar.Bool && k != scalar.Null || n.IsAny() {
		return nil, place(t, fault.Invalidf("expected a condition, which is true or false, found a value of type %s",
			n.Type))
	}
	if v, ok := literalOf(n); n.IsConst() && ok {
		op := Op(v.String())
		if not {
			op = ops[op].not
		}
		return &Expr{Op: op, bound: true}, nil
	}
	if !e.rest {
		if x := b.pushed(t, not); x != nil {
			return b.bind(x, not)
		}
	}
	out, err := b.bound(t, n, not)
	if err == nil {
		out.rest = e.rest
	}
	return out, err
}

// bound returns the bound expr for the condition t, whose node is n.
func (b *binder) bound(t *syntax.Term, n *scalar.Node, not bool) (*Expr, error) {
	t = b.named(t)
	x := &test{node: n, text: t.Text, columns: t.Columns(map[string]bool{}, nil)}
	op, isComparison := Op(t.Op), false
	if not {
		var err error
		if n, err = scalar.Not(n); err != nil {
			return nil, place(t, err)
		}
		x.node = n
		if _, isComparison = flip[op]; isComparison {
			op = ops[op].not
			t = t.With(string(op), t.Args)
		} else {
			t = t.With("not", []*syntax.Term{t})
		}
	} else {
		_, isComparison = flip[op]
	}
	if isComparison && t.Args[0].IsColumn() && t.Args[1].IsColumn() {
		left, err1 := b.resolve(t.Args[0].Column)
		right, err2 := b.resolve(t.Args[1].Column)
		if err1 == nil && err2 == nil {
			x.op, x.left, x.right = op, left, right
		}
	}
	x.nullTrue = n.TrueForNulls()
	out := exprOf(t)
	out.test, out.bound = x, true
	return out, nil
}

// named returns t with the names of the schema's fields.
func (b *binder) named(t *syntax.Term) *syntax.Term {
	out := *t
	if t.IsColumn() {
		if c, err := b.resolve(t.Column); err == nil {
			out.Column = c.Column
		}
	}
	out.Args = nil
	for _, a := range t.Args {
		out.Args = append(out.Args, b.named(a))
	}
	return &out
}

// pushed returns what is equivalent to t; nil if nothing simpler is. Its columns and literals have no places.
func (b *binder) pushed(t *syntax.Term, not bool) *Expr {
	op := Op(t.Op)
	switch {
	case t.Op == "starts_with" || t.Op == "prefix":
		return b.pushedText(t, "", "%")
	case t.Op == "ends_with" || t.Op == "suffix":
		return b.pushedText(t, "%", "")
	case t.Op == "contains":
		return b.pushedText(t, "%", "%")
	case t.Op == "~" && !not:
		return b.pushedRegexp(t)
	case op == OpIn && len(t.Args) <= 100 && len(t.Args) > 1:
		return b.pushedAll(t, OpOr, OpEq, OpIn)
	case op == OpBetween:
		return b.pushedAll(t, OpAnd, OpGe, OpBetween)
	}
	if _, ok := flip[op]; !ok {
		return nil
	}
	x, y := t.Args[0], t.Args[1]
	if v, ok := b.literal(x); ok {
		return b.pushedTest(y, flip[op], v, t)
	}
	if v, ok := b.literal(y); ok {
		return b.pushedTest(x, op, v, t)
	}
	return nil
}

// literal returns the value of a term without columns.
func (b *binder) literal(t *syntax.Term) (Value, bool) {
	n, err := b.build(t)
	if err != nil || !n.IsConst() {
		return Value{}, false
	}
	return literalOf(n)
}

// pushedAll returns in and between as tests with one literal each, or as one test if they are of a column.
func (b *binder) pushedAll(t *syntax.Term, join, first, whole Op) *Expr {
	var values []Value
	for _, a := range t.Args[1:] {
		v, ok := b.literal(a)
		if !ok {
			return nil
		}
		values = append(values, v)
	}
	x := t.Args[0]
	if x.IsColumn() {
		return b.column(t, x, whole, values...)
	}
	var all []*Expr
	for i, v := range values {
		op := first
		if i == 1 && join == OpAnd {
			op = OpLe
		}
		e := b.pushedTest(x, op, v, t)
		if e == nil {
			return nil
		}
		all = append(all, e)
	}
	if join == OpAnd {
		return And(all...)
	}
	return Or(all...)
}

// column returns the test of a column.
func (b *binder) column(t, column *syntax.Term, op Op, values ...Value) *Expr {
	e := Test(column.Column, op, values...)
	e.src = &source{text: t.Text, column: column.At, op: t.At}
	for range values {
		e.src.values = append(e.src.values, t.At)
	}
	return e
}

// pushedTest returns x op v.
func (b *binder) pushedTest(x *syntax.Term, op Op, v Value, t *syntax.Term) *Expr {
	if v.Kind == KindNull {
		return nil
	}
	if x.IsColumn() {
		return b.column(t, x, op, v)
	}
	unit, col := b.steps(x)
	if col == nil {
		return nil
	}
	if x.Op == "year" {
		const far = 100_000
		if v.Kind != KindInt || v.Int > far || v.Int < -far {
			return nil
		}
		v = Date(civil.Days(v.Int, 1, 1))
	}
	if v.Kind == KindString {
		var err error
		if v, err = (domain{means: meansInstant}).read(v); err != nil {
			return nil
		}
	}
	if !v.isInstant() {
		return nil
	}
	sec, nanos := v.seconds()
	const most = 1 << 45 // seconds: a million years
	if sec > most || sec < -most {
		return nil
	}
	// x is the largest begin of a unit that is not after the column: it is at least v if the column is at least the
	// first begin from v on, and greater than v if it is at least the first one after v.
	low, ok1 := scalar.From(unit, sec, int64(nanos), false)
	high, ok2 := scalar.From(unit, sec, int64(nanos), true)
	if !ok1 || !ok2 {
		return nil
	}
	from, to := Timestamp(low, 0), Timestamp(high, 0)
	switch op {
	case OpLt:
		return b.column(t, col, OpLt, from)
	case OpLe:
		return b.column(t, col, OpLt, to)
	case OpGt:
		return b.column(t, col, OpGe, to)
	case OpGe:
		return b.column(t, col, OpGe, from)
	}
	e := And(b.column(t, col, OpGe, from), b.column(t, col, OpLt, to))
	if op == OpNe {
		return Not(e)
	}
	return e
}

// steps returns the unit to which x rounds down a column of dates or timestamps, and the column; nil if x does not.
func (b *binder) steps(x *syntax.Term) (unit string, col *syntax.Term) {
	switch {
	case x.Op == "year":
		unit, col = "year", x.Args[0]
	case x.Op == "date" || x.Op == syntax.OpCast && strings.HasPrefix(x.Type.Name, "date") && x.Type.Name != "datetime":
		unit, col = "day", x.Args[0]
	case x.Op == "date_trunc" && x.Args[0].IsLiteral():
		unit, _ = scalar.UnitOf(valueOf(x.Args[0]).Text)
		col = x.Args[1]
	default:
		return "", nil
	}
	if !col.IsColumn() {
		return "", nil
	}
	c, err := b.resolve(col.Column)
	if err != nil {
		return "", nil
	}
	if d := domainOf(c.Type); d.means != meansDays && d.means != meansInstant {
		return "", nil
	}
	return unit, col
}

// pushedText returns a search for a text in a column as a pattern.
func (b *binder) pushedText(t *syntax.Term, before, after string) *Expr {
	if len(t.Args) != 2 || !t.Args[0].IsColumn() {
		return nil
	}
	v, ok := b.literal(t.Args[1])
	if !ok || v.Kind != KindString {
		return nil
	}
	return b.column(t, t.Args[0], OpLike, String(before+likeEscaper.Replace(v.Text)+after))
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// pushedRegexp adds the text that a regular expression requires at the beginning.
func (b *binder) pushedRegexp(t *syntax.Term) *Expr {
	v, ok := b.literal(t.Args[1])
	if !ok || v.Kind != KindString || !t.Args[0].IsColumn() || !strings.HasPrefix(v.Text, "^") {
		return nil
	}
	re, err := scalar.Regexp(v.Text[1:], false, false)
	if err != nil || strings.Contains(v.Text, "|") || strings.Contains(v.Text, "(?") {
		return nil // the ^ may be of one alternative alone
	}
	prefix, _ := re.LiteralPrefix()
	if prefix == "" || strings.ContainsRune(prefix, '\uFFFD') {
		return nil // a byte that is not UTF-8 matches U+FFFD
	}
	rest := exprOf(t)
	rest.rest = true
	return And(b.column(t, t.Args[0], OpLike, String(likeEscaper.Replace(prefix)+"%")), rest)
}
