package pred

import (
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
)

// build returns the node for t, whose columns get the names of the schema's fields.
func (b *binder) build(t *syntax.Term) (*scalar.Node, error) {
	switch t.Op {
	case syntax.OpLiteral:
		n, err := scalar.Constant(valueOf(t).constant())
		return n, place(t, err)
	case syntax.OpColumn:
		return b.buildColumn(t)
	}
	args := make([]*scalar.Node, len(t.Args))
	late := t.Op == syntax.OpCase || t.Op == syntax.OpSwitch || t.Op == "coalesce" // may not need all of its operands
	if late {
		b.late++
	}
	for i, a := range t.Args {
		var err error
		if args[i], err = b.build(a); err != nil {
			return nil, b.hint(t, a, err)
		}
	}
	if late {
		b.late--
	}
	n, err := apply(t, args)
	if err != nil {
		return nil, place(t, err)
	}
	n.Place(t.At)
	n, failure := n.Fold()
	if failure != nil && b.late == 0 {
		return nil, fault.Invalidf("%s%s", failure.Reason, syntax.Show(t.Text, failure.At))
	}
	return n, nil
}

// hint adds to the error that there is no column a, which is compared, that texts have other quotes.
func (b *binder) hint(t, a *syntax.Term, err error) error {
	var f *fault.Error
	if _, isComparison := flip[Op(t.Op)]; !isComparison || a != t.Args[len(t.Args)-1] || !a.IsColumn() ||
		!errors.As(err, &f) || !strings.HasPrefix(f.Reason, "no column ") {
		return err
	}
	g := *f
	cut := strings.LastIndex(g.Reason, " (byte ")
	if cut < 0 {
		return err
	}
	g.Reason = g.Reason[:cut] + "; text goes into single quotes: " + syntax.Quote(SplitPath(a.Column)[0]) +
		g.Reason[cut:]
	return &g
}

func (b *binder) buildColumn(t *syntax.Term) (*scalar.Node, error) {
	col, err := b.resolve(t.Column)
	if err != nil {
		return nil, place(t, err)
	}
	typ, ok := scalar.TypeOf(col.Type)
	if !ok {
		return nil, place(t, fault.Invalidf("column %s is of type %s: no expression can have it", t.Column, col.Type))
	}
	return scalar.Column(col.Column, typ), nil
}

// constant returns v for package scalar.
func (v Value) constant() (scalar.Type, any) {
	switch v.Kind {
	case KindBool:
		return scalar.Type{Kind: scalar.Bool}, v.Int != 0
	case KindInt:
		return scalar.Type{Kind: scalar.Int}, v.Int
	case KindUint:
		return scalar.Type{Kind: scalar.Decimal}, decimal128.FromU64(v.Uint)
	case KindFloat:
		return scalar.Type{Kind: scalar.Float, Bits: 64}, v.Float
	case KindDecimal:
		return scalar.Type{Kind: scalar.Decimal, Scale: v.Scale}, v.Dec
	case KindString:
		return scalar.Type{Kind: scalar.String}, v.Text
	case KindBytes:
		return scalar.Type{Kind: scalar.Binary}, v.Text
	case KindDate:
		return scalar.Type{Kind: scalar.Date}, v.Int
	case KindTime:
		return scalar.Type{Kind: scalar.Time}, v.Int
	case KindTimestamp:
		return scalar.Type{Kind: scalar.Timestamp}, [2]int64{v.Int, int64(v.Nanos)}
	}
	return scalar.Type{}, nil
}

// literalOf is the inverse of constant: the literal for a constant node, false if there is none.
func literalOf(n *scalar.Node) (Value, bool) {
	if n.IsNull() {
		return Null(), true
	}
	switch x := n.Const().(type) {
	case bool:
		return Bool(x), true
	case decimal128.Num:
		return Decimal(x, n.Type.Scale), true
	case float64:
		if n.Type.Bits == 32 {
			return Value{}, false // it would be taken for the nearest of a column's floats
		}
		return Float(x), true
	case string:
		if n.Type.Kind == scalar.Binary {
			return Bytes([]byte(x)), true
		}
		return String(x), true
	case int64:
		switch n.Type.Kind {
		case scalar.Int:
			return Int(x), true
		case scalar.Date:
			return Date(x), true
		case scalar.Time:
			return Time(x), true
		case scalar.Timestamp:
			return instant(x, n.Type.Per), true
		}
	}
	return Value{}, false
}

// apply returns the node for t with its operands.
func apply(t *syntax.Term, args []*scalar.Node) (*scalar.Node, error) {
	if _, ok := flip[Op(t.Op)]; ok {
		if args[0].Type.Kind == scalar.Null || args[1].Type.Kind == scalar.Null {
			if !args[0].IsAny() && !args[1].IsAny() {
				return scalar.NullNode(), nil
			}
		}
		readTexts(args)
		return scalar.Compare(t.Op, args[0], args[1])
	}
	switch t.Op {
	case "and", "or":
		return scalar.Junction(t.Op == "or", args...)
	case "not":
		return scalar.Not(args[0])
	case "is null":
		return scalar.IsNullOf(args[0])
	case "between":
		readTexts(args)
		return scalar.Between(args[0], args[1], args[2])
	case "in":
		readTexts(args)
		return scalar.In(args[0], args[1:])
	case "like", "ilike":
		return buildLike(t, args)
	case "~", "~*":
		return matchRegexp(t.Op, args[0], args[1], t.Op == "~*", false)
	case syntax.OpCase:
		return buildCase(nil, args)
	case syntax.OpSwitch:
		readTexts(args)
		return buildCase(args[0], args[1:])
	case syntax.OpCast, syntax.OpTryCast:
		target, _ := targetOf(t.Type)
		return scalar.Cast(args[0], target, t.Op == syntax.OpTryCast)
	case syntax.OpNeg:
		return scalar.Neg(args[0])
	case "+", "-", "*", "/", "%":
		return scalar.Arith(t.Op, args[0], args[1])
	case "||":
		return scalar.Concat(args[0], args[1])
	}
	return call(t, args)
}

// buildCase returns a case with when, then, when, then …, else.
func buildCase(subject *scalar.Node, args []*scalar.Node) (*scalar.Node, error) {
	var conditions, values []*scalar.Node
	for ; len(args) > 1; args = args[2:] {
		conditions, values = append(conditions, args[0]), append(values, args[1])
	}
	var otherwise *scalar.Node
	if len(args) > 0 {
		otherwise = args[0]
	}
	return scalar.Case(subject, conditions, values, otherwise)
}

// readTexts reads strings that are compared with dates, times and timestamps as such.
func readTexts(args []*scalar.Node) {
	i := slices.IndexFunc(args, func(n *scalar.Node) bool {
		k := n.Type.Kind
		return k == scalar.Date || k == scalar.Time || k == scalar.Timestamp || n.IsAny() && n.Type.Elem.IsTime()
	})
	if i < 0 {
		return
	}
	time := args[i].Type.Kind == scalar.Time || args[i].IsAny() && args[i].Type.Elem.Kind == scalar.Time
	for k, n := range args {
		s, ok := n.Text()
		if !ok {
			continue
		}
		d := domain{means: meansInstant}
		if time {
			d.means = meansTime
		}
		if v, err := d.read(String(s)); err == nil {
			if c, err := scalar.Constant(v.constant()); err == nil {
				args[k] = c
			}
		}
	}
}

// buildLike returns like and ilike.
func buildLike(t *syntax.Term, args []*scalar.Node) (*scalar.Node, error) {
	if args[1].IsNull() {
		return scalar.NullNode(), nil
	}
	text, ok := args[1].Text()
	binary := args[0].Type.Kind == scalar.Binary
	if !ok {
		return nil, fault.Invalidf("the pattern of %s must be a text that is known beforehand", t.Op)
	}
	fold := t.Op == "ilike"
	if fold {
		text = scalar.LowerText(text)
	}
	escape := t.Escape
	if fold && escape != NoEscape {
		escape = scalar.LowerText(escape)
	}
	p, err := parsePattern(String(text), escape, binary)
	if err != nil {
		return nil, err
	}
	return scalar.Match(t.Op, args[0], !fold, func(s string) bool {
		if fold {
			s = scalar.LowerText(s)
		}
		return p.match([]byte(s))
	})
}

func matchRegexp(name string, x, pattern *scalar.Node, fold, whole bool) (*scalar.Node, error) {
	if pattern.IsNull() {
		return scalar.NullNode(), nil
	}
	text, ok := pattern.Text()
	if !ok {
		return nil, fault.Invalidf("the pattern of %s must be a text that is known beforehand", name)
	}
	re, err := scalar.Regexp(text, fold, whole)
	if err != nil {
		return nil, err
	}
	return scalar.Match(name, x, false, re.MatchString)
}
