package scalar

import (
	"cmp"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/internal/civil"
)

const (
	daySeconds = 24 * 60 * 60
	dayNanos   = daySeconds * 1_000_000_000
)

// wrongTypes returns the error that a and b cannot be compared.
func wrongTypes(a, b Type) error {
	return fault.Invalidf("%s and %s cannot be compared", a, b)
}

// align converts a and b to types that can be compared, exactly: integers with floats as they are, decimals as
// floats if the other one is.
func align(a, b *Node) (x, y *Node, err error) {
	s, t := a.Type, b.Type
	switch {
	case s.Kind == Null || t.Kind == Null || s.isDay() && t.isDay() || s.isText() && t.isText():
	case s.Kind == Float && t.Kind == Float && s.Bits != t.Bits && (a.one != nil || b.one != nil):
		return nearest(a, t), nearest(b, s), nil
	case s.Kind == Float && t.Kind == Decimal:
		return a, floatLike(b, s), nil
	case s.Kind == Decimal && t.Kind == Float:
		return floatLike(a, t), b, nil
	case s.Kind == Int && t.Kind == Decimal:
		return convert(a, Type{Kind: Decimal}), b, nil
	case s.Kind == Decimal && t.Kind == Int:
		return a, convert(b, Type{Kind: Decimal}), nil
	case s.isNumber() && t.isNumber():
	case s.Kind != t.Kind || s.Kind >= List:
		return nil, nil, wrongTypes(s, t)
	}
	return a, b, nil
}

// nearest rounds a constant to the nearest float of the narrower type t, unless it becomes 0 or infinite by that.
func nearest(n *Node, t Type) *Node {
	if n.one == nil || n.IsNull() || t.Bits != 32 || n.Type.Bits == 32 {
		return n
	}
	f := n.one.floats[0]
	g := float64(float32(f))
	if g == 0 && f != 0 || math.IsInf(g, 0) && !math.IsInf(f, 0) {
		return n
	}
	return constant(t, &vec{floats: []float64{g}})
}

// floatLike converts a decimal for the comparison with a float of type t: to the nearest one, of type t if it is a
// constant.
func floatLike(n *Node, t Type) *Node {
	wide, _ := convert(n, Type{Kind: Float, Bits: 64}).Fold()
	return nearest(wide, t)
}

// order returns the comparison of value i of a with value j of b, neither of which is null.
func order(s, t Type, a, b *vec) func(i, j int) int {
	switch {
	case s.isDay() && t.isDay():
		if s == t {
			break
		}
		per := func(t Type) int64 {
			if t.Kind == Date {
				return 0
			}
			return t.Per
		}
		return func(i, j int) int {
			return compareInstants(a.ints[i&a.mask], per(s), b.ints[j&b.mask], per(t))
		}
	case s.isText():
		return func(i, j int) int { return strings.Compare(a.texts[i&a.mask], b.texts[j&b.mask]) }
	case s.Kind == Bool:
		return func(i, j int) int { return whole(a.bools[i&a.mask]) - whole(b.bools[j&b.mask]) }
	case s.Kind == Float && t.Kind == Float:
		return func(i, j int) int { return compareFloats(a.floats[i&a.mask], b.floats[j&b.mask]) }
	case s.Kind == Float:
		return func(i, j int) int { return -compareIntFloat(b.ints[j&b.mask], a.floats[i&a.mask]) }
	case t.Kind == Float:
		return func(i, j int) int { return compareIntFloat(a.ints[i&a.mask], b.floats[j&b.mask]) }
	case s.Kind == Decimal:
		return func(i, j int) int { return compareDecimals(a.decs[i&a.mask], s.Scale, b.decs[j&b.mask], t.Scale) }
	}
	return func(i, j int) int { return cmp.Compare(a.ints[i&a.mask], b.ints[j&b.mask]) }
}

func whole(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareFloats orders NaN, which equals itself, after everything else.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return whole(a != a) - whole(b != b)
}

// compareIntFloat compares exactly.
func compareIntFloat(a int64, b float64) int {
	switch {
	case b != b, b >= 1<<63:
		return -1
	case b < -1<<63:
		return 1
	}
	if c := cmp.Compare(a, int64(b)); c != 0 {
		return c
	}
	return cmp.Compare(0, b-math.Trunc(b))
}

func compareDecimals(a decimal128.Num, s int32, b decimal128.Num, t int32) int {
	if s == t {
		return a.Cmp(b)
	}
	x, ok1 := rescale(a, max(t-s, 0))
	y, ok2 := rescale(b, max(s-t, 0))
	if ok1 && ok2 {
		return x.Cmp(y)
	}
	return new(big.Int).Mul(a.BigInt(), pow10(max(t-s, 0))).Cmp(new(big.Int).Mul(b.BigInt(), pow10(max(s-t, 0))))
}

func pow10(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// compareInstants compares dates (per 0) and timestamps.
func compareInstants(a, perA, b, perB int64) int {
	secA, nanosA := instant(a, perA)
	secB, nanosB := instant(b, perB)
	return cmp.Or(cmp.Compare(secA, secB), cmp.Compare(nanosA, nanosB))
}

// instant returns a date (per 0) or timestamp as seconds and nanoseconds.
func instant(v, per int64) (sec, nanos int64) {
	if per == 0 {
		return v * daySeconds, 0
	}
	sec = civil.FloorDiv(v, per)
	return sec, (v - sec*per) * (1e9 / per)
}

// Ops are the comparisons, with the results of order that make them true.
var Ops = map[string][3]bool{
	"=": {1: true}, "!=": {true, false, true}, "<": {true}, "<=": {true, true}, ">": {2: true},
	">=": {1: true, 2: true},
}

// Compare returns a op b, op one of Ops. One of them may be any or all of a list.
func Compare(op string, a, b *Node) (*Node, error) {
	if b.IsAny() {
		if a.IsAny() {
			return nil, fault.Invalidf("only one side of a comparison can be any or all of a list")
		}
		flip := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
		if flip == "" {
			flip = op
		}
		return Compare(flip, b, a)
	}
	if a.IsAny() {
		return compareAny(Ops[op], a, b)
	}
	a, b, err := align(a, b)
	if err != nil {
		return nil, err
	}
	hit := Ops[op]
	return node(Type{Kind: Bool}, []*Node{a, b}, func(r *run, live []bool) *vec {
		x, y := a.eval(r, live), b.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(x, y))
		if a.Type.Kind == Null || b.Type.Kind == Null {
			return v // all null
		}
		if a.Type == b.Type && a.Type.isWhole() {
			compareInts(v.bools, x, y, hit)
			return v
		}
		c := order(a.Type, b.Type, x, y)
		for i := range v.bools {
			v.bools[i] = asked(live, v.null, i) && hit[1+c(i, i)]
		}
		return v
	}), nil
}

func compareInts(out []bool, x, y *vec, hit [3]bool) {
	for i := range out {
		a, b := x.ints[i&x.mask], y.ints[i&y.mask]
		out[i] = hit[1+whole(a > b)-whole(a < b)]
	}
}

// Any returns any(list), or with all set all(list), for a comparison.
func Any(list *Node, all bool) (*Node, error) {
	if list.Type.Kind != List {
		return nil, fault.Invalidf("any and all are for lists, not for %s", list.Type)
	}
	return &Node{Type: list.Type, args: []*Node{list}, eval: list.eval, any: !all, all: all, Strict: list.Strict,
		Fails: list.Fails}, nil
}

// elementOf stands for an element of a list in align.
func elementOf(list *Node) *Node { return &Node{Type: *list.Type.Elem, Strict: true} }

// compareAny returns whether element op b holds for some element (or all): unknown if that depends on a null.
func compareAny(hit [3]bool, list, b *Node) (*Node, error) {
	e, y, err := alignElement(list, b)
	if err != nil {
		return nil, err
	}
	stop := list.any // an element with this result decides
	return node(Type{Kind: Bool}, []*Node{list, y}, func(r *run, live []bool) *vec {
		x, y := list.eval(r, live), y.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.falses(r.n))
		var c func(i, j int) int
		if x.elems != nil && y.elems == nil && e.Kind != Null && b.Type.Kind != Null {
			c = order(e, b.Type, x.elems, y)
		}
		for i := range v.bools {
			if live != nil && !live[i] {
				continue
			}
			if x.isNull(i) {
				v.null[i] = true
				continue
			}
			v.bools[i] = !stop
			for k := x.from[i&x.mask]; k < x.to[i&x.mask]; k++ {
				if c == nil || y.isNull(i) || x.elems.isNull(k) {
					v.null[i] = true
				} else if hit[1+c(k, i)] == stop {
					v.bools[i], v.null[i] = stop, false
					break
				}
			}
		}
		return v
	}).loose(), nil
}

// alignElement converts b to a type that can be compared with the elements of list.
func alignElement(list, b *Node) (elem Type, y *Node, err error) {
	e, y, err := align(elementOf(list), b)
	if err == nil && e.Type != *list.Type.Elem {
		err = fault.Invalidf("the elements, %s, cannot be compared with %s: cast the value", *list.Type.Elem, b.Type)
	}
	return *list.Type.Elem, y, err
}

// Contains returns array_contains(list, v): nulls in the list are passed over.
func Contains(list, v *Node) (*Node, error) {
	if list.Type.Kind != List {
		return nil, fault.Invalidf("array_contains is for lists, not for %s", list.Type)
	}
	e, w, err := alignElement(list, v)
	if err != nil {
		return nil, err
	}
	return node(Type{Kind: Bool}, []*Node{list, w}, func(r *run, live []bool) *vec {
		x, y := list.eval(r, live), w.eval(r, live)
		v := r.alloc(Type{Kind: Bool}, r.nulls(x, y))
		clear(v.bools)
		if x.elems == nil || e.Kind == Null || w.Type.Kind == Null {
			return v
		}
		c := order(e, w.Type, x.elems, y)
		for i := range v.bools {
			if !asked(live, v.null, i) {
				continue
			}
			for k := x.from[i&x.mask]; k < x.to[i&x.mask] && !v.bools[i]; k++ {
				v.bools[i] = !x.elems.isNull(k) && c(k, i) == 0
			}
		}
		return v
	}), nil
}

// Len returns the number of elements of a list, of characters of a string, or of bytes.
func Len(x *Node) (*Node, error) {
	if x.Type.Kind != List {
		return length(x)
	}
	return ints(x, func(v *vec, i int) int64 { return int64(v.to[i] - v.from[i]) }), nil
}
