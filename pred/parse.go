package pred

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"stoa/fault"
)

// Parse reads the text of a predicate; the package comment has the grammar. An error is of class Invalid
// and shows the place:
//
//	invalid: expected a literal, found "and" (byte 8, column 9)
//	  price > and x
//	          ^
func Parse(s string) (*Expr, error) {
	toks, err := lex(s)
	if err != nil {
		return nil, err
	}
	p := &parser{s: s, toks: toks}
	e, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEnd {
		return nil, p.expected(`"and", "or" or the end`)
	}
	if err := e.check(0); err != nil {
		return nil, placed(s, 0, "the predicate is nested more than %d deep", MaxDepth)
	}
	return e, nil
}

type parser struct {
	s    string
	toks []token
	i    int
	src  source // of the test that is being parsed
}

func (p *parser) peek() token { return p.toks[p.i] }

// next consumes a token. The end token is never consumed.
func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

// take consumes the keyword or mark w if it is next.
func (p *parser) take(w string) bool {
	ok := p.peek().is(w)
	if ok {
		p.i++
	}
	return ok
}

// expected returns the error that the next token is not what was expected.
func (p *parser) expected(what string) error {
	t := p.peek()
	hint := ""
	if strings.HasPrefix(what, "a literal") &&
		(t.kind == tokName || t.kind == tokWord && !keywords[strings.ToLower(t.text)]) {
		hint = fmt.Sprintf("; columns are not compared with each other, and text goes into single quotes: %s",
			quote(t.text))
	}
	return placed(p.s, t.pos, "expected %s, found %s%s", what, t.describe(p.s), hint)
}

func (p *parser) or(depth int) (*Expr, error)  { return p.list(OpOr, depth, p.and) }
func (p *parser) and(depth int) (*Expr, error) { return p.list(OpAnd, depth, p.not) }

// list parses operands joined by op.
func (p *parser) list(op Op, depth int, operand func(int) (*Expr, error)) (*Expr, error) {
	e, err := operand(depth)
	if err != nil || !p.peek().is(string(op)) {
		return e, err
	}
	out := &Expr{Op: op, Args: []*Expr{e}}
	for p.take(string(op)) {
		if e, err = operand(depth); err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	return out, nil
}

func (p *parser) not(depth int) (*Expr, error) {
	if depth > MaxDepth {
		return nil, placed(p.s, p.peek().pos, "the predicate is nested more than %d deep", MaxDepth)
	}
	if p.take("not") {
		e, err := p.not(depth + 1)
		if err != nil {
			return nil, err
		}
		return Not(e), nil
	}
	if p.take("(") {
		e, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = p.expected(`"and", "or" or ")"`)
		}
		return e, err
	}
	p.src = source{text: p.s}
	e, err := p.test()
	if err == nil && e.Column != "" {
		src := p.src
		e.src = &src
	}
	return e, err
}

// test parses a comparison, a constant, or another test of a column.
func (p *parser) test() (*Expr, error) {
	if p.atLiteral() {
		return p.reversed()
	}
	col, err := p.column()
	if err != nil {
		return nil, err
	}
	p.src.op = p.peek().pos
	if p.take("is") {
		op := OpIsNull
		if p.take("not") {
			op = OpIsNotNull
		}
		if !p.take("null") {
			return nil, p.expected(`"null"`)
		}
		return Test(col, op), nil
	}
	if op, ok := p.compare(); ok {
		v, err := p.literal()
		return Test(col, op, v), err
	}
	negated := p.take("not")
	var e *Expr
	switch {
	case p.take("in"):
		e, err = p.in(col)
	case p.take("between"):
		e, err = p.between(col)
	case p.take("like"):
		e, err = p.like(col)
	case negated:
		return nil, p.expected(`"in", "between" or "like"`)
	default:
		return p.booleanColumn(col)
	}
	if err == nil && negated {
		e.Op = ops[e.Op].not
	}
	return e, err
}

// booleanColumn parses a column without a test, which stands for column = true.
func (p *parser) booleanColumn(col string) (*Expr, error) {
	if t := p.peek(); t.kind == tokEnd || t.is("and") || t.is("or") || t.is(")") {
		p.src.op = p.src.column
		return Test(col, OpEq, Bool(true)), nil
	}
	return nil, p.expected(`a comparison, "is", "in", "between" or "like"`)
}

// reversed parses a test that begins with a literal.
func (p *parser) reversed() (*Expr, error) {
	word := strings.ToLower(p.peek().text)
	isWord := p.peek().kind == tokWord
	v, err := p.literal()
	if err != nil {
		return nil, err
	}
	p.src.op = p.peek().pos
	op, ok := p.compare()
	if !ok {
		if isWord && keywords[word] {
			return &Expr{Op: Op(word)}, nil
		}
		return nil, p.expected("a comparison")
	}
	if p.atLiteral() {
		return nil, p.expected("a column, as there is a literal on the other side")
	}
	col, err := p.column()
	return Test(col, flip[op], v), err
}

// compare consumes a comparison operator, if it is next.
func (p *parser) compare() (Op, bool) {
	t := p.peek()
	if t.kind != tokMark {
		return "", false
	}
	op := Op(t.text)
	switch t.text {
	case "==":
		op = OpEq
	case "<>":
		op = OpNe
	}
	_, ok := flip[op]
	if ok {
		p.i++
	}
	return op, ok
}

// column parses a dotted path.
func (p *parser) column() (string, error) {
	var names []string
	p.src.column = p.peek().pos
	for {
		t := p.peek()
		if t.kind != tokName && (t.kind != tokWord || len(names) == 0 && keywords[strings.ToLower(t.text)]) {
			if len(names) > 0 {
				return "", p.expected("a name")
			}
			return "", p.expected("a column")
		}
		names = append(names, p.next().text)
		if !p.take(".") {
			return JoinPath(names...), nil
		}
	}
}

func (p *parser) in(col string) (*Expr, error) {
	e := Test(col, OpIn)
	if !p.take("(") {
		return nil, p.expected(`"("`)
	}
	if p.take(")") {
		return e, nil
	}
	for {
		v, err := p.literal()
		if err != nil {
			return nil, err
		}
		e.Values = append(e.Values, v)
		if p.take(")") {
			return e, nil
		}
		if !p.take(",") {
			return nil, p.expected(`"," or ")"`)
		}
	}
}

func (p *parser) between(col string) (*Expr, error) {
	lo, err := p.literal()
	if err != nil {
		return nil, err
	}
	if !p.take("and") {
		return nil, p.expected(`"and" and the upper limit`)
	}
	hi, err := p.literal()
	return Test(col, OpBetween, lo, hi), err
}

func (p *parser) like(col string) (*Expr, error) {
	at := p.peek()
	if at.kind != tokString && at.kind != tokHex && !at.is("null") {
		return nil, p.expected("a pattern")
	}
	v, err := p.literal()
	if err != nil {
		return nil, err
	}
	e := Test(col, OpLike, v)
	if p.take("escape") {
		t := p.peek()
		if t.kind != tokString || utf8.RuneCountInString(t.text) > 1 {
			return nil, p.expected("one character, or none, in single quotes")
		}
		e.Escape = p.next().text
		if e.Escape == "" {
			e.Escape = NoEscape
		}
	}
	if _, err := parsePattern(v, e.Escape, false); err != nil {
		return nil, placed(p.s, at.pos, "%s", reason(err))
	}
	return e, nil
}

// typed maps the names of kinds whose literals are written as the name and a string.
var typed = map[string]Kind{
	"date": KindDate, "time": KindTime, "timestamp": KindTimestamp, "float": KindFloat, "decimal": KindDecimal,
}

// atLiteral reports whether a literal comes next.
func (p *parser) atLiteral() bool {
	t := p.peek()
	switch t.kind {
	case tokString, tokHex, tokNumber:
		return true
	case tokWord:
		w := strings.ToLower(t.text)
		if w == "true" || w == "false" || w == "null" {
			return true
		}
		_, ok := typed[w]
		return ok && p.toks[p.i+1].kind == tokString
	}
	return false
}

func (p *parser) literal() (Value, error) {
	if !p.atLiteral() {
		return Null(), p.expected("a literal")
	}
	t := p.next()
	p.src.values = append(p.src.values, t.pos)
	var v Value
	var err error
	switch t.kind {
	case tokString:
		return String(t.text), nil
	case tokHex:
		return Bytes([]byte(t.text)), nil
	case tokNumber:
		v, err = parseNumber(t.text)
	default:
		switch w := strings.ToLower(t.text); w {
		case "null":
			return Null(), nil
		case "true", "false":
			return Bool(w == "true"), nil
		default:
			v, err = parseAs(typed[w], p.next().text)
		}
	}
	if err != nil {
		return v, placed(p.s, t.pos, "%s", reason(err))
	}
	return v, nil
}

// reason returns the text of an error without its class.
func reason(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
