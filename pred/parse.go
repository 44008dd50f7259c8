package pred

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/pred/internal/literal"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
)

// Parse reads the text of a predicate; the package comment has the grammar. An error is of class Invalid
// and shows the place:
//
//	invalid: expected a literal, found "and" (byte 8, column 9)
//	  price > and x
//	          ^
func Parse(s string) (*Expr, error) {
	t, err := parseTerm(s)
	if err != nil {
		return nil, err
	}
	e, err := lower(t)
	if err != nil {
		return nil, err
	}
	if err := e.check(0); err != nil {
		t := *t
		t.At = 0
		return nil, place(&t, fault.Invalidf("the predicate is nested more than %d deep", MaxDepth))
	}
	return e, nil
}

// parseTerm reads the text of a predicate as a single term.
func parseTerm(s string) (*syntax.Term, error) {
	t, err := syntax.Parse(s)
	if err != nil {
		return nil, err
	}
	return t, interpret(t)
}

// interpret gives the literals in t, which was parsed, their values. It returns an error for those that have none, and
// for types and patterns that do not exist.
func interpret(t *syntax.Term) error {
	for _, a := range t.Args {
		if err := interpret(a); err != nil {
			return err
		}
	}
	switch t.Op {
	case syntax.OpLiteral:
		v, err := readLiteral(t.Literal)
		t.Value = v
		return place(t, err)
	case syntax.OpCast, syntax.OpTryCast:
		if _, ok := targetOf(t.Type); !ok {
			at := *t
			at.At = t.Type.At
			return place(&at, fault.Invalidf("%s", unknownType(t.Type)))
		}
	case "like", "ilike":
		if p := t.Args[1]; p.IsLiteral() {
			_, err := parsePattern(valueOf(p), t.Escape, false)
			return place(p, err)
		}
	}
	return nil
}

// readLiteral returns the value of a literal.
func readLiteral(l syntax.Literal) (Value, error) {
	switch l.Kind {
	case syntax.LiteralWord:
		if l.Text == "null" {
			return Null(), nil
		}
		return Bool(l.Text == "true"), nil
	case syntax.LiteralNumber:
		return parseNumber(l.Text)
	case syntax.LiteralString:
		return String(l.Text), nil
	case syntax.LiteralBytes:
		return Bytes([]byte(l.Text)), nil
	}
	for k := KindFloat; k <= KindTimestamp; k++ {
		if k.String() == l.Kind {
			return parseAs(k, l.Text)
		}
	}
	return Null(), fault.Bugf("a literal of kind %s", l.Kind)
}

// valueOf returns the value of a literal in a term that has been interpreted.
func valueOf(t *syntax.Term) Value {
	v, _ := t.Value.(Value)
	return v
}

// targetOf returns the type of a cast.
func targetOf(t syntax.CastType) (scalar.Target, bool) {
	return scalar.TargetOf(t.Name, t.Digits, t.Scale, t.Given)
}

// unknownType returns the error that there is no such type.
func unknownType(t syntax.CastType) string {
	if _, ok := scalar.TargetOf(t.Name, 0, 0, false); ok {
		return fmt.Sprintf("%s is no type: only decimal has digits, 1 to %d, and a scale up to that", t,
			scalar.DigitsMax)
	}
	return fmt.Sprintf("no type %s%s", t.Name, literal.Suggest(t.Name, scalar.TargetNames()))
}

// withTerms returns e with every text in it parsed, and tests where these are simple ones: e itself if it has none that
// is not.
func (e *Expr) withTerms() (*Expr, error) {
	if e.Op == OpExpr {
		if e.term != nil {
			return e, nil
		}
		return Parse(e.Text)
	}
	var out *Expr
	for i, a := range e.Args {
		x, err := a.withTerms()
		if err != nil {
			return nil, err
		}
		if x == a {
			continue
		}
		if out == nil {
			c := *e
			out = &c
			out.Args = slices.Clone(e.Args)
		}
		out.Args[i] = x
	}
	if out == nil {
		return e, nil
	}
	return out, nil
}
