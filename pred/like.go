package pred

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"stoa/fault"
	"stoa/pred/internal/syntax"
)

// pattern is a parsed like pattern: a sequence of texts and wildcards.
type pattern struct {
	steps []step
	bytes bool   // a character is a byte
	shape shape  // the simplest way to match it
	text  string // the text of shapes other than general; else the text before the first wildcard
}

// step is one element of a pattern.
type step struct {
	kind stepKind
	text string // of stepText
}

type stepKind uint8

const (
	stepText stepKind = iota
	stepOne           // _
	stepAny           // %
)

type shape uint8

const (
	general  shape = iota
	exact          // text
	prefix         // text%
	suffix         // %text
	contains       // %text%
	anything       // %
)

// parsePattern parses the pattern in v, a string or bytes (or null, for which the result is meaningless). binary says
// that a character is a byte.
func parsePattern(v Value, escape string, binary bool) (*pattern, error) {
	if v.Kind == KindNull {
		return &pattern{}, nil
	}
	if !v.isText() {
		return nil, fault.Invalidf("the pattern of like must be a string, not %s", v)
	}
	esc, escapes := rune('\\'), true
	switch {
	case escape == syntax.NoEscape:
		escapes = false
	case utf8.RuneCountInString(escape) > 1 || !utf8.ValidString(escape):
		return nil, fault.Invalidf("escape %s must be one character", syntax.Quote(escape))
	case escape != "":
		esc, _ = utf8.DecodeRuneInString(escape)
	}
	p := &pattern{bytes: binary}
	var lit strings.Builder
	add := func(k stepKind) {
		if lit.Len() > 0 {
			p.steps = append(p.steps, step{stepText, lit.String()})
			lit.Reset()
		}
		if n := len(p.steps); k == stepOne || k == stepAny && (n == 0 || p.steps[n-1].kind != stepAny) {
			p.steps = append(p.steps, step{kind: k})
		}
	}
	for s := v.Text; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case escapes && r == esc && (r != utf8.RuneError || n > 1):
			if len(s) == n {
				return nil, fault.Invalidf(
					"the pattern %s ends with its escape character; to mean that character, double it", v)
			}
			s = s[n:]
			_, n = utf8.DecodeRuneInString(s)
			lit.WriteString(s[:n])
		case r == '%':
			add(stepAny)
		case r == '_':
			add(stepOne)
		default:
			lit.WriteString(s[:n])
		}
		s = s[n:]
	}
	add(stepText)
	p.classify()
	return p, nil
}

// classify sets the shape.
func (p *pattern) classify() {
	if len(p.steps) > 0 && p.steps[0].kind == stepText {
		p.text = p.steps[0].text
	}
	kinds := ""
	for _, s := range p.steps {
		kinds += string("t_%"[s.kind])
		if len(kinds) > 3 {
			return
		}
	}
	switch kinds {
	case "", "t":
		p.shape = exact
	case "%":
		p.shape = anything
	case "t%":
		p.shape = prefix
	case "%t":
		p.shape, p.text = suffix, p.steps[1].text
	case "%t%":
		p.shape, p.text = contains, p.steps[1].text
	}
}

// match reports whether the pattern matches the whole of b.
func (p *pattern) match(b []byte) bool {
	switch p.shape {
	case exact:
		return string(b) == p.text
	case prefix:
		return len(b) >= len(p.text) && string(b[:len(p.text)]) == p.text
	case suffix:
		return len(b) >= len(p.text) && string(b[len(b)-len(p.text):]) == p.text
	case contains:
		return strings.Contains(unsafe.String(unsafe.SliceData(b), len(b)), p.text)
	case anything:
		return true
	}
	return p.search(b)
}

// search matches any pattern. If the steps after the last % do not match, that % consumes one more character; earlier
// ones need no backtracking.
func (p *pattern) search(b []byte) bool {
	i, s := 0, 0
	back, from := -1, 0 // the step after the last %, and where it was tried
	for {
		switch {
		case s == len(p.steps):
			if i == len(b) {
				return true
			}
		case p.steps[s].kind == stepAny:
			s++
			back, from = s, i
			continue
		case p.steps[s].kind == stepOne:
			if i < len(b) {
				i += p.width(b[i:])
				s++
				continue
			}
		default:
			j := p.find(b[i:], p.steps[s].text, s == back)
			if j >= 0 {
				if s == back {
					from = i + j
				}
				i += j + len(p.steps[s].text)
				s++
				continue
			}
			if s == back {
				return false
			}
		}
		if back < 0 || from >= len(b) {
			return false
		}
		from += p.width(b[from:])
		i, s = from, back
	}
}

// find returns the position of text in b, at its start or anywhere; -1 if it is not there.
func (*pattern) find(b []byte, text string, anywhere bool) int {
	if anywhere {
		return strings.Index(unsafe.String(unsafe.SliceData(b), len(b)), text)
	}
	if len(b) >= len(text) && string(b[:len(text)]) == text {
		return 0
	}
	return -1
}

// width returns the length in bytes of the character at the start of b.
func (p *pattern) width(b []byte) int {
	if p.bytes {
		return 1
	}
	_, n := utf8.DecodeRune(b)
	return n
}
