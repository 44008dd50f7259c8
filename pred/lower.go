package pred

import (
	"stoa/fault"
	"stoa/pred/internal/syntax"
)

// lower makes an Expr of a condition: tests of a column with literals, joined by and, or and not, are nodes of their
// own, which formats can make use of; everything else is an expr.
func lower(t *syntax.Term) (*Expr, error) {
	switch t.Op {
	case "and", "or":
		out := &Expr{Op: Op(t.Op)}
		for _, a := range t.Args {
			e, err := lower(a)
			if err != nil {
				return nil, err
			}
			out.Args = append(out.Args, e)
		}
		return out, nil
	case "not":
		e, err := lower(t.Args[0])
		if err != nil {
			return nil, err
		}
		if t.Inside && e.Op != OpExpr {
			e.Op = ops[e.Op].not
			return e, nil
		}
		return Not(e), nil
	case syntax.OpLiteral:
		if !t.IsTruth() {
			return nil, place(t, fault.Invalidf("expected a condition, found a value"))
		}
		return &Expr{Op: Op(t.Literal.Text)}, nil
	case syntax.OpColumn:
		e := Test(t.Column, OpEq, Bool(true))
		e.src = sourceOf(t)
		return e, nil
	}
	if e := simple(t); e != nil {
		return e, nil
	}
	return exprOf(t), nil
}

// exprOf returns the Expr for a term.
func exprOf(t *syntax.Term) *Expr {
	return &Expr{Op: OpExpr, Text: t.String(), term: t, src: sourceOf(t)}
}

// simple returns the test of a column with literals that t is; nil if it is none.
func simple(t *syntax.Term) *Expr {
	op, ok := Op(t.Op), false
	switch op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		if t.Args[0].IsLiteral() && t.Args[1].IsColumn() {
			return testOf(t, flip[op], t.Args[1], t.Args[:1])
		}
		ok = true
	case OpIn, OpBetween, OpIsNull, OpLike:
		ok = true
	}
	if !ok || !t.Args[0].IsColumn() {
		return nil
	}
	for _, a := range t.Args[1:] {
		if !a.IsLiteral() {
			return nil
		}
	}
	return testOf(t, op, t.Args[0], t.Args[1:])
}

// testOf returns the test of a column with literals.
func testOf(t *syntax.Term, op Op, column *syntax.Term, literals []*syntax.Term) *Expr {
	e := Test(column.Column, op)
	e.Escape = t.Escape
	e.src = &source{text: t.Text, column: column.At, op: t.At}
	for _, l := range literals {
		e.Values = append(e.Values, valueOf(l))
		e.src.values = append(e.src.values, l.At)
	}
	return e
}
