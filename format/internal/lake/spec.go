package lake

import (
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/option"
)

// SplitSpec splits the text of a spec into its terms, at commas outside of parentheses and quotation marks. Names of
// columns may be in quotation marks, as in other lists of names: "a, b", bucket(16, "c ""d""").
func SplitSpec(text string) (terms []string, wanted string) {
	depth, from := 0, 0
	quoted, ended := false, -1 // where a quoted name has ended, or its first half before a doubled mark
	begins := true             // a name may begin here
	for i := range len(text) {
		switch c := text[i]; {
		case quoted && c == '"':
			quoted, ended = false, i
		case quoted:
		case c == '"' && (begins || i == ended+1 && ended >= 0):
			quoted, begins = true, false
		case c == '(':
			depth, begins = depth+1, true
		case c == ')':
			depth, begins = max(0, depth-1), false
		case c == ',':
			if begins = true; depth == 0 {
				terms, from = append(terms, strings.TrimSpace(text[from:i])), i+1
			}
		case c != ' ':
			begins = false
		}
	}
	if quoted {
		return nil, `columns, or terms such as day(ts) or bucket(16, "a name"), with commas between them`
	}
	return append(terms, strings.TrimSpace(text[from:])), ""
}

// JoinSpec returns the text that SplitSpec splits into these terms. A term without parentheses and quotation marks is
// a column, which may have commas in its name.
func JoinSpec(terms []string) string {
	out := make([]string, len(terms))
	for i, s := range terms {
		if out[i] = s; !strings.ContainsAny(s, `("`) {
			out[i] = option.Quote(s)
		}
	}
	return strings.Join(out, ",")
}

// QuoteColumn returns the name of a column as it is written in a term.
func QuoteColumn(name string) string { return option.Quote(name, "()") }

// SpecOption makes an option of the terms of a spec.
func SpecOption[S any](value, help string, at func(*S) *[]string) option.Option[S] {
	set := func(f *[]string, v string) (wanted string) {
		*f, wanted = SplitSpec(v)
		return wanted
	}
	return option.Custom(format.OptionKey{Name: "partition-by", Values: value, Help: help}, at, set,
		func(f *[]string) (string, bool) { return JoinSpec(*f), len(*f) > 0 })
}

// ParseSpec parses the terms of a spec.
func ParseSpec(text []string) (out []Term, err error) {
	for _, s := range text {
		t, err := parseTerm(strings.TrimSpace(s))
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func parseTerm(s string) (Term, error) {
	wrong := fault.Invalidf("partition-by: %q: expected a column, or year, month, day or hour of one as in day(ts), "+
		"or bucket(16, id), truncate(4, name); a name with commas or parentheses in quotation marks", s)
	name, rest, ok := option.Unquote(s, "(")
	if !ok || name == "" || rest != "" && s[0] == '"' {
		return Term{}, wrong
	}
	if rest == "" {
		return Term{Transform: "identity", Column: name, Name: name}, nil
	}
	name = strings.TrimSuffix(strings.ToLower(name), "s") // days(ts), as in Spark
	t, args := Term{Transform: name}, rest[1:]
	if name == "bucket" || name == "truncate" {
		n, column, two := strings.Cut(args, ",")
		var err error
		if t.N, err = strconv.Atoi(strings.TrimSpace(n)); err != nil || !two || t.N < 1 || t.N > 1<<20 {
			return Term{}, wrong
		}
		args = column
	}
	if args = strings.TrimSpace(args); !strings.HasPrefix(args, `"`) { // a plain name may have parentheses
		t.Column, ok = strings.CutSuffix(args, ")")
		t.Column = strings.TrimSpace(t.Column)
	} else {
		t.Column, rest, ok = option.Unquote(args, ")")
		ok = ok && rest == ")"
	}
	suffix, known := map[string]string{"identity": "", "year": "_year", "month": "_month", "day": "_day",
		"hour": "_hour", "void": "_null", "bucket": "_bucket", "truncate": "_trunc"}[name]
	if t.Name = t.Column + suffix; !ok || !known || t.Column == "" {
		return Term{}, wrong
	}
	return t, nil
}
