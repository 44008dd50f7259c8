// Package sqltext divides statements in SQL, as DuckDB writes it, into tokens: what runs statements has to find the
// tables and parameters in them.
package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token is a piece of a statement other than comments and blanks.
type Token struct {
	Kind     Kind
	From, To int    // bytes in the text
	Word     string // a word in lower case; the content of a quoted name or text
}

// Kind is what a token is.
type Kind int

// The kinds of tokens.
const (
	Word    Kind = iota // a keyword or name without quotes, or a number
	Quoted              // a name in double quotes
	Literal             // a text in single quotes, or between dollars
	Sign                // anything else: one character
)

// Is reports whether a token is that word, in any case, or that sign.
func (t Token) Is(w string) bool { return (t.Kind == Word || t.Kind == Sign) && t.Word == w }

// Lex splits a script into tokens. What is not closed extends to the end: DuckDB reports the error.
func Lex(s string) (out []Token) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsSpace(r):
			i += n
		case strings.HasPrefix(s[i:], "--"):
			i += upTo(s[i:], "\n")
		case strings.HasPrefix(s[i:], "/*"):
			i += comment(s[i:])
		case r == '\'' || r == '"':
			to, text := inQuotes(s, i)
			k := Literal
			if r == '"' {
				k = Quoted
			}
			out = append(out, Token{k, i, to, text})
			i = to
		case r == '$' && dollars(s[i:]) != "":
			mark := dollars(s[i:])
			to := i + len(mark) + upTo(s[i+len(mark):], mark)
			out = append(out, Token{Literal, i, to, strings.TrimSuffix(s[i+len(mark):to], mark)})
			i = to
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			to := i
			for to < len(s) {
				r, n := utf8.DecodeRuneInString(s[to:])
				if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					break
				}
				to += n
			}
			out = append(out, Token{Word, i, to, strings.ToLower(s[i:to])})
			i = to
		default:
			out = append(out, Token{Sign, i, i + n, s[i : i+n]})
			i += n
		}
	}
	return out
}

// upTo returns the number of bytes of s up to the end of the first mark, or all of them.
func upTo(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i + len(mark)
	}
	return len(s)
}

// comment returns the length of a comment, which may contain others.
func comment(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			if i++; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dollars returns the mark of a text between dollars, $$ or $name$; "" if there is none.
func dollars(s string) string {
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == '$' {
			return s[:i+1]
		}
		if c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && (i == 1 || c < '0' || c > '9') {
			break
		}
	}
	return ""
}

// inQuotes returns the end of a quoted part that starts at i, and its content. In a text after e, backslashes escape.
func inQuotes(s string, i int) (to int, text string) {
	q := s[i]
	escapes := q == '\'' && i > 0 && (s[i-1] == 'e' || s[i-1] == 'E') && (i == 1 || !IsName(s[i-2]))
	var b strings.Builder
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes && i+1 < len(s):
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1, b.String()
		}
		b.WriteByte(s[i])
	}
	return len(s), b.String()
}

// IsName reports whether a byte may be part of a name without quotes.
func IsName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// Quote returns a text as an SQL literal.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// QuoteName returns a name, quoted for SQL.
func QuoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
