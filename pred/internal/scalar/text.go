package scalar

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"stoa/fault"
)

// texts returns a strict node of strings, computed from those of x.
func texts(name string, x *Node, f func(s string) string) (*Node, error) {
	if x.Type.Kind == Null {
		return null, nil
	}
	if x.Type.Kind != String {
		return nil, fault.Invalidf("%s is for strings, not for %s", name, x.Type)
	}
	return node(x.Type, []*Node{x}, func(r *run, live []bool) *vec {
		a := x.eval(r, live)
		v := r.alloc(x.Type, r.nulls(a))
		for i := range v.texts {
			v.texts[i] = ""
			if asked(live, v.null, i) {
				v.texts[i] = f(a.texts[i&a.mask])
			}
		}
		return v
	}), nil
}

// Lower returns a string in lower case, character by character.
func Lower(x *Node) (*Node, error) { return texts("lower", x, LowerText) }

// Upper returns a string in upper case, character by character.
func Upper(x *Node) (*Node, error) {
	return texts("upper", x, func(s string) string { return mapText(s, upperRune) })
}

// LowerText returns s in lower case, character by character.
func LowerText(s string) string { return mapText(s, lowerRune) }

func lowerRune(r rune) rune {
	if r == 'İ' {
		return 'i'
	}
	return unicode.ToLower(r)
}

func upperRune(r rune) rune {
	if r == 'ß' {
		return 'ẞ'
	}
	return unicode.ToUpper(r)
}

// mapText maps the characters of s; bytes that are no UTF-8 stay as they are.
func mapText(s string, f func(rune) rune) string {
	for i, r := range s {
		if r == utf8.RuneError || f(r) == r {
			continue
		}
		var b strings.Builder
		b.Grow(len(s) + 4)
		b.WriteString(s[:i])
		for s = s[i:]; s != ""; {
			r, n := utf8.DecodeRuneInString(s)
			if r == utf8.RuneError {
				b.WriteString(s[:n])
			} else {
				b.WriteRune(f(r))
			}
			s = s[n:]
		}
		return b.String()
	}
	return s
}

// The ends of a string that Trim cuts.
const (
	Left  = 1
	Right = 2
)

// Trim returns a string without the characters of set, a constant, at its ends.
func Trim(x *Node, set string, ends int) (*Node, error) {
	return texts("trim", x, func(s string) string {
		if ends&Left != 0 {
			s = strings.TrimLeft(s, set)
		}
		if ends&Right != 0 {
			s = strings.TrimRight(s, set)
		}
		return s
	})
}

func length(x *Node) (*Node, error) {
	switch x.Type.Kind {
	case Null:
		return null, nil
	case String:
		return ints(x, func(v *vec, i int) int64 { return int64(utf8.RuneCountInString(v.texts[i])) }), nil
	case Binary:
		return ints(x, func(v *vec, i int) int64 { return int64(len(v.texts[i])) }), nil
	}
	return nil, fault.Invalidf("length is for strings, binary and lists, not for %s", x.Type)
}

// Substr returns the count characters of x from the one numbered from 1 on; from the end if from is negative. count may
// be nil: all.
func Substr(x, from, count *Node) (*Node, error) {
	args := []*Node{x, from}
	if count != nil {
		args = append(args, count)
	}
	for i, a := range args {
		if want := [...]Kind{String, Int, Int}[i]; a.Type.Kind == Null {
			return null, nil
		} else if a.Type.Kind != want {
			return nil, fault.Invalidf("substr takes a string and one or two integers, not %s", a.Type)
		}
	}
	return node(x.Type, args, func(r *run, live []bool) *vec {
		in := make([]*vec, len(args))
		for i, a := range args {
			in[i] = a.eval(r, live)
		}
		v := r.alloc(x.Type, r.nulls(in...))
		for i := range v.texts {
			v.texts[i] = ""
			if !asked(live, v.null, i) {
				continue
			}
			n := int64(1) << 40
			if count != nil {
				n = in[2].ints[i&in[2].mask]
			}
			v.texts[i] = substr(in[0].texts[i&in[0].mask], in[1].ints[i&in[1].mask], n)
		}
		return v
	}), nil
}

func substr(s string, from, n int64) string {
	const far = 1 << 40 // no string is longer
	from, n = max(-far, min(from, far)), max(-far, min(n, far))
	total := int64(utf8.RuneCountInString(s))
	if from < 0 {
		from = max(total+from, min(total+from, 0)) + 1
	}
	low, high := from-1, from-1+n
	if n < 0 {
		low, high = high, low
	}
	return s[byteOf(s, low):byteOf(s, max(low, high))]
}

// byteOf returns where character i of s begins.
func byteOf(s string, i int64) int {
	if i <= 0 {
		return 0
	}
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

// Concat returns a || b.
func Concat(a, b *Node) (*Node, error) {
	if a.Type.Kind == Null || b.Type.Kind == Null {
		return null, nil
	}
	if a.Type.Kind != String || b.Type.Kind != String {
		return nil, fault.Invalidf("|| is for strings, not for %s and %s", a.Type, b.Type)
	}
	return node(a.Type, []*Node{a, b}, func(r *run, live []bool) *vec {
		x, y := a.eval(r, live), b.eval(r, live)
		v := r.alloc(a.Type, r.nulls(x, y))
		for i := range v.texts {
			v.texts[i] = ""
			if asked(live, v.null, i) {
				v.texts[i] = x.texts[i&x.mask] + y.texts[i&y.mask]
			}
		}
		return v
	}), nil
}

// Match returns whether f is true of a string; with binary also of bytes.
func Match(name string, x *Node, binary bool, f func(s string) bool) (*Node, error) {
	if x.Type.Kind == Null {
		return null, nil
	}
	if x.Type.Kind != String && !(binary && x.Type.Kind == Binary) {
		return nil, fault.Invalidf("%s is for strings, not for %s", name, x.Type)
	}
	return node(Type{Kind: Bool}, []*Node{x}, func(r *run, live []bool) *vec {
		a := x.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(a))
		for i := range v.bools {
			v.bools[i] = asked(live, v.null, i) && f(a.texts[i&a.mask])
		}
		return v
	}), nil
}

// Match2 returns whether f is true of two strings.
func Match2(name string, a, b *Node, f func(s, t string) bool) (*Node, error) {
	if a.Type.Kind == Null || b.Type.Kind == Null {
		return null, nil
	}
	if a.Type.Kind != String || b.Type.Kind != String {
		return nil, fault.Invalidf("%s is for strings, not for %s and %s", name, a.Type, b.Type)
	}
	return node(Type{Kind: Bool}, []*Node{a, b}, func(r *run, live []bool) *vec {
		x, y := a.eval(r, live), b.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(x, y))
		for i := range v.bools {
			v.bools[i] = asked(live, v.null, i) && f(x.texts[i&x.mask], y.texts[i&y.mask])
		}
		return v
	}), nil
}

// Regexp compiles a pattern of RE2; with fold it does not distinguish case, with whole it has to match all of a text.
func Regexp(pattern string, fold, whole bool) (*regexp.Regexp, error) {
	if whole {
		pattern = `\A(?:` + pattern + `)\z`
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fault.Invalidf("the regular expression is wrong: %s", strings.TrimPrefix(err.Error(),
			"error parsing regexp: "))
	}
	return re, nil
}

// Text returns the text of a constant string; false if n is none.
func (n *Node) Text() (string, bool) {
	if n.one == nil || n.Type.Kind != String || n.one.isNull(0) {
		return "", false
	}
	return n.one.texts[0], true
}

// Integer returns the value of a constant integer; false if n is none.
func (n *Node) Integer() (int64, bool) {
	if n.one == nil || n.Type.Kind != Int || n.one.isNull(0) {
		return 0, false
	}
	return n.one.ints[0], true
}
