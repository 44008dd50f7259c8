package pred

import (
	"strings"
)

// term is a part of a parsed predicate: an operator or function with its operands. Tests of a column with literals
// become an Expr of their own; what remains is kept as a term and bound as a scalar expression.
type term struct {
	op     string // see below; otherwise the name of a function
	args   []*term
	column string
	value  Value
	escape string // of like and ilike
	typ    castType
	src    source // its place: op, and of a column or literal that
	paren  bool   // it was in parentheses
	inside bool   // of not: it was written inside of the test, as in "is not null"
	plain  bool   // what bounds tell about it has been made use of
	depth  int
}

// The operators of terms that are not written like a function or a binary operator.
const (
	termLiteral = "literal"
	termColumn  = "column"
	termCase    = "case"    // when, then, when, then …, else
	termSwitch  = "case of" // the operand, then as case
	termCast    = "cast"
	termTryCast = "try_cast"
	termNeg     = "neg"
)

// castType is the type of a cast, as written.
type castType struct {
	name          string
	digits, scale int
	given         bool // digits and scale are
}

// maxTermDepth is how deep terms nest, counting chains of operators.
const maxTermDepth = 1000

func newTerm(op string, at int, args ...*term) *term {
	t := &term{op: op, args: args}
	t.src.op = at
	for _, a := range args {
		t.depth = max(t.depth, a.depth+1)
	}
	return t
}

func (t *term) isColumn() bool  { return t.op == termColumn }
func (t *term) isLiteral() bool { return t.op == termLiteral }

// columns adds the paths in t to out.
func (t *term) columns(seen map[string]bool, out []string) []string {
	if t.isColumn() && !seen[t.column] {
		seen[t.column] = true
		out = append(out, t.column)
	}
	for _, a := range t.args {
		out = a.columns(seen, out)
	}
	return out
}

// binding is how tightly the operators of terms bind; what is not here needs no parentheses.
var binding = map[string]int{
	"or": 1, "and": 2, "not": 3,
	"=": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "~": 4, "~*": 4, "is null": 4, "in": 4, "between": 4, "like": 4,
	"ilike": 4,
	"||":    5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, termNeg: 8, termCast: 9,
}

// termWords have to be quoted in terms as the first name of a column.
var termWords = map[string]bool{"case": true, "when": true, "then": true, "else": true, "end": true, "ilike": true,
	"escape": true}

// String returns t in the syntax of Parse.
func (t *term) String() string {
	var b strings.Builder
	t.print(&b, 0)
	return b.String()
}

// print writes t, in parentheses if it binds less than above.
func (t *term) print(b *strings.Builder, above int) {
	own := binding[t.op]
	if t.op == "not" && t.isNegated() {
		own = 4
	}
	if own != 0 && own <= above {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch t.op {
	case termLiteral:
		t.printLiteral(b, above)
	case termColumn:
		b.WriteString(printTermPath(t.column))
	case termCase, termSwitch:
		t.printCase(b)
	case termCast:
		t.args[0].print(b, own-1)
		b.WriteString("::" + t.typ.String())
	case termTryCast:
		b.WriteString("try_cast(")
		t.args[0].print(b, 0)
		b.WriteString(" as " + t.typ.String() + ")")
	case termNeg:
		b.WriteString("- ")
		t.args[0].print(b, own-1)
	case "not":
		if t.isNegated() {
			t.args[0].printTest(b, "not ")
			return
		}
		b.WriteString("not ")
		t.args[0].print(b, own-1)
	case "and", "or":
		for i, a := range t.args {
			if i > 0 {
				b.WriteString(" " + t.op + " ")
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
func (t *term) printLiteral(b *strings.Builder, above int) {
	s := t.value.String()
	if above > 5 && strings.HasPrefix(s, "-") {
		s = "(" + s + ")"
	}
	b.WriteString(s)
}

// isNegated reports whether t is "not" of a test that is written with not inside.
func (t *term) isNegated() bool {
	switch t.args[0].op {
	case "is null", "in", "between", "like", "ilike", "~", "~*":
		return true
	}
	return false
}

// printTest writes a test; not is "not " or empty.
func (t *term) printTest(b *strings.Builder, not string) {
	t.args[0].print(b, 4)
	switch t.op {
	case "is null":
		b.WriteString(" is " + not + "null")
		return
	case "~", "~*":
		b.WriteString(" " + strings.TrimSpace(strings.ReplaceAll(not, "not", "!")) + t.op + " ")
	default:
		b.WriteString(" " + not + t.op + " ")
	}
	switch t.op {
	case "in":
		b.WriteByte('(')
		t.printArgs(b, t.args[1:])
		b.WriteByte(')')
	case "between":
		t.args[1].print(b, 4)
		b.WriteString(" and ")
		t.args[2].print(b, 4)
	default:
		t.args[1].print(b, 4)
	}
	switch {
	case t.escape == NoEscape:
		b.WriteString(" escape ''")
	case t.escape != "":
		b.WriteString(" escape " + quote(t.escape))
	}
}

func (t *term) printArgs(b *strings.Builder, args []*term) {
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		a.print(b, 0)
	}
}

// printCall writes a binary operator or a function.
func (t *term) printCall(b *strings.Builder, own int) {
	if own > 0 {
		t.args[0].print(b, own-1)
		b.WriteString(" " + t.op + " ")
		t.args[1].print(b, own)
		return
	}
	b.WriteString(t.op + "(")
	t.printArgs(b, t.args)
	b.WriteByte(')')
}

func (t *term) printCase(b *strings.Builder) {
	b.WriteString("case")
	args := t.args
	if t.op == termSwitch {
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
		s := printPath(path)
		return quoteName(names[0]) + s[len(names[0]):]
	}
	return printPath(path)
}
