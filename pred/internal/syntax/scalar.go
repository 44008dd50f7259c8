package syntax

import (
	"strconv"
	"strings"
)

// concat parses texts joined by ||. want is what an error says was expected.
func (p *parser) concat(depth int, want string) (*Term, error) {
	return p.binary(depth, want, p.sum, "||")
}

// sum parses sums and differences. A sign before digits is part of the number, except after an operand.
func (p *parser) sum(depth int, want string) (*Term, error) {
	x, err := p.product(depth, want)
	for err == nil {
		t := p.peek()
		if t.kind == tokNumber && (t.text[0] == '+' || t.text[0] == '-') {
			p.toks[p.i].text, p.toks[p.i].pos = t.text[1:], t.pos+1
			t.text = t.text[:1]
		} else if t.kind == tokMark && (t.text == "+" || t.text == "-") {
			p.i++
		} else {
			return x, nil
		}
		var y *Term
		if y, err = p.product(depth, "a value"); err == nil {
			x, err = p.term(t.text, t.pos, x, y)
		}
	}
	return nil, err
}

func (p *parser) product(depth int, want string) (*Term, error) {
	return p.binary(depth, want, p.unary, "*", "/", "%")
}

// binary parses operands joined by one of some operators, from left to right.
func (p *parser) binary(depth int, want string, operand func(int, string) (*Term, error), ops ...string) (*Term,
	error) {
	x, err := operand(depth, want)
next:
	for err == nil {
		for _, op := range ops {
			if t := p.peek(); t.kind == tokMark && t.text == op {
				p.i++
				var y *Term
				if y, err = operand(depth, "a value"); err == nil {
					x, err = p.term(op, t.pos, x, y)
				}
				continue next
			}
		}
		return x, nil
	}
	return nil, err
}

func (p *parser) unary(depth int, want string) (*Term, error) {
	t := p.peek()
	if depth > MaxDepth {
		return nil, p.tooDeep(t.pos)
	}
	if t.kind != tokMark || t.text != "-" && t.text != "+" {
		return p.postfix(depth, want)
	}
	p.i++
	if n := &p.toks[p.i]; n.kind == tokNumber && n.text[0] != '-' && n.text[0] != '+' {
		n.text, n.pos = t.text+n.text, t.pos
		return p.postfix(depth, want)
	}
	x, err := p.unary(depth+1, "a value")
	if err != nil || t.text == "+" {
		return x, err
	}
	return p.term(OpNeg, t.pos, x)
}

// postfix parses a value with casts behind it.
func (p *parser) postfix(depth int, want string) (*Term, error) {
	x, err := p.primary(depth, want)
	for err == nil && p.peek().is("::") {
		at := p.next().pos
		var typ CastType
		if typ, err = p.castType(); err == nil {
			if x, err = p.term(OpCast, at, x); err == nil {
				x.Type = typ
			}
		}
	}
	return x, err
}

// primary parses a literal, a column, a function, a case, or an expression in parentheses.
func (p *parser) primary(depth int, want string) (*Term, error) {
	t := p.peek()
	switch after := p.toks[min(p.i+1, len(p.toks)-1)]; {
	case p.atLiteral():
		return p.literal(), nil
	case p.take("("):
		x, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = p.expected(`"and", "or" or ")"`)
		}
		if err != nil {
			return nil, err
		}
		x.paren = true
		return x, nil
	case t.kind == tokWord && !keywords[strings.ToLower(t.text)] && after.is("("):
		return p.call(depth)
	case t.is("case") && after.beginsOperand():
		return p.caseOf(depth)
	}
	return p.column(want)
}

// beginsOperand reports whether t comes after the word case, rather than after a column of that name.
func (t token) beginsOperand() bool {
	switch t.kind {
	case tokEnd, tokMark:
		return t.text == "("
	case tokNumber:
		return t.text[0] != '-' && t.text[0] != '+'
	case tokWord:
		switch strings.ToLower(t.text) {
		case "is", "not", "in", "between", "like", "ilike", "and", "or", "then", "else", "end", "as", "escape":
			return false
		}
	}
	return true
}

// column parses a dotted path.
func (p *parser) column(want string) (*Term, error) {
	out := newTerm(OpColumn, p.peek().pos)
	out.Text = p.s
	var names []string
	for {
		t := p.peek()
		if t.kind != tokName && (t.kind != tokWord || len(names) == 0 && keywords[strings.ToLower(t.text)]) {
			if len(names) > 0 {
				return nil, p.expected("a name")
			}
			return nil, p.expected(want)
		}
		names = append(names, p.next().text)
		if !p.take(".") {
			out.Column = JoinPath(names...)
			return out, nil
		}
	}
}

// call parses a function, or a cast.
func (p *parser) call(depth int) (*Term, error) {
	t := p.next()
	name := strings.ToLower(t.text)
	p.i++ // (
	if depth >= MaxDepth {
		return nil, p.tooDeep(t.pos)
	}
	if name == OpCast || name == OpTryCast {
		return p.cast(depth, name, t.pos)
	}
	var args []*Term
	for first := true; !p.take(")"); first = false {
		if !first && !p.take(",") {
			return nil, p.expected(`"," or ")"`)
		}
		x, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		args = append(args, x)
	}
	return p.term(name, t.pos, args...)
}

func (p *parser) cast(depth int, op string, at int) (*Term, error) {
	x, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if !p.take("as") {
		return nil, p.expected(`"as" and a type`)
	}
	typ, err := p.castType()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, p.expected(`")"`)
	}
	out, err := p.term(op, at, x)
	if err == nil {
		out.Type = typ
	}
	return out, err
}

// CastType parses the name of a type, and the digits and scale of a decimal.
func (p *parser) castType() (typ CastType, err error) {
	if p.peek().kind != tokWord {
		return typ, p.expected("a type")
	}
	typ.At = p.peek().pos
	typ.Name = strings.ToLower(p.next().text)
	if p.take("(") {
		typ.Given = true
		for i, x := range []*int{&typ.Digits, &typ.Scale} {
			n := p.peek()
			if *x, err = strconv.Atoi(n.text); err != nil || n.kind != tokNumber {
				return typ, p.expected("a number of digits")
			}
			p.i++
			if i == 1 || !p.take(",") {
				break
			}
		}
		if !p.take(")") {
			return typ, p.expected(`")"`)
		}
	}
	return typ, nil
}

// caseOf parses a case.
func (p *parser) caseOf(depth int) (*Term, error) {
	at := p.next().pos
	if depth >= MaxDepth {
		return nil, p.tooDeep(at)
	}
	op := OpCase
	var args []*Term
	operand := func() error {
		x, err := p.or(depth + 1)
		args = append(args, x)
		return err
	}
	if !p.peek().is("when") {
		op = OpSwitch
		if err := operand(); err != nil {
			return nil, err
		}
	}
	for n := 0; p.take("when"); n++ {
		if err := operand(); err != nil {
			return nil, err
		}
		if !p.take("then") {
			return nil, p.expected(`"then"`)
		}
		if err := operand(); err != nil {
			return nil, err
		}
	}
	if len(args) < 2 {
		return nil, p.expected(`"when"`)
	}
	if p.take("else") {
		if err := operand(); err != nil {
			return nil, err
		}
	}
	if !p.take("end") {
		return nil, p.expected(`"when", "else" or "end"`)
	}
	return p.term(op, at, args...)
}

// typedWords are the words before the string of a typed literal.
var typedWords = map[string]bool{"date": true, "time": true, "timestamp": true, "float": true, "decimal": true}

// atLiteral reports whether a literal comes next.
func (p *parser) atLiteral() bool {
	t := p.peek()
	switch t.kind {
	case tokString, tokHex, tokNumber:
		return true
	case tokWord:
		w := strings.ToLower(t.text)
		return w == "true" || w == "false" || w == "null" || typedWords[w] && p.toks[p.i+1].kind == tokString
	}
	return false
}

// literal parses a literal; what it means is not known here.
func (p *parser) literal() *Term {
	t := p.next()
	out := newTerm(OpLiteral, t.pos)
	out.Text = p.s
	switch t.kind {
	case tokString:
		out.Literal = Literal{LiteralString, t.text}
	case tokHex:
		out.Literal = Literal{LiteralBytes, t.text}
	case tokNumber:
		out.Literal = Literal{LiteralNumber, t.text}
	default:
		w := strings.ToLower(t.text)
		out.Literal = Literal{LiteralWord, w}
		if typedWords[w] {
			out.Literal = Literal{w, p.next().text}
		}
	}
	return out
}
