package pred

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
)

// Op is the operation of an Expr. It is spelled the same way in JSON and in text.
type Op string

// The operators.
const (
	OpTrue    Op = "true"  // TRUE for every row
	OpFalse   Op = "false" // FALSE for every row
	OpUnknown Op = "null"  // unknown for every row

	OpAnd Op = "and" // of Args; TRUE if there are none
	OpOr  Op = "or"  // of Args; FALSE if there are none
	OpNot Op = "not" // of Args[0]

	OpEq         Op = "="           // Column = Values[0]
	OpNe         Op = "!="          // Column != Values[0]
	OpLt         Op = "<"           // Column < Values[0]
	OpLe         Op = "<="          // Column <= Values[0]
	OpGt         Op = ">"           // Column > Values[0]
	OpGe         Op = ">="          // Column >= Values[0]
	OpIn         Op = "in"          // Column in Values
	OpNotIn      Op = "not in"      // Column not in Values
	OpBetween    Op = "between"     // Values[0] <= Column <= Values[1]
	OpNotBetween Op = "not between" // Column < Values[0] or Column > Values[1]
	OpIsNull     Op = "is null"     // Column is null
	OpIsNotNull  Op = "is not null" // Column is not null
	OpLike       Op = "like"        // Column like Values[0] escape Escape
	OpNotLike    Op = "not like"    // Column not like Values[0] escape Escape

	OpExpr Op = "expr" // Text: any other condition, with several columns, arithmetic, functions …
)

// MaxDepth is how deep an Expr may nest.
const MaxDepth = syntax.MaxDepth

// NoEscape is the Escape of a pattern in which only % and _ are special.
const NoEscape = syntax.NoEscape

// Expr is a predicate: a tree of plain data. In JSON it looks like this (see Value for literals):
//
//	{"op":"and","args":[
//	  {"op":">","column":"item.price","values":[{"decimal":"3.5"}]},
//	  {"op":"not like","column":"name","values":["50!%%"],"escape":"!"}]}
//
// The comment on each operator says which fields it uses; the others are empty. An Expr is immutable once made, so
// several goroutines may share it.
type Expr struct {
	Op     Op      `json:"op"`
	Args   []*Expr `json:"args,omitempty"`
	Column string  `json:"column,omitempty"` // dotted path: see JoinPath
	Values []Value `json:"values,omitempty"`
	Escape string  `json:"escape,omitempty"` // of like: one character, or NoEscape; "" is the backslash
	Text   string  `json:"text,omitempty"`   // of expr: in the syntax of Parse

	// Path and Type are set by Bind, in every node that has a Column. They are not serialized: the receiver binds
	// again.
	Path []int          `json:"-"` // child indices from the schema's root
	Type arrow.DataType `json:"-"` // the column's, from the schema

	leaf  *leaf        // the test, made by Bind
	term  *syntax.Term // of expr: Text, parsed
	rest  bool         // of expr: what formats can make use of stands beside it
	test  *test        // of expr, made by Bind
	src   *source
	bound bool
}

// test is a bound expr.
type test struct {
	node     *scalar.Node
	text     string // the text that the places of nodes are in
	nullTrue bool   // TRUE if all columns are null
	columns  []string

	op          Op // of a comparison of two columns
	left, right *Expr
}

// ops has for each operator how many Args and Values it has (-1: any number), and its negation.
var ops = map[Op]struct {
	args, values int
	column       bool
	not          Op
}{
	OpTrue:       {0, 0, false, OpFalse},
	OpFalse:      {0, 0, false, OpTrue},
	OpUnknown:    {0, 0, false, OpUnknown},
	OpAnd:        {-1, 0, false, OpOr},
	OpOr:         {-1, 0, false, OpAnd},
	OpNot:        {1, 0, false, ""},
	OpEq:         {0, 1, true, OpNe},
	OpNe:         {0, 1, true, OpEq},
	OpLt:         {0, 1, true, OpGe},
	OpGe:         {0, 1, true, OpLt},
	OpGt:         {0, 1, true, OpLe},
	OpLe:         {0, 1, true, OpGt},
	OpIn:         {0, -1, true, OpNotIn},
	OpNotIn:      {0, -1, true, OpIn},
	OpBetween:    {0, 2, true, OpNotBetween},
	OpNotBetween: {0, 2, true, OpBetween},
	OpIsNull:     {0, 0, true, OpIsNotNull},
	OpIsNotNull:  {0, 0, true, OpIsNull},
	OpLike:       {0, 1, true, OpNotLike},
	OpNotLike:    {0, 1, true, OpLike},
	OpExpr:       {0, 0, false, ""},
}

// flip is the comparison with its sides exchanged.
var flip = map[Op]Op{OpEq: OpEq, OpNe: OpNe, OpLt: OpGt, OpLe: OpGe, OpGt: OpLt, OpGe: OpLe}

// Test returns the predicate "column op values".
func Test(column string, op Op, values ...Value) *Expr {
	return &Expr{Op: op, Column: column, Values: values}
}

// And returns the conjunction of es, ignoring nil ones. Of none it returns nil, and of a single one that one.
func And(es ...*Expr) *Expr { return join(OpAnd, es) }

// Or returns the disjunction of es, ignoring nil ones. Of none it returns nil, and of a single one that one.
func Or(es ...*Expr) *Expr { return join(OpOr, es) }

// Not returns the negation of e.
func Not(e *Expr) *Expr { return &Expr{Op: OpNot, Args: []*Expr{e}} }

func join(op Op, es []*Expr) *Expr {
	out := &Expr{Op: op, bound: true}
	for _, e := range es {
		if e != nil {
			out.Args = append(out.Args, e)
			out.bound = out.bound && e.bound
		}
	}
	switch len(out.Args) {
	case 0:
		return nil
	case 1:
		return out.Args[0]
	}
	return out
}

// Conjuncts returns the predicates that must all be TRUE for e to be TRUE: e split at its outer ands. A nil Expr has
// none. Conjuncts of a bound Expr are bound.
func (e *Expr) Conjuncts() []*Expr {
	if e == nil {
		return nil
	}
	if e.Op != OpAnd {
		return []*Expr{e}
	}
	var out []*Expr
	for _, a := range e.Args {
		out = append(out, a.Conjuncts()...)
	}
	return out
}

// Columns returns the paths of the columns that e tests, without duplicates, in order of first use.
func (e *Expr) Columns() []string {
	var out []string
	seen := map[string]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil {
			return
		}
		if o, ok := ops[e.Op]; ok && o.column && !seen[e.Column] {
			seen[e.Column] = true
			out = append(out, e.Column)
		}
		if t := e.parsed(); t != nil {
			out = t.Columns(seen, out)
		}
		for _, a := range e.Args {
			walk(a)
		}
	}
	walk(e)
	return out
}

// check returns an error if e, which may come from JSON, is malformed. It does not consult a schema.
func (e *Expr) check(depth int) error {
	if e == nil {
		return fault.Invalidf("the predicate has an empty place where an expression belongs")
	}
	if depth > MaxDepth {
		return fault.Invalidf("the predicate is nested more than %d deep", MaxDepth)
	}
	o, ok := ops[e.Op]
	switch {
	case !ok:
		return fault.Invalidf("the predicate has an unknown operator %q", string(e.Op))
	case o.args >= 0 && len(e.Args) != o.args:
		return fault.Invalidf("%q takes %d expressions, not %d", string(e.Op), o.args, len(e.Args))
	case o.values >= 0 && len(e.Values) != o.values:
		return fault.Invalidf("%q takes %d literals, not %d", string(e.Op), o.values, len(e.Values))
	case o.column != (e.Column != ""):
		return fault.Invalidf("%q with column %q", string(e.Op), e.Column)
	case (e.Op == OpExpr) != (e.Text != ""):
		return fault.Invalidf("%q with text %q", string(e.Op), e.Text)
	}
	for _, v := range e.Values {
		if err := v.check(); err != nil {
			return err
		}
	}
	for _, a := range e.Args {
		if err := a.check(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// String returns e in the syntax of Parse: Parse(e.String()) equals e. For a malformed Expr the text is unspecified.
func (e *Expr) String() string {
	var b strings.Builder
	e.print(&b, 0)
	return b.String()
}

// print writes e; depth guards against cycles.
func (e *Expr) print(b *strings.Builder, depth int) {
	if e == nil || depth > 10*MaxDepth {
		b.WriteString("<nothing>")
		return
	}
	switch e.Op {
	case OpTrue, OpFalse, OpUnknown:
		b.WriteString(string(e.Op))
	case OpNot:
		b.WriteString("not ")
		e.printArgs(b, "", depth)
	case OpAnd, OpOr:
		if len(e.Args) == 0 {
			b.WriteString(map[Op]string{OpAnd: "true", OpOr: "false"}[e.Op])
			return
		}
		e.printArgs(b, " "+string(e.Op)+" ", depth)
	case OpExpr:
		b.WriteString(e.Text)
	default:
		e.printTest(b)
	}
}

// parsed returns the term of an expr; nil if e is none, or its text is wrong.
func (e *Expr) parsed() *syntax.Term {
	if e.Op != OpExpr || e.term != nil {
		return e.term
	}
	t, err := parseTerm(e.Text)
	if err != nil {
		return nil
	}
	return t
}

// printArgs writes the arguments with sep between them, each in parentheses unless it binds tighter than e.
func (e *Expr) printArgs(b *strings.Builder, sep string, depth int) {
	for i, a := range e.Args {
		if i > 0 {
			b.WriteString(sep)
		}
		if a != nil && (a.Op == OpOr || a.Op == OpAnd && e.Op != OpOr) && len(e.Args) > 0 {
			b.WriteByte('(')
			a.print(b, depth+1)
			b.WriteByte(')')
			continue
		}
		a.print(b, depth+1)
	}
}

func (e *Expr) printTest(b *strings.Builder) {
	b.WriteString(syntax.PrintPath(e.Column))
	b.WriteByte(' ')
	b.WriteString(string(e.Op))
	switch e.Op {
	case OpIn, OpNotIn:
		b.WriteString(" (")
		e.printValues(b, ", ")
		b.WriteByte(')')
	case OpBetween, OpNotBetween:
		b.WriteByte(' ')
		e.printValues(b, " and ")
	case OpIsNull, OpIsNotNull:
	default:
		b.WriteByte(' ')
		e.printValues(b, " ")
	}
	switch {
	case e.Escape == NoEscape:
		b.WriteString(" escape ''")
	case e.Escape != "":
		b.WriteString(" escape " + syntax.Quote(e.Escape))
	}
}

func (e *Expr) printValues(b *strings.Builder, sep string) {
	for i, v := range e.Values {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(v.String())
	}
}
