package pred

import (
	"errors"
	"strings"

	"stoa/fault"
	"stoa/internal/civil"
	"stoa/pred/internal/scalar"
)

func asFault(err error, f **fault.Error) bool { return errors.As(err, f) }

// expr binds an expr, or its negation. What is equivalent to tests of a column with literals, as year(ts) = 2026 is to
// a range of ts, becomes these tests, which formats can make use of.
func (b *binder) expr(e *Expr, not bool) (*Expr, error) {
	t := e.term
	if t == nil {
		x, err := Parse(e.Text)
		if err != nil {
			return nil, err
		}
		if x.Op != OpExpr {
			return b.bind(x, not)
		}
		t = x.term
	}
	for t.op == "not" {
		t, not = t.args[0], !not
	}
	n, err := b.build(t)
	if err != nil {
		return nil, err
	}
	if k := n.Type.Kind; k != scalar.Bool && k != scalar.Null || n.IsAny() {
		return nil, t.place(fault.Invalidf("expected a condition, which is true or false, found a value of type %s",
			n.Type))
	}
	if v, ok := literalOf(n); n.IsConst() && ok {
		op := Op(v.String())
		if not {
			op = ops[op].not
		}
		return &Expr{Op: op, bound: true}, nil
	}
	if x := b.pushed(t, not); x != nil {
		return b.bind(x, not)
	}
	return b.bound(t, n, not)
}

// bound returns the bound expr for the condition t, whose node is n.
func (b *binder) bound(t *term, n *scalar.Node, not bool) (*Expr, error) {
	t = b.named(t)
	x := &test{node: n, text: t.src.text, columns: t.columns(map[string]bool{}, nil)}
	op, isComparison := Op(t.op), false
	if not {
		var err error
		if n, err = scalar.Not(n); err != nil {
			return nil, t.place(err)
		}
		x.node = n
		if _, isComparison = flip[op]; isComparison {
			op = ops[op].not
			t = t.with(string(op), t.args)
		} else {
			t = t.with("not", []*term{t})
		}
	} else {
		_, isComparison = flip[op]
	}
	if isComparison && t.args[0].isColumn() && t.args[1].isColumn() {
		left, err1 := b.resolve(t.args[0].column)
		right, err2 := b.resolve(t.args[1].column)
		if err1 == nil && err2 == nil {
			x.op, x.left, x.right = op, left, right
		}
	}
	x.nullTrue = n.TrueForNulls()
	out := t.expr()
	out.test, out.bound = x, true
	return out, nil
}

// with returns a term at the place of t.
func (t *term) with(op string, args []*term) *term {
	out := newTerm(op, t.src.op, args...)
	out.src = t.src
	return out
}

// named returns t with the names of the schema's fields.
func (b *binder) named(t *term) *term {
	out := *t
	if t.isColumn() {
		if c, err := b.resolve(t.column); err == nil {
			out.column = c.Column
		}
	}
	out.args = nil
	for _, a := range t.args {
		out.args = append(out.args, b.named(a))
	}
	return &out
}

// pushed returns what is equivalent to t; nil if nothing simpler is. Its columns and literals have no places.
func (b *binder) pushed(t *term, not bool) *Expr {
	op := Op(t.op)
	switch {
	case t.op == "starts_with" || t.op == "prefix":
		return b.pushedText(t, "", "%")
	case t.op == "ends_with" || t.op == "suffix":
		return b.pushedText(t, "%", "")
	case t.op == "contains":
		return b.pushedText(t, "%", "%")
	case t.op == "~" && !not && !t.plain:
		return b.pushedRegexp(t)
	case op == OpIn && len(t.args) <= 100 && len(t.args) > 1:
		return b.pushedAll(t, OpOr, OpEq, OpIn)
	case op == OpBetween:
		return b.pushedAll(t, OpAnd, OpGe, OpBetween)
	}
	if _, ok := flip[op]; !ok {
		return nil
	}
	x, y := t.args[0], t.args[1]
	if v, ok := b.literal(x); ok {
		return b.pushedTest(y, flip[op], v, t)
	}
	if v, ok := b.literal(y); ok {
		return b.pushedTest(x, op, v, t)
	}
	return nil
}

// literal returns the value of a term without columns.
func (b *binder) literal(t *term) (Value, bool) {
	n, err := b.build(t)
	if err != nil || !n.IsConst() {
		return Value{}, false
	}
	return literalOf(n)
}

// pushedAll returns in and between as tests with one literal each, or as one test if they are of a column.
func (b *binder) pushedAll(t *term, join, first, whole Op) *Expr {
	var values []Value
	for _, a := range t.args[1:] {
		v, ok := b.literal(a)
		if !ok {
			return nil
		}
		values = append(values, v)
	}
	x := t.args[0]
	if x.isColumn() {
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
func (b *binder) column(t, column *term, op Op, values ...Value) *Expr {
	e := Test(column.column, op, values...)
	e.src = &source{text: t.src.text, column: column.src.column, op: t.src.op}
	for range values {
		e.src.values = append(e.src.values, t.src.op)
	}
	return e
}

// pushedTest returns x op v.
func (b *binder) pushedTest(x *term, op Op, v Value, t *term) *Expr {
	if v.Kind == KindNull {
		return nil
	}
	if x.isColumn() {
		return b.column(t, x, op, v)
	}
	unit, col := b.steps(x)
	if col == nil {
		return nil
	}
	if x.op == "year" {
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
func (b *binder) steps(x *term) (unit string, col *term) {
	switch {
	case x.op == "year":
		unit, col = "year", x.args[0]
	case x.op == "date" || x.op == termCast && strings.HasPrefix(x.typ.name, "date") && x.typ.name != "datetime":
		unit, col = "day", x.args[0]
	case x.op == "date_trunc" && x.args[0].isLiteral():
		unit, _ = scalar.UnitOf(x.args[0].value.Text)
		col = x.args[1]
	default:
		return "", nil
	}
	if !col.isColumn() {
		return "", nil
	}
	c, err := b.resolve(col.column)
	if err != nil {
		return "", nil
	}
	if d := domainOf(c.Type); d.means != meansDays && d.means != meansInstant {
		return "", nil
	}
	return unit, col
}

// pushedText returns a search for a text in a column as a pattern.
func (b *binder) pushedText(t *term, before, after string) *Expr {
	if len(t.args) != 2 || !t.args[0].isColumn() {
		return nil
	}
	v, ok := b.literal(t.args[1])
	if !ok || v.Kind != KindString {
		return nil
	}
	return b.column(t, t.args[0], OpLike, String(before+likeEscaper.Replace(v.Text)+after))
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// pushedRegexp adds the text that a regular expression requires at the beginning.
func (b *binder) pushedRegexp(t *term) *Expr {
	v, ok := b.literal(t.args[1])
	if !ok || v.Kind != KindString || !t.args[0].isColumn() || !strings.HasPrefix(v.Text, "^") {
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
	again := *t
	again.plain = true
	return And(b.column(t, t.args[0], OpLike, String(likeEscaper.Replace(prefix)+"%")), again.expr())
}

// MayFail reports whether evaluating e, which is bound, may fail for some row, as an overflow does. Such a predicate
// must not be evaluated for rows that another one excludes, and for values of a dictionary that no row may have.
func (e *Expr) MayFail() bool {
	if e == nil {
		return false
	}
	for _, a := range e.Args {
		if a.MayFail() {
			return true
		}
	}
	return e.test != nil && e.test.node.Fails
}

// expr clears the bits of acc for which a bound expr is not TRUE.
func (ev *evaluation) expr(e *Expr, acc []uint64) error {
	if isZero(acc) {
		return nil
	}
	failure, err := e.test.node.Where(acc, ev.n, func(path string) (scalar.Input, error) {
		c, err := ev.column(path)
		if err != nil {
			return scalar.Input{}, err
		}
		valid := load(ev.n, nil)
		if err := c.andValid(valid); err != nil {
			return scalar.Input{}, err
		}
		return scalar.Input{Array: c.arr, Valid: valid}, nil
	})
	switch {
	case err != nil:
		return fault.Bugf("pred: %s: %v", e.Text, err)
	case failure != nil:
		return fault.Invalidf("%s%s", failure.Reason, show(e.test.text, failure.At))
	}
	return nil
}
