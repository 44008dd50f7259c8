package pred

// lower makes an Expr of a condition: tests of a column with literals, joined by and, or and not, are nodes of their
// own, which formats can make use of; everything else is an expr.
func (p *parser) lower(t *term) (*Expr, error) {
	switch t.op {
	case "and", "or":
		out := &Expr{Op: Op(t.op)}
		for _, a := range t.args {
			e, err := p.lower(a)
			if err != nil {
				return nil, err
			}
			out.Args = append(out.Args, e)
		}
		return out, nil
	case "not":
		e, err := p.lower(t.args[0])
		if err != nil {
			return nil, err
		}
		if t.inside && e.Op != OpExpr {
			e.Op = ops[e.Op].not
			return e, nil
		}
		return Not(e), nil
	case termLiteral:
		if !t.isTruth() {
			return nil, placed(p.s, t.src.op, "expected a condition, found a value")
		}
		return &Expr{Op: Op(t.value.String())}, nil
	case termColumn:
		src := t.src
		src.op = src.column
		e := Test(t.column, OpEq, Bool(true))
		e.src = &src
		return e, nil
	}
	if e := t.simple(); e != nil {
		return e, nil
	}
	return t.expr(), nil
}

// expr returns the Expr for a term.
func (t *term) expr() *Expr {
	src := t.src
	return &Expr{Op: OpExpr, Text: t.String(), term: t, src: &src}
}

// simple returns the test of a column with literals that t is; nil if it is none.
func (t *term) simple() *Expr {
	op, ok := Op(t.op), false
	switch op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		if t.args[0].isLiteral() && t.args[1].isColumn() {
			return t.test(flip[op], t.args[1], t.args[:1])
		}
		ok = true
	case OpIn, OpBetween, OpIsNull, OpLike:
		ok = true
	}
	if !ok || !t.args[0].isColumn() {
		return nil
	}
	for _, a := range t.args[1:] {
		if !a.isLiteral() {
			return nil
		}
	}
	return t.test(op, t.args[0], t.args[1:])
}

// test returns the test of a column with literals.
func (t *term) test(op Op, column *term, literals []*term) *Expr {
	e := Test(column.column, op)
	e.Escape = t.escape
	e.src = &source{text: t.src.text, column: column.src.column, op: t.src.op}
	for _, l := range literals {
		e.Values = append(e.Values, l.value)
		e.src.values = append(e.src.values, l.src.op)
	}
	return e
}
