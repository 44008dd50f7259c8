package pred

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/pred/internal/literal"
	"stoa/pred/internal/scalar"
)

// test is a bound expr.
type test struct {
	node     *scalar.Node
	text     string // the text that the places of nodes are in
	nullTrue bool   // TRUE if all columns are null
	columns  []string

	op          Op // of a comparison of two columns
	left, right *Expr
}

// target returns the type of a cast.
func (t castType) target() (scalar.Target, bool) {
	return scalar.TargetOf(t.name, t.digits, t.scale, t.given)
}

func (t castType) String() string {
	if t.given {
		return fmt.Sprintf("%s(%d, %d)", t.name, t.digits, t.scale)
	}
	return t.name
}

// unknownType returns the error that there is no such type.
func unknownType(t castType) string {
	if _, ok := scalar.TargetOf(t.name, 0, 0, false); ok {
		return fmt.Sprintf("%s is no type: only decimal has digits, 1 to %d, and a scale up to that", t,
			scalar.DigitsMax)
	}
	return fmt.Sprintf("no type %s%s", t.name, suggest(t.name, scalar.TargetNames()))
}

// suggest names those that look most like name, or all if there are none.
func suggest(name string, names []string) string {
	if near := literal.CloseNames(name, names); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "; there are " + strings.Join(names, ", ")
}

// build returns the node for t, whose columns get the names of the schema's fields.
func (b *binder) build(t *term) (*scalar.Node, error) {
	switch t.op {
	case termLiteral:
		n, err := scalar.Constant(t.value.constant())
		return n, t.place(err)
	case termColumn:
		return b.buildColumn(t)
	}
	args := make([]*scalar.Node, len(t.args))
	late := t.op == termCase || t.op == termSwitch || t.op == "coalesce" // may not need all of its operands
	if late {
		b.late++
	}
	for i, a := range t.args {
		var err error
		if args[i], err = b.build(a); err != nil {
			return nil, b.hint(t, a, err)
		}
	}
	if late {
		b.late--
	}
	n, err := t.apply(args)
	if err != nil {
		return nil, t.place(err)
	}
	n.Place(t.src.op)
	n, failure := n.Fold()
	if failure != nil && b.late == 0 {
		return nil, fault.Invalidf("%s%s", failure.Reason, show(t.src.text, failure.At))
	}
	return n, nil
}

// hint adds to the error that there is no column a, which is compared, that texts have other quotes.
func (b *binder) hint(t, a *term, err error) error {
	var f *fault.Error
	if _, isComparison := flip[Op(t.op)]; !isComparison || a != t.args[len(t.args)-1] || !a.isColumn() ||
		!asFault(err, &f) || !strings.HasPrefix(f.Reason, "no column ") {
		return err
	}
	g := *f
	cut := strings.LastIndex(g.Reason, " (byte ")
	if cut < 0 {
		return err
	}
	g.Reason = g.Reason[:cut] + "; text goes into single quotes: " + quote(SplitPath(a.column)[0]) + g.Reason[cut:]
	return &g
}

func (b *binder) buildColumn(t *term) (*scalar.Node, error) {
	col, err := b.resolve(t.column)
	if err != nil {
		return nil, t.src.blame(atColumn, err)
	}
	typ, ok := scalar.TypeOf(col.Type)
	if !ok {
		return nil, t.src.blame(atColumn, fault.Invalidf("column %s is of type %s: no expression can have it", t.column,
			col.Type))
	}
	return scalar.Column(col.Column, typ), nil
}

// place returns err with t's place.
func (t *term) place(err error) error {
	if err == nil {
		return nil
	}
	return t.src.blame(atOp, err)
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
func (t *term) apply(args []*scalar.Node) (*scalar.Node, error) {
	if _, ok := flip[Op(t.op)]; ok {
		if args[0].Type.Kind == scalar.Null || args[1].Type.Kind == scalar.Null {
			if !args[0].IsAny() && !args[1].IsAny() {
				return scalar.NullNode(), nil
			}
		}
		t.readTexts(args)
		return scalar.Compare(t.op, args[0], args[1])
	}
	switch t.op {
	case "and", "or":
		return scalar.Junction(t.op == "or", args...)
	case "not":
		return scalar.Not(args[0])
	case "is null":
		return scalar.IsNullOf(args[0])
	case "between":
		t.readTexts(args)
		return scalar.Between(args[0], args[1], args[2])
	case "in":
		t.readTexts(args)
		return scalar.In(args[0], args[1:])
	case "like", "ilike":
		return t.buildLike(args)
	case "~", "~*":
		return matchRegexp(t.op, args[0], args[1], t.op == "~*", false)
	case termCase:
		return buildCase(nil, args)
	case termSwitch:
		t.readTexts(args)
		return buildCase(args[0], args[1:])
	case termCast, termTryCast:
		target, _ := t.typ.target()
		return scalar.Cast(args[0], target, t.op == termTryCast)
	case termNeg:
		return scalar.Neg(args[0])
	case "+", "-", "*", "/", "%":
		return scalar.Arith(t.op, args[0], args[1])
	case "||":
		return scalar.Concat(args[0], args[1])
	}
	return t.function(args)
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
func (t *term) readTexts(args []*scalar.Node) {
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
func (t *term) buildLike(args []*scalar.Node) (*scalar.Node, error) {
	if args[1].IsNull() {
		return scalar.NullNode(), nil
	}
	text, ok := args[1].Text()
	binary := args[0].Type.Kind == scalar.Binary
	if !ok {
		return nil, fault.Invalidf("the pattern of %s must be a text that is known beforehand", t.op)
	}
	fold := t.op == "ilike"
	if fold {
		text = scalar.LowerText(text)
	}
	escape := t.escape
	if fold && escape != NoEscape {
		escape = scalar.LowerText(escape)
	}
	p, err := parsePattern(String(text), escape, binary)
	if err != nil {
		return nil, err
	}
	return scalar.Match(t.op, args[0], !fold, func(s string) bool {
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
