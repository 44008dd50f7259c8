package pred

import (
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/pred/internal/literal"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
)

// function is a function of the language.
type function struct {
	min, max int // operands; max -1: any number
	of       func(name string, a []*scalar.Node) (*scalar.Node, error)
}

// one makes a function of one operand.
func one(f func(*scalar.Node) (*scalar.Node, error)) function {
	return function{1, 1, func(_ string, a []*scalar.Node) (*scalar.Node, error) { return f(a[0]) }}
}

func part() function {
	return function{1, 1, func(name string, a []*scalar.Node) (*scalar.Node, error) { return scalar.Part(name, a[0]) }}
}

func match2(f func(s, t string) bool) function {
	return function{2, 2, func(name string, a []*scalar.Node) (*scalar.Node, error) {
		return scalar.Match2(name, a[0], a[1], f)
	}}
}

func trim(ends int) function {
	return function{1, 2, func(name string, a []*scalar.Node) (*scalar.Node, error) {
		set := " "
		if len(a) == 2 {
			var ok bool
			if set, ok = a[1].Text(); !ok {
				return nil, fault.Invalidf("the characters that %s cuts must be known beforehand", name)
			}
		}
		return scalar.Trim(a[0], set, ends)
	}}
}

// rounding is round, floor and ceil; only round takes a number of digits.
func rounding(how scalar.Rounding, most int) function {
	return function{1, most, func(name string, a []*scalar.Node) (*scalar.Node, error) {
		digits := int64(0)
		if len(a) == 2 {
			var ok bool
			if digits, ok = a[1].Integer(); !ok {
				return nil, fault.Invalidf("the digits of %s must be an integer that is known beforehand", name)
			}
		}
		return scalar.Round(a[0], how, digits)
	}}
}

func substr(_ string, a []*scalar.Node) (*scalar.Node, error) {
	if len(a) == 2 {
		return scalar.Substr(a[0], a[1], nil)
	}
	return scalar.Substr(a[0], a[1], a[2])
}

func dateTrunc(_ string, a []*scalar.Node) (*scalar.Node, error) {
	text, _ := a[0].Text()
	unit, ok := scalar.UnitOf(text)
	if !ok {
		return nil, fault.Invalidf("the unit of date_trunc is 'year', 'quarter', 'month', 'week', 'day', 'hour', " +
			"'minute' or 'second'")
	}
	return scalar.Trunc(unit, a[1])
}

func toDate(_ string, a []*scalar.Node) (*scalar.Node, error) {
	target, _ := scalar.TargetOf("date", 0, 0, false)
	return scalar.Cast(a[0], target, false)
}

func anyOf(all bool) function {
	return one(func(n *scalar.Node) (*scalar.Node, error) { return scalar.Any(n, all) })
}

func regexpFunction(whole bool) function {
	return function{2, 2, func(name string, a []*scalar.Node) (*scalar.Node, error) {
		return matchRegexp(name, a[0], a[1], false, whole)
	}}
}

// functions are all functions.
var functions = map[string]function{
	"abs":   one(scalar.Abs),
	"floor": rounding(scalar.Floor, 1), "ceil": rounding(scalar.Ceil, 1), "ceiling": rounding(scalar.Ceil, 1),
	"round": rounding(scalar.Half, 2),

	"lower": one(scalar.Lower), "upper": one(scalar.Upper),
	"length": one(scalar.Len), "len": one(scalar.Len),
	"trim": trim(scalar.Left | scalar.Right), "ltrim": trim(scalar.Left), "rtrim": trim(scalar.Right),
	"substr": {2, 3, substr}, "substring": {2, 3, substr},
	"starts_with": match2(strings.HasPrefix), "prefix": match2(strings.HasPrefix),
	"ends_with": match2(strings.HasSuffix), "suffix": match2(strings.HasSuffix),
	"contains":       match2(strings.Contains),
	"regexp_matches": regexpFunction(false), "regexp_full_match": regexpFunction(true),

	"year": part(), "quarter": part(), "month": part(), "day": part(), "hour": part(),
	"minute": part(), "second": part(),
	"date_trunc": {2, 2, dateTrunc}, "date": {1, 1, toDate},

	"coalesce": {1, -1, func(_ string, a []*scalar.Node) (*scalar.Node, error) { return scalar.Coalesce(a...) }},
	"nullif":   {2, 2, func(_ string, a []*scalar.Node) (*scalar.Node, error) { return scalar.NullIf(a[0], a[1]) }},

	"any": anyOf(false), "all": anyOf(true),
	"array_contains": {2, 2, arrayContains}, "list_contains": {2, 2, arrayContains},
}

func arrayContains(_ string, a []*scalar.Node) (*scalar.Node, error) {
	return scalar.Contains(a[0], a[1])
}

// call returns the node for a function.
func call(t *syntax.Term, args []*scalar.Node) (*scalar.Node, error) {
	f, ok := functions[t.Op]
	switch {
	case !ok:
		return nil, fault.Invalidf("no function %s%s", t.Op, literal.Suggest(t.Op, slices.Sorted(maps.Keys(functions))))
	case len(args) < f.min:
		return nil, fault.Invalidf("%s takes %s, not %d", t.Op, counted(f.min), len(args))
	case f.max >= 0 && len(args) > f.max:
		return nil, fault.Invalidf("%s takes %s, not %d", t.Op, counted(f.max), len(args))
	}
	if i := slices.IndexFunc(args, (*scalar.Node).IsAny); i >= 0 {
		return nil, fault.Invalidf("any and all of a list can only be compared")
	}
	if t.Op == "array_contains" || t.Op == "list_contains" {
		readTexts(args)
	}
	return f.of(t.Op, args)
}

func counted(n int) string {
	return [...]string{"no operand", "one operand", "two operands", "three operands"}[n]
}
