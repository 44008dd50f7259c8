package syntax

import (
	"fmt"
	"strings"
)

// Term is a part of a parsed predicate: an operator or function with its operands.
type Term struct {
	Op      string // see below; otherwise the name of a function
	Args    []*Term
	Column  string // of OpColumn: the path
	Literal Literal
	Value   fmt.Stringer // of OpLiteral: what it means, if that is known; it is printed in place of the literal
	Escape  string       // of like and ilike: see NoEscape
	Type    CastType
	Text    string // the text that the term was parsed from
	At      int    // its place there: that of the operator, the name, the literal
	Inside  bool   // of not: it was written inside of the test, as in "is not null"

	paren bool // it was in parentheses
	depth int
}

// The operators of terms that are not written like a function or a binary operator.
const (
	OpLiteral = "literal"
	OpColumn  = "column"
	OpCase    = "case"    // when, then, when, then …, else
	OpSwitch  = "case of" // the operand, then as case
	OpCast    = "cast"
	OpTryCast = "try_cast"
	OpNeg     = "neg"
)

// Literal is a literal as it is written.
type Literal struct {
	Kind string // one of those below, or the word before a string: date, time, timestamp, float, decimal
	Text string // without quotation marks; of LiteralBytes the bytes
}

// The kinds of literals.
const (
	LiteralWord   = "word" // null, true, false
	LiteralNumber = "number"
	LiteralString = "string"
	LiteralBytes  = "bytes"
)

func (l Literal) String() string {
	switch l.Kind {
	case LiteralWord, LiteralNumber:
		return l.Text
	case LiteralString:
		return Quote(l.Text)
	case LiteralBytes:
		return fmt.Sprintf("x'%x'", l.Text)
	}
	return l.Kind + " " + Quote(l.Text)
}

// CastType is the type of a cast, as written.
type CastType struct {
	Name          string
	Digits, Scale int
	Given         bool // Digits and Scale are
	At            int  // where it is in the text
}

func (t CastType) String() string {
	if t.Given {
		return fmt.Sprintf("%s(%d, %d)", t.Name, t.Digits, t.Scale)
	}
	return t.Name
}

// MaxDepth is how deep parentheses, not, functions and case nest.
const MaxDepth = 200

// maxTermDepth is how deep terms nest, counting chains of operators.
const maxTermDepth = 1000

// NoEscape is the Escape of a pattern in which only % and _ are special.
const NoEscape = "none"

func newTerm(op string, at int, args ...*Term) *Term {
	t := &Term{Op: op, At: at, Args: args}
	for _, a := range args {
		t.depth = max(t.depth, a.depth+1)
	}
	return t
}

// With returns a term at the place of t with another operator and other operands.
func (t *Term) With(op string, args []*Term) *Term {
	out := newTerm(op, t.At, args...)
	out.Text = t.Text
	return out
}

// IsColumn reports whether t is a column.
func (t *Term) IsColumn() bool { return t.Op == OpColumn }

// IsLiteral reports whether t is a literal.
func (t *Term) IsLiteral() bool { return t.Op == OpLiteral }

// IsTruth reports whether t is the literal true, false or null.
func (t *Term) IsTruth() bool { return t.IsLiteral() && t.Literal.Kind == LiteralWord }

// Columns adds the paths in t to out, unless they have been seen.
func (t *Term) Columns(seen map[string]bool, out []string) []string {
	if t.IsColumn() && !seen[t.Column] {
		seen[t.Column] = true
		out = append(out, t.Column)
	}
	for _, a := range t.Args {
		out = a.Columns(seen, out)
	}
	return out
}

// Quote returns a string literal.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// binding is how tightly the operators of terms bind; what is not here needs no parentheses.
var binding = map[string]int{
	"or": 1, "and": 2, "not": 3,
	"=": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "~": 4, "~*": 4, "is null": 4, "in": 4, "between": 4, "like": 4,
	"ilike": 4,
	"||":    5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, OpNeg: 8, OpCast: 9,
}

// termWords have to be quoted in terms as the first name of a column.
var termWords = map[string]bool{"case": true, "when": true, "then": true, "else": true, "end": true, "ilike": true,
	"escape": true}

// String returns t in the syntax of Parse.
func (t *Term) String() string {
	var b strings.Builder
	t.print(&b, 0)
	return b.String()
}

// print writes t, in parentheses if it binds less than above.
func (t *Term) print(b *strings.Builder, above int) {
	own := binding[t.Op]
	if t.Op == "not" && t.isNegated() {
		own = 4
	}
	if own != 0 && own <= above {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch t.Op {
	case OpLiteral:
		t.printLiteral(b, above)
	case OpColumn:
		b.WriteString(printTermPath(t.Column))
	case OpCase, OpSwitch:
		t.printCase(b)
	case OpCast:
		t.Args[0].print(b, own-1)
		b.WriteString("::" + t.Type.String())
	case OpTryCast:
		b.WriteString("try_cast(")
		t.Args[0].print(b, 0)
		b.WriteString(" as " + t.Type.String() + ")")
	case OpNeg:
		b.WriteString("- ")
		t.Args[0].print(b, own-1)
	case "not":
		if t.isNegated() {
			t.Args[0].printTest(b, "not ")
			return
		}
		b.WriteString("not ")
		t.Args[0].print(b, own-1)
	case "and", "or":
		for i, a := range t.Args {
			if i > 0 {
				b.WriteString(" " + t.Op + " ")
			}
			a.print(b, own)
		}
	default:
		if own == 4 {
			t.printTest(b, "")
			return
		}
		t.printCall(b, own)
	}
}

// printLiteral writes a literal; a sign after an operator would begin a number of its own.
func (t *Term) printLiteral(b *strings.Builder, above int) {
	s := t.Literal.String()
	if t.Value != nil {
		s = t.Value.String()
	}
	if above > 5 && strings.HasPrefix(s, "-") {
		s = "(" + s + ")"
	}
	b.WriteString(s)
}

// isNegated reports whether t is "not" of a test that is written with not inside.
func (t *Term) isNegated() bool {
	switch t.Args[0].Op {
	case "is null", "in", "between", "like", "ilike", "~", "~*":
		return true
	}
	return false
}

// printTest writes a test; not is "not " or empty.
func (t *Term) printTest(b *strings.Builder, not string) {
	t.Args[0].print(b, 4)
	switch t.Op {
	case "is null":
		b.WriteString(" is " + not + "null")
		return
	case "~", "~*":
		b.WriteString(" " + strings.TrimSpace(strings.ReplaceAll(not, "not", "!")) + t.Op + " ")
	default:
		b.WriteString(" " + not + t.Op + " ")
	}
	switch t.Op {
	case "in":
		b.WriteByte('(')
		t.printArgs(b, t.Args[1:])
		b.WriteByte(')')
	case "between":
		t.Args[1].print(b, 4)
		b.WriteString(" and ")
		t.Args[2].print(b, 4)
	default:
		t.Args[1].print(b, 4)
	}
	switch {
	case t.Escape == NoEscape:
		b.WriteString(" escape ''")
	case t.Escape != "":
		b.WriteString(" escape " + Quote(t.Escape))
	}
}

func (t *Term) printArgs(b *strings.Builder, args []*Term) {
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		a.print(b, 0)
	}
}

// printCall writes a binary operator or a function.
func (t *Term) printCall(b *strings.Builder, own int) {
	if own > 0 {
		t.Args[0].print(b, own-1)
		b.WriteString(" " + t.Op + " ")
		t.Args[1].print(b, own)
		return
	}
	b.WriteString(t.Op + "(")
	t.printArgs(b, t.Args)
	b.WriteByte(')')
}

func (t *Term) printCase(b *strings.Builder) {
	b.WriteString("case")
	args := t.Args
	if t.Op == OpSwitch {
		b.WriteByte(' ')
		args[0].print(b, 0)
		args = args[1:]
	}
	for ; len(args) > 1; args = args[2:] {
		b.WriteString(" when ")
		args[0].print(b, 0)
		b.WriteString(" then ")
		args[1].print(b, 0)
	}
	if len(args) > 0 {
		b.WriteString(" else ")
		args[0].print(b, 0)
	}
	b.WriteString(" end")
}

// printTermPath is printPath in a term.
func printTermPath(path string) string {
	names := SplitPath(path)
	if termWords[strings.ToLower(names[0])] {
		s := PrintPath(path)
		return quoteName(names[0]) + s[len(names[0]):]
	}
	return PrintPath(path)
}
