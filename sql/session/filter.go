package session

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/sqltext"
	"stoa/pred"
)

// A filter of DuckDB's plan, as EXPLAIN writes it, is given to a scan as far as both mean the same by it: DuckDB
// filters again, so less is right, too, and more never. Whatever is not certain is left out.

// filterOf is what is understood of a filter over columns that have types of Arrow's; nil: nothing is. columns gives a
// column by its name in DuckDB.
func filterOf(text string, columns map[string]arrow.Field) *pred.Expr {
	for name := range columns {
		if !harmless(name) {
			return nil // EXPLAIN puts no quotation marks around names: what looks like an expression may be one
		}
	}
	p := &filterParser{tokens: lex(text), text: text, columns: columns}
	e, _ := p.or(true)
	if !p.done() {
		return nil
	}
	return e
}

// harmless reports whether a name, where it stands without quotation marks, cannot be taken for a condition or the
// beginning of one: it has words that mean nothing else. Those with more than one word are not understood themselves.
func harmless(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '.' || r == '-' })
	for _, w := range words {
		for i := range len(w) {
			if !sqltext.IsName(w[i]) {
				return false
			}
		}
		if reserved[strings.ToLower(w)] {
			return false
		}
	}
	if len(words) == 1 && name[0] >= '0' && name[0] <= '9' {
		return false // a number
	}
	return len(words) > 0 && strings.Trim(name, " ") == name && !strings.Contains(name, "--")
}

var reserved = map[string]bool{"and": true, "or": true, "not": true, "in": true, "is": true, "null": true,
	"between": true, "like": true, "true": true, "false": true, "cast": true, "case": true, "prefix": true,
	"suffix": true, "contains": true, "starts_with": true}

// loose are the words of expressions with an AND, or whole conditions, that no brackets are around.
var loose = map[string]bool{"case": true, "when": true, "then": true, "else": true, "end": true, "between": true}

type filterParser struct {
	tokens  []token
	at      int
	text    string
	columns map[string]arrow.Field
	broken  bool
	negated bool // an odd number of NOT is around what is read
}

func (p *filterParser) done() bool { return p.at == len(p.tokens) && !p.broken }

func (p *filterParser) peek(w string) bool { return p.at < len(p.tokens) && p.tokens[p.at].is(w) }

func (p *filterParser) take(w string) bool {
	if p.peek(w) {
		p.at++
		return true
	}
	return false
}

// skip goes to the end of what is not understood: to the next AND, OR, comma or bracket of the same depth.
func (p *filterParser) skip() {
	depth := 0
	for ; p.at < len(p.tokens); p.at++ {
		t := p.tokens[p.at]
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case (t.is(")") || t.is("]") || t.is("}")) && depth > 0:
			depth--
		case depth == 0 && (t.is(")") || t.is("and") || t.is("or")):
			return
		case depth == 0 && t.kind == word && loose[t.word]:
			p.broken = true // an AND that follows may be its own
		}
	}
}

// or reads terms joined by or. Of those joined by and, the ones that are not understood are left out where weaker is
// allowed; else, and if nothing is left, the whole is not understood: nil.
func (p *filterParser) or(weaker bool) (*pred.Expr, bool) {
	var all []*pred.Expr
	ok := true
	for {
		e := p.and(weaker)
		ok = ok && e != nil
		all = append(all, e)
		if !p.take("or") {
			break
		}
	}
	if !ok {
		return nil, false
	}
	if len(all) == 1 {
		return all[0], true
	}
	return pred.Or(all...), true
}

func (p *filterParser) and(weaker bool) *pred.Expr {
	var all []*pred.Expr
	complete := true
	for {
		e := p.term(weaker)
		if e == nil {
			p.skip()
			complete = false
		} else {
			all = append(all, e)
		}
		if !p.take("and") {
			break
		}
	}
	if len(all) == 0 || !complete && !weaker {
		return nil
	}
	return pred.And(all...)
}

func (p *filterParser) term(weaker bool) *pred.Expr {
	start := p.at
	switch {
	case p.take("not"):
		p.negated = !p.negated
		e := p.term(false) // of a negation nothing can be left out
		p.negated = !p.negated
		if e != nil {
			return pred.Not(e)
		}
	case p.peek("("):
		p.at++
		e, _ := p.or(weaker)
		if !p.take(")") {
			p.broken = true
			return nil
		}
		if e != nil && (p.at == len(p.tokens) || p.peek(")") || p.peek("and") || p.peek("or")) {
			return e
		}
	case p.at < len(p.tokens) && patterns[p.tokens[p.at].word] != "" && p.tokens[p.at].kind == word:
		p.at++
		if e := p.like(patterns[p.tokens[p.at-1].word]); e != nil {
			return e
		}
	default:
		if e := p.test(); e != nil && (p.at == len(p.tokens) || p.peek(")") || p.peek("and") || p.peek("or")) {
			return e
		}
	}
	p.at = start
	return nil
}

// patterns are the functions that DuckDB makes of patterns, with * for their text.
var patterns = map[string]string{"prefix": "*%", "suffix": "%*", "contains": "%*%", "starts_with": "*%"}

// like reads ("column", 'text').
func (p *filterParser) like(pattern string) *pred.Expr {
	if !p.take("(") {
		return nil
	}
	c, ok := p.column()
	if !ok || !p.take(",") {
		return nil
	}
	v, ok := p.value()
	if !ok || v.Kind != pred.KindString || !p.take(")") {
		return nil
	}
	escaped := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(v.Text)
	return p.bound(&pred.Expr{Op: pred.OpLike, Column: c, Escape: "!",
		Values: []pred.Value{pred.String(strings.Replace(pattern, "*", escaped, 1))}})
}

// column reads a column of the table.
func (p *filterParser) column() (string, bool) {
	if p.at == len(p.tokens) || p.tokens[p.at].kind != word && p.tokens[p.at].kind != quoted {
		return "", false
	}
	t := p.tokens[p.at]
	name := p.text[t.from:t.to]
	if t.kind == quoted {
		name = t.word
	}
	f, ok := p.columns[name]
	if !ok || !comparable(f.Type) {
		return "", false
	}
	p.at++
	return pred.JoinPath(f.Name), true
}

// comparable reports whether values of a type mean to DuckDB what they mean to us: those of 16-bit floats are wider
// there, and literals so nearer.
func comparable(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return comparable(t.ValueType)
	case *arrow.RunEndEncodedType, *arrow.Float16Type, arrow.UnionType, arrow.ExtensionType, *arrow.DurationType:
		return false
	}
	return true
}

var comparisons = map[string]pred.Op{"=": pred.OpEq, "!=": pred.OpNe, "<>": pred.OpNe, "<": pred.OpLt, "<=": pred.OpLe,
	">": pred.OpGt, ">=": pred.OpGe, "~~": pred.OpLike, "!~~": pred.OpNotLike}

// operator reads signs that stand together.
func (p *filterParser) operator() string {
	from := p.at
	for p.at < len(p.tokens) && p.tokens[p.at].kind == sign && strings.Contains("=!<>~", p.tokens[p.at].word) &&
		(p.at == from || p.tokens[p.at].from == p.tokens[p.at-1].to) {
		p.at++
	}
	if p.at == from {
		return ""
	}
	return p.text[p.tokens[from].from:p.tokens[p.at-1].to]
}

// test reads a test of a column.
func (p *filterParser) test() *pred.Expr {
	c, ok := p.column()
	if !ok {
		return nil
	}
	not := p.take("not")
	switch {
	case !not && p.take("is"):
		op := pred.OpIsNull
		if p.take("not") {
			op = pred.OpIsNotNull
		}
		if !p.take("null") {
			return nil
		}
		return p.bound(pred.Test(c, op))
	case p.take("in"):
		return p.in(c, not)
	case p.take("between"):
		return p.between(c, not)
	case not:
		return nil
	}
	op, ok := comparisons[p.operator()]
	if !ok {
		return nil
	}
	v, ok := p.value()
	if !ok {
		return nil
	}
	e := pred.Test(c, op, v)
	if op == pred.OpLike || op == pred.OpNotLike {
		e.Escape = pred.NoEscape
	}
	return p.bound(e)
}

// between reads LOW AND HIGH. Of a >= 1 and a < 5 DuckDB makes a BETWEEN 1 AND 5, too, and EXPLAIN does not say that
// the end does not belong to it: where more rows are right the ends belong to it, under a negation they do not.
func (p *filterParser) between(c string, not bool) *pred.Expr {
	low, ok := p.value()
	if !ok || !p.take("and") {
		return nil
	}
	high, ok := p.value()
	if !ok {
		return nil
	}
	e := p.bound(pred.Test(c, pred.OpBetween, low, high))
	if e != nil && p.negated != not {
		e = pred.And(pred.Test(c, pred.OpGt, low), pred.Test(c, pred.OpLt, high))
	}
	if e != nil && not {
		return pred.Not(e)
	}
	return e
}

func (p *filterParser) in(c string, not bool) *pred.Expr {
	if !p.take("(") {
		return nil
	}
	var values []pred.Value
	for {
		v, ok := p.value()
		if !ok {
			return nil
		}
		values = append(values, v)
		if p.take(")") {
			break
		}
		if !p.take(",") {
			return nil
		}
	}
	op := pred.OpIn
	if not {
		op = pred.OpNotIn
	}
	return p.bound(pred.Test(c, op, values...))
}

// bound is a test if it can be bound to the columns.
func (p *filterParser) bound(e *pred.Expr) *pred.Expr {
	var fields []arrow.Field
	for _, f := range p.columns {
		fields = append(fields, f)
	}
	if _, err := pred.Bind(e, arrow.NewSchema(fields, nil)); err != nil {
		return nil
	}
	return e
}
