package pred

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/sorted"
	"stoa/pred/internal/syntax"
)

// Bind resolves the columns of e in sc and converts its literals to the columns' types. The result has the same value
// as e for every row, including unknown, but is simpler:
//
//   - it has no not: negation is pushed down into the tests;
//   - literals are values of the column's type. A literal that lies between two such values, or beyond all of them,
//     changes the operator: x > 3.5 becomes x >= 4 for integers, and a test with the same answer for all cells but null
//     becomes x in () or x not in ();
//   - a test with null becomes null, a pattern without wildcards a comparison.
//
// Every node with a column has its Path and Type. The result may be bound again, to any schema. An error about a column
// or literal of a parsed predicate shows the place in its text, as Parse does.
func Bind(e *Expr, sc *arrow.Schema) (*Expr, error) {
	if err := e.check(0); err != nil {
		return nil, err
	}
	e, err := e.withTerms()
	if err != nil {
		return nil, err
	}
	b := &binder{fields: sc.Fields(), columns: map[string]*Expr{}}
	return b.bind(e, false)
}

type binder struct {
	fields  []arrow.Field
	columns map[string]*Expr // resolved ones: Path and Type
	late    int              // > 0: in what may not be evaluated
}

// bind binds e, or its negation.
func (b *binder) bind(e *Expr, not bool) (*Expr, error) {
	if e.Op == OpNot {
		return b.bind(e.Args[0], !not)
	}
	if e.Op == OpExpr {
		return b.expr(e, not)
	}
	op := e.Op
	if not {
		op = ops[op].not
	}
	if e.Column != "" {
		out, err := b.test(e, op)
		if err == nil {
			out.bound = true
			out.src = e.src.only() // its literals may have changed
		}
		return out, err
	}
	out := &Expr{Op: op, bound: true}
	for _, a := range e.Args {
		x, err := b.bind(a, not)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, x)
	}
	return out, nil
}

// test binds a test of a column, with op in place of its own operator.
func (b *binder) test(e *Expr, op Op) (*Expr, error) {
	col, err := b.resolve(e.Column)
	if err != nil {
		return nil, e.src.blame(atColumn, err)
	}
	out := &Expr{Op: op, Column: col.Column, Path: col.Path, Type: col.Type, Values: e.Values, Escape: e.Escape,
		src: e.src}
	d := domainOf(col.Type)
	if op == OpIsNull || op == OpIsNotNull {
		if hasNoValidity(col.Type) {
			return nil, e.src.blame(atColumn, fault.Unsupportedf(fault.Span{}, "", "column %s is a %s: its "+
				"nulls are those of what it is made of, and cannot be tested", e.Column, col.Type))
		}
		out.leaf = &leaf{dom: d, kind: leafNull, neg: op == OpIsNotNull}
		return out, nil
	}
	out.leaf = &leaf{dom: d, neg: isNegative(op)}
	switch {
	case hasNoValidity(col.Type):
		return nil, e.src.blame(atOp, fault.Invalidf("column %s is of type %s: it cannot be tested", e.Column,
			col.Type))
	case d.class == classNone:
		return nil, e.src.blame(atOp, fault.Invalidf("column %s is of type %s: it can only be tested with is null",
			e.Column, col.Type))
	case d.class == classNull:
		out.leaf.kind = leafNever
		return out, nil
	case op == OpLike || op == OpNotLike:
		return out.bindLike()
	case op == OpIn || op == OpNotIn:
		return out, out.bindIn()
	}
	for i, v := range e.Values {
		if v.Kind == KindNull {
			return e.withNull(op, i, b)
		}
	}
	if d.class == classBytes {
		return out, out.bindText()
	}
	return out, out.bindNumbers()
}

// hasNoValidity reports whether type t has no validity bitmap of its own for its nulls.
func hasNoValidity(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.RUN_END_ENCODED, arrow.SPARSE_UNION, arrow.DENSE_UNION:
		return true
	}
	return false
}

// isNegative reports whether op is the negation of the test that its leaf makes.
func isNegative(op Op) bool {
	switch op {
	case OpNe, OpNotIn, OpNotBetween, OpNotLike, OpIsNotNull:
		return true
	}
	return false
}

// withNull returns the test e, as op, whose Values[i] is null. For between, the other limit may still make it FALSE.
func (e *Expr) withNull(op Op, i int, b *binder) (*Expr, error) {
	unknown := &Expr{Op: OpUnknown, bound: true}
	other := Null()
	if len(e.Values) == 2 {
		other = e.Values[1-i]
	}
	if other.Kind == KindNull {
		return unknown, nil
	}
	half, join := [2]Op{OpLe, OpGe}[i], OpAnd
	if op == OpNotBetween {
		half, join = ops[half].not, OpOr
	}
	rest := Test(e.Column, half, other)
	rest.src = e.src.only(1 - i)
	x, err := b.test(rest, half)
	if err != nil {
		return nil, err
	}
	x.bound = true
	return &Expr{Op: join, Args: []*Expr{unknown, x}, bound: true}, nil
}

// constant makes e TRUE for every cell that is not null (always), or for none.
func (e *Expr) constant(always bool) {
	e.Op, e.Values, e.Escape = OpIn, nil, ""
	if always {
		e.Op = OpNotIn
	}
	e.leaf = &leaf{dom: e.leaf.dom, kind: leafRange, empty: true, neg: always}
}

// describe returns v with its kind, for messages.
func (v Value) describe() string {
	s := v.String()
	if strings.HasPrefix(s, v.Kind.String()+" ") {
		return s
	}
	return "the " + v.Kind.String() + " " + s
}

// mismatch returns an error that says why e's column cannot be compared with v, its literal i.
func (e *Expr) mismatch(i int, v Value, err error) error {
	if err != errMismatch {
		var f *fault.Error
		if errors.As(err, &f) && f.Class == fault.Invalid {
			err = fault.Invalidf("column %s is of type %s; %s", e.Column, e.Type, f.Reason)
		}
		return e.src.blame(i, err)
	}
	hint := ""
	switch d := e.leaf.dom; d.means {
	case meansBool:
		hint = "; write true or false"
	case meansNumber:
		if v.Kind == KindString && numberKind(v.Text) != KindNull {
			hint = "; write " + v.Text
		}
	case meansDays, meansInstant:
		hint = "; write date '2020-01-02' or timestamp '2020-01-02T03:04:05Z'"
	case meansTime:
		hint = "; write time '03:04:05'"
	case meansString:
		hint = "; write " + syntax.Quote(v.plain())
	case meansBinary:
		hint = "; write x'00ff'"
	}
	return e.src.blame(i, fault.Invalidf("column %s is of type %s and cannot be compared with %s%s", e.Column,
		e.Type, v.describe(), hint))
}

// bindNumbers binds a comparison or between on a column of fixed width.
func (e *Expr) bindNumbers() error {
	d := e.leaf.dom
	var p [2]point
	for i, v := range e.Values {
		var err error
		if p[i], err = d.place(v); err != nil {
			return e.mismatch(i, v, err)
		}
	}
	lo, hi, empty := d.between(e.Op, p)
	l := e.leaf
	if empty || lo == d.min && hi == d.max {
		e.constant(empty == l.neg)
		return nil
	}
	l.setRange(lo, hi)
	e.rewrite(lo, hi, p)
	return nil
}

// between returns the range of values of the domain for which the test op (if negative, its opposite) holds. The
// literals of the test lie at p.
func (d domain) between(op Op, p [2]point) (lo, hi num, empty bool) {
	lo, hi = d.min, d.max
	from, to := p[0], p[0] // the points that limit the range from below and from above
	switch op {
	case OpLt, OpLe:
		from = point{side: -1}
	case OpGt, OpGe:
		to = point{side: 1}
	case OpBetween, OpNotBetween:
		to = p[1]
	}
	switch {
	case from.side > 0, to.side < 0:
		return lo, hi, true
	case (op == OpEq || op == OpNe) && !from.exact:
		return lo, hi, true
	}
	if from.side == 0 {
		lo = from.at
		if op == OpGt || !from.exact {
			if lo == d.max {
				return lo, hi, true
			}
			lo = lo.next()
		}
	}
	if to.side == 0 {
		hi = to.at
		if op == OpLt && to.exact {
			if hi == d.min {
				return lo, hi, true
			}
			hi = hi.prev()
		}
	}
	return lo, hi, lo.cmp(hi) > 0
}

// rewrite replaces the literals of e, which tests for lo to hi, by values of the column's type. If no Value can
// represent them, e is left unchanged.
func (e *Expr) rewrite(lo, hi num, p [2]point) {
	d := e.leaf.dom
	if p[0].exact && p[0].side == 0 && len(e.Values) == 1 {
		if v, ok := d.value(p[0].at); ok {
			e.Values = []Value{v}
		}
		return
	}
	low, ok1 := d.value(lo)
	high, ok2 := d.value(hi)
	op, vs := OpBetween, []Value{low, high}
	switch {
	case lo == hi:
		op, vs, ok2 = OpEq, vs[:1], true
	case lo == d.min:
		op, vs, ok1 = OpLe, vs[1:], true
	case hi == d.max:
		op, vs, ok2 = OpGe, vs[:1], true
	}
	if !ok1 || !ok2 {
		return
	}
	e.Op, e.Values = op, vs
	if e.leaf.neg {
		e.Op = ops[op].not
		if op == OpLe || op == OpGe {
			e.leaf.invert()
		}
	}
}

// bindText binds a comparison or between on strings or binary.
func (e *Expr) bindText() error {
	l := e.leaf
	vs := make([]Value, len(e.Values))
	for i, v := range e.Values {
		if !v.isText() {
			return e.mismatch(i, v, errMismatch)
		}
		vs[i] = l.dom.text(v.Text)
	}
	e.Values = vs
	l.kind = leafText
	a := vs[0].Text
	switch e.Op {
	case OpEq, OpNe:
		l.kind, l.text = leafEqual, a
		l.from, l.to = a, a+"\x00"
	case OpLt:
		l.to = a
	case OpLe:
		l.to = a + "\x00"
	case OpGt:
		l.from, l.open = a+"\x00", true
	case OpGe:
		l.from, l.open = a, true
	default:
		l.from, l.to = a, vs[1].Text+"\x00"
	}
	switch {
	case !l.open && l.to <= l.from:
		e.constant(l.neg)
	case l.open && l.from == "":
		e.constant(!l.neg)
	}
	return nil
}

// text returns a value of a domain of strings or binary.
func (d domain) text(s string) Value {
	if d.means == meansString && utf8.ValidString(s) {
		return String(s)
	}
	return Value{Kind: KindBytes, Text: s}
}

// bindIn binds a list: it is sorted without duplicates, values that the column cannot have are dropped, and one null is
// kept.
func (e *Expr) bindIn() error {
	l := e.leaf
	l.kind = leafSet
	var keys []num
	var texts []string
	var inexact []Value // values of the domain that no Value of its type can represent
	null := false
	for i, v := range e.Values {
		switch {
		case v.Kind == KindNull:
			null = true
		case l.dom.class == classBytes:
			if !v.isText() {
				return e.mismatch(i, v, errMismatch)
			}
			texts = append(texts, v.Text)
		default:
			p, err := l.dom.place(v)
			if err != nil {
				return e.mismatch(i, v, err)
			}
			if p.exact && p.side == 0 {
				keys = append(keys, p.at)
				if _, ok := l.dom.value(p.at); !ok {
					inexact = append(inexact, v)
				}
			}
		}
	}
	sorted.By(keys, num.cmp)
	keys = slices.Compact(keys)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	e.Values = inexact
	for _, k := range keys {
		if v, ok := l.dom.value(k); ok {
			e.Values = append(e.Values, v)
		}
	}
	for _, t := range texts {
		e.Values = append(e.Values, l.dom.text(t))
	}
	if null {
		e.Values = append(e.Values, Null())
	}
	if null && l.neg {
		l.kind = leafNever
		return nil
	}
	l.setList(keys, texts)
	return nil
}

// bindLike binds a pattern.
func (e *Expr) bindLike() (*Expr, error) {
	l, v := e.leaf, e.Values[0]
	switch {
	case v.Kind == KindNull:
		return &Expr{Op: OpUnknown}, nil
	case l.dom.class != classBytes:
		return nil, e.src.blame(atOp, fault.Invalidf("column %s is of type %s; like is for strings and binary",
			e.Column, e.Type))
	case l.dom.means == meansString && !utf8.ValidString(v.Text):
		return nil, e.src.blame(0, fault.Invalidf("column %s is of type %s; the pattern %s is not UTF-8", e.Column,
			e.Type, v))
	}
	p, err := parsePattern(v, e.Escape, l.dom.means == meansBinary)
	if err != nil {
		return nil, e.src.blame(0, err)
	}
	l.kind, l.like, l.text = leafLike, p, p.text
	switch p.shape {
	case anything:
		e.constant(!l.neg)
		return e, nil
	case exact:
		e.Op, e.Values, e.Escape = OpEq, []Value{l.dom.text(p.text)}, ""
		if l.neg {
			e.Op = OpNe
		}
		return e, e.bindText()
	}
	if p.steps[0].kind == stepText {
		l.from = p.text
	}
	l.to, l.open = successor(l.from)
	if p.shape == prefix {
		l.kind = leafPrefix
	}
	return e, nil
}

// successor returns the first text that sorts after all texts beginning with s; open if there is none.
func successor(s string) (to string, open bool) {
	for s != "" && s[len(s)-1] == 0xff { // bytes, not runes: TrimRight would cut every invalid byte
		s = s[:len(s)-1]
	}
	if s == "" {
		return "", true
	}
	return s[:len(s)-1] + string([]byte{s[len(s)-1] + 1}), false
}
