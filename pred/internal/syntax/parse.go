package syntax

import (
	"strings"
	"unicode/utf8"
)

// Parse reads the text of a predicate; the comment of package pred has the grammar. An error is of class Invalid and
// shows the place.
func Parse(s string) (*Term, error) {
	toks, err := lex(s)
	if err != nil {
		return nil, err
	}
	p := &parser{s: s, toks: toks}
	t, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEnd {
		return nil, p.expected(`"and", "or" or the end`)
	}
	return t, nil
}

type parser struct {
	s    string
	toks []token
	i    int
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
	return placed(p.s, t.pos, "expected %s, found %s", what, t.describe(p.s))
}

func (p *parser) tooDeep(at int) error {
	return placed(p.s, at, "the predicate is nested more than %d deep", MaxDepth)
}

// term returns a term, unless it is too deep.
func (p *parser) term(op string, at int, args ...*Term) (*Term, error) {
	t := newTerm(op, at, args...)
	t.Text = p.s
	if t.depth > maxTermDepth {
		return nil, placed(p.s, at, "the expression is nested more than %d deep", maxTermDepth)
	}
	return t, nil
}

func (p *parser) or(depth int) (*Term, error)  { return p.list("or", depth, p.and) }
func (p *parser) and(depth int) (*Term, error) { return p.list("and", depth, p.not) }

// list parses operands joined by op.
func (p *parser) list(op string, depth int, operand func(int) (*Term, error)) (*Term, error) {
	at := p.peek().pos
	t, err := operand(depth)
	if err != nil || !p.peek().is(op) {
		return t, err
	}
	args := []*Term{t}
	for p.take(op) {
		if t, err = operand(depth); err != nil {
			return nil, err
		}
		args = append(args, t)
	}
	return p.term(op, at, args...)
}

func (p *parser) not(depth int) (*Term, error) {
	at := p.peek().pos
	if depth > MaxDepth {
		return nil, p.tooDeep(at)
	}
	if !p.take("not") {
		return p.test(depth)
	}
	t, err := p.not(depth + 1)
	if err != nil {
		return nil, err
	}
	return p.term("not", at, t)
}

// test parses a comparison, another test, or a value alone.
func (p *parser) test(depth int) (*Term, error) {
	x, err := p.concat(depth, "a column")
	if err != nil {
		return nil, err
	}
	at := p.peek().pos
	if p.take("is") {
		not := p.take("not")
		if !p.take("null") {
			return nil, p.expected(`"null"`)
		}
		return p.negated("is null", at, not, x)
	}
	if op, ok := p.compare(); ok {
		return p.comparison(op, at, depth, x)
	}
	if op := p.peek(); op.kind == tokMark && strings.ContainsRune(op.text, '~') {
		p.i++
		y, err := p.concat(depth, "a regular expression in single quotes")
		if err != nil {
			return nil, err
		}
		return p.negated(strings.TrimPrefix(op.text, "!"), at, op.text[0] == '!', x, y)
	}
	return p.wordTest(depth, x, at)
}

// wordTest parses a test whose operator is a word, or nothing.
func (p *parser) wordTest(depth int, x *Term, at int) (*Term, error) {
	not := p.take("not")
	switch {
	case p.take("in"):
		return p.in(depth, x, at, not)
	case p.take("between"):
		return p.between(depth, x, at, not)
	case p.take("like"):
		return p.like("like", depth, x, at, not)
	case p.take("ilike"):
		return p.like("ilike", depth, x, at, not)
	case not:
		return nil, p.expected(`"in", "between" or "like"`)
	case x.paren || p.ends(x.IsLiteral() && !x.IsTruth()):
		return x, nil
	case x.IsColumn():
		return nil, p.expected(`a comparison, "is", "in", "between" or "like"`)
	case x.IsLiteral() && !x.IsTruth():
		return nil, p.expected("a comparison")
	}
	return x, nil
}

// ends reports whether an operand may end before the next token. No condition is a number or text, so such a literal
// does not end before "and" and "or".
func (p *parser) ends(literal bool) bool {
	t := p.peek()
	if t.kind == tokEnd || t.is("and") || t.is("or") {
		return !literal
	}
	for _, w := range []string{")", ",", "when", "then", "else", "end", "as"} {
		if t.is(w) {
			return true
		}
	}
	return false
}

// comparison parses the right side of a comparison.
func (p *parser) comparison(op string, at, depth int, x *Term) (*Term, error) {
	right := p.peek()
	y, err := p.concat(depth, "a literal")
	if err != nil {
		return nil, err
	}
	if x.IsLiteral() && y.IsLiteral() && !x.paren && !y.paren {
		return nil, placed(p.s, right.pos, "expected a column, as there is a literal on the other side, found %s",
			right.describe(p.s))
	}
	return p.term(op, at, x, y)
}

// negated returns a test, or its negation.
func (p *parser) negated(op string, at int, not bool, args ...*Term) (*Term, error) {
	t, err := p.term(op, at, args...)
	if err != nil || !not {
		return t, err
	}
	if t, err = p.term("not", at, t); err == nil {
		t.Inside = true
	}
	return t, err
}

// comparisons are the comparison operators, with what they are called in terms.
var comparisons = map[string]string{"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">",
	">=": ">="}

// compare consumes a comparison operator, if it is next.
func (p *parser) compare() (op string, ok bool) {
	t := p.peek()
	if t.kind != tokMark {
		return "", false
	}
	if op, ok = comparisons[t.text]; ok {
		p.i++
	}
	return op, ok
}

func (p *parser) in(depth int, x *Term, at int, not bool) (*Term, error) {
	args := []*Term{x}
	if !p.take("(") {
		return nil, p.expected(`"("`)
	}
	if p.take(")") {
		return p.negated("in", at, not, args...)
	}
	for {
		v, err := p.concat(depth+1, "a literal")
		if err != nil {
			return nil, err
		}
		args = append(args, v)
		if p.take(")") {
			return p.negated("in", at, not, args...)
		}
		if !p.take(",") {
			return nil, p.expected(`"," or ")"`)
		}
	}
}

func (p *parser) between(depth int, x *Term, at int, not bool) (*Term, error) {
	lo, err := p.concat(depth, "a literal")
	if err != nil {
		return nil, err
	}
	if !p.take("and") {
		return nil, p.expected(`"and" and the upper limit`)
	}
	hi, err := p.concat(depth, "a literal")
	if err != nil {
		return nil, err
	}
	return p.negated("between", at, not, x, lo, hi)
}

func (p *parser) like(op string, depth int, x *Term, at int, not bool) (*Term, error) {
	first := p.peek()
	if first.kind == tokNumber || first.kind == tokEnd {
		return nil, p.expected("a pattern")
	}
	v, err := p.concat(depth, "a pattern")
	if err != nil {
		return nil, err
	}
	t, err := p.term(op, at, x, v)
	if err != nil {
		return nil, err
	}
	if p.take("escape") {
		e := p.peek()
		if e.kind != tokString || utf8.RuneCountInString(e.text) > 1 {
			return nil, p.expected("one character, or none, in single quotes")
		}
		t.Escape = p.next().text
		if t.Escape == "" {
			t.Escape = NoEscape
		}
	}
	if not {
		if t, err = p.term("not", at, t); err == nil {
			t.Inside = true
		}
	}
	return t, err
}
