package pred

import (
	"strconv"
	"strings"
)

// concat parses texts joined by ||. want is what an error says was expected.
func (p *parser) concat(depth int, want string) (*term, error) {
	return p.binary(depth, want, p.sum, "||")
}

// sum parses sums and differences. A sign before digits is part of the number, except after an operand.
func (p *parser) sum(depth int, want string) (*term, error) {
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
		var y *term
		if y, err = p.product(depth, "a value"); err == nil {
			x, err = p.term(t.text, t.pos, x, y)
		}
	}
	return nil, err
}

func (p *parser) product(depth int, want string) (*term, error) {
	return p.binary(depth, want, p.unary, "*", "/", "%")
}

// binary parses operands joined by one of some operators, from left to right.
func (p *parser) binary(depth int, want string, operand func(int, string) (*term, error), ops ...string) (*term,
	error) {
	x, err := operand(depth, want)
next:
	for err == nil {
		for _, op := range ops {
			if t := p.peek(); t.kind == tokMark && t.text == op {
				p.i++
				var y *term
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

func (p *parser) unary(depth int, want string) (*term, error) {
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
	return p.term(termNeg, t.pos, x)
}

// postfix parses a value with casts behind it.
func (p *parser) postfix(depth int, want string) (*term, error) {
	x, err := p.primary(depth, want)
	for err == nil && p.peek().is("::") {
		at := p.next().pos
		var typ castType
		if typ, err = p.castType(); err == nil {
			if x, err = p.term(termCast, at, x); err == nil {
				x.typ = typ
			}
		}
	}
	return x, err
}

// primary parses a literal, a column, a function, a case, or an expression in parentheses.
func (p *parser) primary(depth int, want string) (*term, error) {
	t := p.peek()
	switch after := p.toks[min(p.i+1, len(p.toks)-1)]; {
	case p.atLiteral():
		return p.literal()
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
func (p *parser) column(want string) (*term, error) {
	out := newTerm(termColumn, p.peek().pos)
	out.src.text, out.src.column = p.s, p.peek().pos
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
			out.column = JoinPath(names...)
			return out, nil
		}
	}
}

// call parses a function, or a cast.
func (p *parser) call(depth int) (*term, error) {
	t := p.next()
	name := strings.ToLower(t.text)
	p.i++ // (
	if depth >= MaxDepth {
		return nil, p.tooDeep(t.pos)
	}
	if name == termCast || name == termTryCast {
		return p.cast(depth, name, t.pos)
	}
	var args []*term
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

func (p *parser) cast(depth int, op string, at int) (*term, error) {
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
		out.typ = typ
	}
	return out, err
}

// castType parses the name of a type, and the digits and scale of a decimal.
func (p *parser) castType() (typ castType, err error) {
	t := p.peek()
	if t.kind != tokWord {
		return typ, p.expected("a type")
	}
	typ.name = strings.ToLower(p.next().text)
	if p.take("(") {
		typ.given = true
		for i, x := range []*int{&typ.digits, &typ.scale} {
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
	if _, ok := typ.target(); !ok {
		return typ, placed(p.s, t.pos, "%s", unknownType(typ))
	}
	return typ, nil
}

// caseOf parses a case.
func (p *parser) caseOf(depth int) (*term, error) {
	at := p.next().pos
	if depth >= MaxDepth {
		return nil, p.tooDeep(at)
	}
	op := termCase
	var args []*term
	operand := func() error {
		x, err := p.or(depth + 1)
		args = append(args, x)
		return err
	}
	if !p.peek().is("when") {
		op = termSwitch
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

// literal parses a literal.
func (p *parser) literal() (*term, error) {
	t := p.next()
	out := newTerm(termLiteral, t.pos)
	out.src.text, out.src.values = p.s, []int{t.pos}
	var err error
	switch t.kind {
	case tokString:
		out.value = String(t.text)
	case tokHex:
		out.value = Bytes([]byte(t.text))
	case tokNumber:
		out.value, err = parseNumber(t.text)
	default:
		switch w := strings.ToLower(t.text); w {
		case "null":
		case "true", "false":
			out.value = Bool(w == "true")
		default:
			out.value, err = parseAs(typed[w], p.next().text)
		}
	}
	if err != nil {
		return nil, placed(p.s, t.pos, "%s", reason(err))
	}
	return out, nil
}
