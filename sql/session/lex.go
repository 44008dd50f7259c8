package session

import (
	"strings"

	"stoa/internal/sqltext"
)

// A token is a piece of a statement other than comments and blanks.
type token struct {
	kind     kind
	from, to int    // bytes in the text
	word     string // a word in lower case; the content of a quoted name or text
}

type kind int

const (
	word    = kind(sqltext.Word)
	quoted  = kind(sqltext.Quoted)
	literal = kind(sqltext.Literal)
	sign    = kind(sqltext.Sign)
)

// lex splits a script into tokens.
func lex(s string) (out []token) {
	for _, t := range sqltext.Lex(s) {
		out = append(out, token{kind(t.Kind), t.From, t.To, t.Word})
	}
	return out
}

// Statements splits a script at its semicolons. whole reports whether the last statement ends with one, or is empty:
// then the input is complete.
func Statements(script string) (out []string, whole bool) {
	from, any := 0, false
	for _, t := range lex(script) {
		if t.kind == sign && t.word == ";" {
			if any {
				out = append(out, strings.TrimSpace(script[from:t.from]))
			}
			from, any = t.to, false
			continue
		}
		any = true
	}
	if any {
		out = append(out, strings.TrimSpace(script[from:]))
	}
	return out, !any
}

// is reports whether a token is that word, in any case.
func (t token) is(w string) bool {
	return t.kind == word && t.word == w || t.kind == sign && t.word == w
}

// quote returns a text as an SQL literal.
func quote(s string) string { return sqltext.Quote(s) }

// quoteName returns a name, quoted for SQL.
func quoteName(s string) string { return sqltext.QuoteName(s) }
