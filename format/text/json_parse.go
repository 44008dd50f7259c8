package text

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"stoa/format"
)

// jsonParser reads one JSON text (RFC 8259).
type jsonParser struct {
	b       []byte
	at      int
	depth   int
	lenient bool   // keys that are not in the schema are skipped
	scratch []byte // for strings with escapes
	fresh   int64  // number of fields that look found
	most    int64  // the maximum of fresh
	filled  int64  // number of missing members, which are values without a text
	room    int64  // how many more of them the row may have
	deepest int64  // maximum nesting of arrays and objects in the row; 0: the default of format.Limits
}

func (p *jsonParser) reset(b []byte) { p.b, p.at, p.depth = b, 0, 0 }

// jsonError is an error at a byte of the text.
type jsonError struct {
	at  int
	err error
}

func (e *jsonError) Error() string { return e.err.Error() }
func (e *jsonError) Unwrap() error { return e.err }

func (p *jsonParser) fail(format string, args ...any) error {
	return &jsonError{p.at, fmt.Errorf(format, args...)}
}

// peek skips white space and returns the next byte; 0 at the end.
func (p *jsonParser) peek() byte {
	for p.at < len(p.b) {
		switch c := p.b[p.at]; c {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return c
		}
	}
	return 0
}

func (p *jsonParser) expect(c byte) error {
	if got := p.peek(); got != c {
		return p.unexpected(fmt.Sprintf("%q", c))
	}
	p.at++
	return nil
}

func (p *jsonParser) unexpected(want string) error {
	if p.at >= len(p.b) {
		return p.fail("the JSON text ends where %s is expected", want)
	}
	return p.fail("%q where %s is expected", p.b[p.at], want)
}

// end returns an error unless nothing but white space follows.
func (p *jsonParser) end() error {
	if p.peek() != 0 || p.at < len(p.b) {
		return p.fail("%q after the value", p.b[p.at])
	}
	return nil
}

func (p *jsonParser) enter() error {
	most := p.deepest
	if most == 0 {
		most = format.Limits{}.WithDefaults().Depth
	}
	if p.depth++; int64(p.depth) > most+1 { // the row itself is an object
		return limitError(fmt.Sprintf("more than %d levels of nested arrays and objects (depth limit)", most))
	}
	p.at++
	return nil
}

// list calls each for every element of the next array; each must consume one element.
func (p *jsonParser) list(each func() error) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return nil
		default:
			return p.unexpected("a comma or ]")
		}
	}
}

// object calls each for every member of the next object; each must consume the value. key is valid until then.
func (p *jsonParser) object(each func(key []byte) error) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.unexpected("a name in quotes")
		}
		key, err := p.text()
		if err == nil {
			err = p.expect(':')
		}
		if err == nil {
			err = each(key)
		}
		if err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return nil
		default:
			return p.unexpected("a comma or }")
		}
	}
}

// text consumes the next string. The result is valid until the next one is read.
func (p *jsonParser) text() ([]byte, error) {
	start := p.at + 1
	for i := start; i < len(p.b); i++ {
		switch c := p.b[i]; {
		case c == '"':
			p.at = i + 1
			return p.valid(start, p.b[start:i])
		case c == '\\':
			return p.escaped(start, i)
		case c < 0x20:
			p.at = i
			return nil, p.fail("the control character %q in a string", c)
		}
	}
	return nil, p.fail("the string is not closed")
}

func (p *jsonParser) valid(start int, s []byte) ([]byte, error) {
	if !utf8.Valid(s) {
		p.at = start
		return nil, p.fail("a string is not UTF-8")
	}
	return s, nil
}

// escaped is text for a string that begins at start and has its first escape at i.
func (p *jsonParser) escaped(start, i int) ([]byte, error) {
	out := append(p.scratch[:0], p.b[start:i]...)
	for i < len(p.b) {
		switch c := p.b[i]; {
		case c == '"':
			p.at, p.scratch = i+1, out
			return p.valid(start, out)
		case c < 0x20:
			p.at = i
			return nil, p.fail("the control character %q in a string", c)
		case c != '\\':
			out = append(out, c)
			i++
		default:
			n := 0
			if out, n = appendUnescaped(out, p.b[i:]); n == 0 {
				p.at = i
				return nil, p.fail("invalid escape")
			}
			i += n
		}
	}
	return nil, p.fail("the string is not closed")
}

// appendUnescaped appends the character of the escape sequence at the beginning of b; n is its length, 0 if it is
// invalid.
func appendUnescaped(out, b []byte) (_ []byte, n int) {
	if len(b) < 2 {
		return out, 0
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for k := range len(from) {
		if b[1] == from[k] {
			return append(out, to[k]), 2
		}
	}
	r, ok := hexRune(b)
	if !ok {
		return out, 0
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), 6
	}
	if low, ok := hexRune(b[6:]); ok {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return utf8.AppendRune(out, full), 12
		}
	}
	return utf8.AppendRune(out, utf8.RuneError), 6
}

func hexRune(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(v), err == nil
}

// word consumes a number, true, false or null, and returns its text.
func (p *jsonParser) word() ([]byte, error) {
	start := p.at
	for p.at < len(p.b) {
		c := p.b[p.at]
		if c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ':' {
			break
		}
		p.at++
	}
	w := p.b[start:p.at]
	if !isJSONWord(w) {
		p.at = start
		return nil, p.unexpected("a value")
	}
	return w, nil
}

func isJSONWord(w []byte) bool {
	switch string(w) {
	case "true", "false", "null":
		return true
	case "":
		return false
	}
	return isJSONNumber(w)
}

func isJSONNumber(w []byte) bool {
	if w[0] == '-' {
		w = w[1:]
	}
	n := digitRun(w)
	if n == 0 || n > 1 && w[0] == '0' {
		return false
	}
	w = w[n:]
	if len(w) > 0 && w[0] == '.' {
		n = digitRun(w[1:])
		if n == 0 {
			return false
		}
		w = w[1+n:]
	}
	if len(w) > 0 && w[0]|32 == 'e' {
		w = w[1:]
		if len(w) > 0 && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		n = digitRun(w)
		if n == 0 {
			return false
		}
		w = w[n:]
	}
	return len(w) == 0
}

func digitRun(w []byte) int {
	n := 0
	for n < len(w) && w[n] >= '0' && w[n] <= '9' {
		n++
	}
	return n
}

// skip consumes a value of any kind and returns its text.
func (p *jsonParser) skip() (raw []byte, err error) {
	c := p.peek()
	start := p.at
	switch c {
	case '{':
		err = p.object(func([]byte) error { _, err := p.skip(); return err })
	case '[':
		err = p.list(func() error { _, err := p.skip(); return err })
	case '"':
		_, err = p.text()
	default:
		_, err = p.word()
	}
	if err != nil {
		return nil, err
	}
	return p.b[start:p.at], nil
}
