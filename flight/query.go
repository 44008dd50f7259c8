package main

import (
	"fmt"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/pred"
)

// query is a statement that is run without an engine: select COLUMNS from TABLE where PREDICATE limit N.
type query struct {
	columns []string // nil: all
	count   bool     // count(*), and nothing else
	table   []string // its name, with those of the schema and the catalogue if they are given
	where   *pred.Expr
	limit   int64 // -1: none
}

// simple is the form of a query, for messages.
const simple = "select COLUMNS from TABLE [where PREDICATE] [limit N]"

// notSimple is an error about a statement that is valid SQL perhaps, but not of the form that is run here.
func notSimple(format string, args ...any) error {
	return fault.New(fault.Unsupported, fault.Span{}, "", "%s: this server runs only %s", fmt.Sprintf(format, args...),
		simple)
}

// word is a word, name, text or sign of a statement; text is what it says without quotation marks.
type word struct {
	text   string
	quoted bool // a name in double quotes
	at     int  // its first byte
}

// is reports whether a word is a keyword.
func (w word) is(key string) bool { return !w.quoted && strings.EqualFold(w.text, key) }

// wordAt returns the word that begins at or after byte at of a statement; its text is "" at the end.
func wordAt(s string, at int) (w word, next int, err error) {
	for at < len(s) && strings.IndexByte(" \t\r\n", s[at]) >= 0 {
		at++
	}
	w.at = at
	if at == len(s) {
		return w, at, nil
	}
	if q := s[at]; q == '"' || q == '\'' {
		var b strings.Builder
		for i := at + 1; i < len(s); i++ {
			if s[i] != q {
				b.WriteByte(s[i])
			} else if i+1 < len(s) && s[i+1] == q {
				b.WriteByte(q)
				i++
			} else {
				w.text, w.quoted = b.String(), true
				return w, i + 1, nil
			}
		}
		return w, at, fault.Invalidf("the quotation mark at byte %d has no end", at)
	}
	end := at
	for end < len(s) && (s[end] == '_' || s[end] >= 0x80 || isLetter(s[end]) || s[end] >= '0' && s[end] <= '9') {
		end++
	}
	end = max(end, at+1)
	w.text = s[at:end]
	return w, end, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// parser reads a statement word by word.
type parser struct {
	s    string
	now  word
	next int
	err  error
}

func (p *parser) step() {
	if p.err == nil {
		p.now, p.next, p.err = wordAt(p.s, p.next)
	}
}

// parse returns the query of a statement.
func parse(statement string) (*query, error) {
	p := &parser{s: strings.TrimRight(strings.TrimSpace(statement), "; \t\r\n")}
	p.step()
	q := &query{limit: -1}
	if p.err == nil && !p.now.is("select") {
		return nil, notSimple("%q does not begin with select", short(p.s))
	}
	p.step()
	if err := p.list(q); err != nil {
		return nil, err
	}
	p.step()
	if err := p.name(q); err != nil {
		return nil, err
	}
	if err := p.rest(q); err != nil {
		return nil, err
	}
	return q, p.err
}

// list reads the columns up to from.
func (p *parser) list(q *query) error {
	if p.now.text == "*" && !p.now.quoted {
		if p.step(); p.err != nil || p.now.is("from") {
			return p.err
		}
		return notSimple("%q after *", p.now.text)
	}
	for p.err == nil {
		path, err := p.path()
		if err != nil {
			return err
		}
		if p.now.text == "(" && !p.now.quoted {
			return p.counting(q, path)
		}
		q.columns = append(q.columns, strings.Join(path, "."))
		switch {
		case p.now.is("from"):
			return nil
		case p.now.text != "," || p.now.quoted:
			return notSimple("%q after the column %s", p.now.text, strings.Join(path, "."))
		}
		p.step()
	}
	return p.err
}

// counting reads (*) from.
func (p *parser) counting(q *query, path []string) error {
	if q.columns != nil || !strings.EqualFold(strings.Join(path, "."), "count") {
		return notSimple("a function")
	}
	for _, want := range []string{"(", "*", ")", "from"} {
		if p.err != nil || !p.now.is(want) {
			return notSimple("a function")
		}
		if want != "from" {
			p.step()
		}
	}
	q.count = true
	return p.err
}

// path reads names that points part, and quotes them as columns are quoted where that is needed.
func (p *parser) path() (path []string, err error) {
	for {
		w := p.now
		if p.err != nil {
			return nil, p.err
		}
		if !w.quoted && (w.text == "" || !isLetter(w.text[0]) && w.text[0] != '_' && w.text[0] < 0x80) {
			return nil, notSimple("%q at byte %d, where a column is expected", w.text, w.at)
		}
		if w.quoted && p.s[w.at] == '\'' {
			return nil, notSimple("a text at byte %d, where a column is expected", w.at)
		}
		name := w.text
		if strings.ContainsAny(name, "\".*, ") {
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		path = append(path, name)
		if p.step(); p.err != nil || p.now.text != "." || p.now.quoted {
			return path, p.err
		}
		p.step()
	}
}

// name reads the name of the table, of at most three parts.
func (p *parser) name(q *query) error {
	for p.err == nil {
		if p.now.text == "" && !p.now.quoted || strings.ContainsAny(p.now.text, "()") && !p.now.quoted {
			return notSimple("no table after from")
		}
		q.table = append(q.table, p.now.text)
		if p.step(); p.now.text != "." || p.now.quoted {
			break
		}
		p.step()
	}
	if len(q.table) > 3 {
		return fault.Invalidf("the name of a table has at most three parts: catalogue, schema, table")
	}
	return p.err
}

// rest reads where and limit.
func (p *parser) rest(q *query) error {
	if p.now.is("where") {
		from := p.next
		end, limit := len(p.s), -1
		depth := 0
		for p.err == nil {
			if p.step(); p.err != nil || p.now.text == "" && !p.now.quoted {
				break
			}
			switch {
			case p.now.quoted:
			case p.now.text == "(":
				depth++
			case p.now.text == ")":
				depth--
			case depth == 0 && p.now.is("limit"):
				end, limit = p.now.at, p.now.at
			case depth == 0 && (p.now.is("group") || p.now.is("order") || p.now.is("having")):
				return notSimple("%s by", strings.ToLower(p.now.text))
			}
			if limit >= 0 {
				break
			}
		}
		if p.err != nil {
			return p.err
		}
		var err error
		if q.where, err = pred.Parse(strings.TrimSpace(p.s[from:end])); err != nil {
			return err
		}
	}
	if p.now.is("limit") {
		p.step()
		n, err := strconv.ParseInt(p.now.text, 10, 64)
		if err != nil || n < 0 {
			return fault.Invalidf("limit %q is not a number of rows", p.now.text)
		}
		q.limit = n
		p.step()
	}
	if p.err == nil && (p.now.text != "" || p.now.quoted) {
		return notSimple("%q after the table", p.now.text)
	}
	return p.err
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
