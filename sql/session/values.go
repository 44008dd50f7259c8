package session

import (
	"strings"

	"stoa/pred"
)

// value parses a literal: a number, true, false, a text, or a text with its type, 'text'::TYPE or CAST('text' AS TYPE).
func (p *filterParser) value() (pred.Value, bool) {
	none := pred.Value{}
	if p.at == len(p.tokens) {
		return none, false
	}
	t := p.tokens[p.at]
	switch {
	case t.is("cast"):
		return p.cast()
	case t.kind == literal:
		p.at++
		if !p.take(":") {
			return pred.String(t.word), true
		}
		if !p.take(":") {
			return none, false
		}
		return typed(t.word, p.typeName())
	case t.is("true") || t.is("false"):
		p.at++
		return pred.Bool(t.word == "true"), true
	}
	return p.number()
}

func (p *filterParser) cast() (pred.Value, bool) {
	p.at++
	if !p.take("(") || p.at == len(p.tokens) || p.tokens[p.at].kind != literal {
		return pred.Value{}, false
	}
	text := p.tokens[p.at].word
	p.at++
	if !p.take("as") {
		return pred.Value{}, false
	}
	name := p.typeName()
	if !p.take(")") {
		return pred.Value{}, false
	}
	return typed(text, name)
}

// typeName parses the name of a type, of any number of words.
func (p *filterParser) typeName() string {
	var words []string
	for p.at < len(p.tokens) && p.tokens[p.at].kind == word && !p.peek("and") && !p.peek("or") && !p.peek("as") {
		words = append(words, p.tokens[p.at].word)
		p.at++
	}
	return strings.Join(words, " ")
}

// number parses a number: digits, a point, an exponent, a leading sign.
func (p *filterParser) number() (pred.Value, bool) {
	from := p.at
	if p.take("-") && p.at == len(p.tokens) {
		return pred.Value{}, false
	}
	end := p.tokens[from].to
	for ; p.at < len(p.tokens); p.at++ {
		t := p.tokens[p.at]
		joined := p.at == from || t.from == end
		exponent := strings.HasSuffix(p.text[p.tokens[from].from:end], "e")
		number := t.kind == word && t.word[0] >= '0' && t.word[0] <= '9' || t.is(".") ||
			exponent && (t.is("+") || t.is("-"))
		if !joined || !number {
			break
		}
		end = t.to
	}
	if p.at == from {
		return pred.Value{}, false
	}
	return parsed(p.text[p.tokens[from].from:end])
}

// parsed returns a literal of predicates.
func parsed(text string) (pred.Value, bool) {
	e, err := pred.Parse("x = " + text)
	if err != nil || e.Op != pred.OpEq || len(e.Values) != 1 {
		return pred.Value{}, false
	}
	return e.Values[0], true
}

// typed returns a text that is a value of a type of DuckDB's.
func typed(text, name string) (pred.Value, bool) {
	switch name {
	case "varchar":
		return pred.String(text), true
	case "date":
		return parsed("date " + quote(text))
	case "time", "time_ns":
		return parsed("time " + quote(text))
	case "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns":
		return parsed("timestamp " + quote(text))
	case "timestamp with time zone":
		if zone := strings.LastIndexAny(text, "+-"); zone > len("2000-01-01") && !strings.Contains(text[zone:], ":") {
			text += ":00" // DuckDB prints whole hours without minutes
		}
		return parsed("timestamp " + quote(text))
	case "blob":
		return blob(text)
	}
	return pred.Value{}, false
}

// blob parses bytes in DuckDB's notation: \xAB for those other than plain characters.
func blob(text string) (pred.Value, bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		if i+3 >= len(text) || text[i+1] != 'x' {
			return pred.Value{}, false
		}
		v, ok := parsed("0x" + text[i+2:i+4])
		if !ok {
			return pred.Value{}, false
		}
		out = append(out, v.Text...)
		i += 3
	}
	return pred.Bytes(out), true
}
