package syntax

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"stoa/pred/internal/literal"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // an unquoted name or a keyword
	tokName             // a quoted name; text is without the quotation marks
	tokString           // text is without quotation marks
	tokHex              // text is the bytes
	tokNumber           // with its sign
	tokMark             // an operator, point, comma or parenthesis
)

type token struct {
	kind     tokenKind
	text     string
	pos, end int
}

// describe returns the token as it is shown in an error.
func (t token) describe(s string) string {
	if t.kind == tokEnd {
		return "the end"
	}
	raw := []rune(s[t.pos:t.end])
	if len(raw) > 40 {
		raw = append(raw[:39], '…')
	}
	if t.kind == tokWord || t.kind == tokMark {
		return `"` + string(raw) + `"`
	}
	return string(raw)
}

// is reports whether t is the keyword or mark w.
func (t token) is(w string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, w) || t.kind == tokMark && t.text == w
}

// marks are the marks; a longer one precedes its prefixes.
var marks = []string{"!~*", "!~", "~*", "~", "||", "::", "<=", ">=", "<>", "!=", "==", "<", ">", "=", "(", ")", ",",
	".", "+", "-", "*", "/", "%"}

// lex splits s into tokens; the last one is tokEnd.
func lex(s string) ([]token, error) {
	if i := invalidUTF8(s); i >= 0 {
		return nil, placed(s, i, "this byte is not UTF-8")
	}
	var out []token
	for i := 0; ; {
		i = skipBlank(s, i)
		if i == len(s) {
			return append(out, token{kind: tokEnd, pos: i, end: i}), nil
		}
		t, err := lexOne(s, i)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		i = t.end
	}
}

func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func skipBlank(s string, i int) int {
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f\v", s[i]) >= 0:
			i++
		case strings.HasPrefix(s[i:], "--"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return len(s)
			}
			i += n
		default:
			return i
		}
	}
	return i
}

// lexOne reads the token at i.
func lexOne(s string, i int) (token, error) {
	c := s[i]
	switch {
	case c == '\'':
		return lexQuoted(s, i, i, tokString, "a string that began here is not closed")
	case c == '"':
		return lexQuoted(s, i, i, tokName, "a name that began here is not closed")
	case (c == 'x' || c == 'X') && strings.HasPrefix(s[i+1:], "'"):
		t, err := lexQuoted(s, i, i+1, tokHex, "a binary literal that began here is not closed")
		return unhex(s, t, err)
	case c == '0' && len(s) > i+1 && (s[i+1] == 'x' || s[i+1] == 'X'):
		n := nameLen(s[i:])
		return unhex(s, token{tokHex, s[i+2 : i+n], i, i + n}, nil)
	}
	sign := 0
	if c == '+' || c == '-' {
		sign = 1
	}
	if n := literal.NumberLen(s[i+sign:]); n > 0 {
		n += i + sign
		if nameLen(s[n:]) > 0 {
			return token{}, placed(s, n, "expected an operator after the number %s, found %q", s[i:n],
				s[n:n+nameLen(s[n:])])
		}
		return token{tokNumber, s[i:n], i, n}, nil
	}
	if r, _ := utf8.DecodeRuneInString(s[i:]); isNameRune(r, true) {
		n := nameLen(s[i:])
		return token{tokWord, s[i : i+n], i, i + n}, nil
	}
	for _, m := range marks {
		if strings.HasPrefix(s[i:], m) {
			return token{tokMark, m, i, i + len(m)}, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return token{}, placed(s, i, "%q means nothing here", r)
}

// nameLen returns the number of bytes of name characters at the start of s.
func nameLen(s string) int {
	for i, r := range s {
		if !isNameRune(r, false) {
			return i
		}
	}
	return len(s)
}

// lexQuoted reads the quoted text at open. The token begins at i.
func lexQuoted(s string, i, open int, kind tokenKind, unclosed string) (token, error) {
	q := s[open : open+1]
	var b strings.Builder
	for j := open + 1; ; {
		n := strings.Index(s[j:], q)
		if n < 0 {
			return token{}, placed(s, i, "%s", unclosed)
		}
		b.WriteString(s[j : j+n])
		j += n + 1
		if !strings.HasPrefix(s[j:], q) {
			return token{kind, b.String(), i, j}, nil
		}
		b.WriteString(q)
		j++
	}
}

func unhex(s string, t token, err error) (token, error) {
	if err != nil {
		return t, err
	}
	b, err := hex.DecodeString(t.text)
	if err != nil {
		return t, placed(s, t.pos, "expected pairs of hexadecimal digits in the binary literal %s", s[t.pos:t.end])
	}
	t.text = string(b)
	return t, nil
}
