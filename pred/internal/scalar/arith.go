package scalar

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
)

// ints returns a strict node of integers, computed from the values of x.
func ints(x *Node, f func(v *vec, i int) int64) *Node {
	return node(Type{Kind: Int}, []*Node{x}, func(r *run, live []bool) *vec {
		a := x.eval(r, live)
		v := r.alloc(Type{Kind: Int}, r.nulls(a))
		for i := range v.ints {
			v.ints[i] = 0
			if asked(live, v.null, i) {
				v.ints[i] = f(a, i&a.mask)
			}
		}
		return v
	})
}

var null = constant(Type{}, &vec{null: []bool{true}})

// NullNode returns the constant null.
func NullNode() *Node { return null }

// Arith returns a op b, op one of + - * / %. Integers and decimals fail on overflow; / is of floats; / and % by zero
// are null.
func Arith(op string, a, b *Node) (*Node, error) {
	s, t := a.Type, b.Type
	switch {
	case s.Kind == Null && (t.isNumber() || t.Kind == Null || t.Kind == Date),
		t.Kind == Null && (s.isNumber() || s.Kind == Date):
		return null, nil
	case s.Kind == Date && t.Kind == Int && (op == "+" || op == "-"):
		return days(op, a, b), nil
	case s.Kind == Int && t.Kind == Date && op == "+":
		return days(op, b, a), nil
	case s.Kind == Date && t.Kind == Date && op == "-":
		return whole2(Type{Kind: Int}, op, a, b), nil
	case !s.isNumber() || !t.isNumber():
		return nil, fault.Invalidf("%s %s %s: expected numbers", s, op, t)
	case s.Kind == Float || t.Kind == Float || op == "/":
		to := Type{Kind: Float, Bits: 64}
		if s.Kind != Float || t.Kind != Float {
			if s.Bits == 32 || t.Bits == 32 {
				to.Bits = 32
			}
		} else if s.Bits == 32 && t.Bits == 32 {
			to.Bits = 32
		}
		return floats2(to, op, convert(a, to), convert(b, to)), nil
	case s.Kind == Int && t.Kind == Int:
		return whole2(s, op, a, b), nil
	}
	return decimals2(op, a, b)
}

// days returns a date some days later or earlier.
func days(op string, a, b *Node) *Node {
	n := whole2(Type{Kind: Date}, op, a, b)
	eval := n.eval
	n.eval = func(r *run, live []bool) *vec {
		v := eval(r, live)
		for i, d := range v.ints {
			if asked(live, v.null, i) && d != int64(int32(d)) {
				r.fail(n.At, "the date is out of range")
				v.ints[i] = 0
			}
		}
		return v
	}
	return n
}

// whole2 returns a op b on integers.
func whole2(t Type, op string, a, b *Node) *Node {
	var n *Node
	n = node(t, []*Node{a, b}, func(r *run, live []bool) *vec {
		x, y := a.eval(r, live), b.eval(r, live)
		v := r.alloc(t, r.nulls(x, y))
		for i := range v.ints {
			p, q := x.ints[i&x.mask], y.ints[i&y.mask]
			ok := true
			switch op {
			case "+":
				v.ints[i] = p + q
				ok = (p^v.ints[i])&(q^v.ints[i]) >= 0
			case "-":
				v.ints[i] = p - q
				ok = (p^q)&(p^v.ints[i]) >= 0
			case "*":
				v.ints[i], ok = multiply(p, q)
			case "%":
				if q == 0 || q == -1 {
					v.ints[i] = 0
					v.setNull(r, i, q == 0)
					continue
				}
				v.ints[i] = p % q
			}
			if !ok && asked(live, v.null, i) {
				r.fail(n.At, fmt.Sprintf("overflow: %d %s %d is no integer of 64 bits", p, op, q))
			}
		}
		return v
	}).mayFail()
	n.Fails = n.Fails && op != "%" || a.Fails || b.Fails
	return n
}

// setNull makes value i null if yes.
func (v *vec) setNull(r *run, i int, yes bool) {
	if !yes {
		return
	}
	if v.null == nil {
		v.null = r.falses(r.n)
	}
	v.null[i] = true
}

func multiply(p, q int64) (int64, bool) {
	if p == 0 || q == 0 {
		return 0, true
	}
	hi, lo := bits.Mul64(magnitude(p), magnitude(q))
	neg := (p < 0) != (q < 0)
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !neg {
		return 0, false
	}
	return p * q, true
}

func magnitude(p int64) uint64 {
	if p < 0 {
		return -uint64(p)
	}
	return uint64(p)
}

// floats2 returns a op b on floats of type t.
func floats2(t Type, op string, a, b *Node) *Node {
	return node(t, []*Node{a, b}, func(r *run, live []bool) *vec {
		x, y := a.eval(r, live), b.eval(r, live)
		v := r.alloc(t, r.nulls(x, y))
		for i := range v.floats {
			p, q := x.floats[i&x.mask], y.floats[i&y.mask]
			switch op {
			case "+":
				p += q
			case "-":
				p -= q
			case "*":
				p *= q
			case "/":
				v.setNull(r, i, q == 0)
				p /= q
			case "%":
				v.setNull(r, i, q == 0)
				p = math.Mod(p, q)
			}
			v.floats[i] = round32(t, p)
		}
		return v
	})
}

// round32 rounds f to the precision of t.
func round32(t Type, f float64) float64 {
	if t.Bits == 32 {
		return float64(float32(f))
	}
	return f
}

// decimals2 returns a op b on decimals, one of which may be an integer.
func decimals2(op string, a, b *Node) (*Node, error) {
	s, t := max(0, a.Type.Scale), max(0, b.Type.Scale)
	to := Type{Kind: Decimal, Scale: max(s, t)}
	x, y := a, b
	if op == "*" {
		if to.Scale = s + t; to.Scale > DigitsMax {
			return nil, fault.Invalidf("the product would have %d digits after the point, more than %d: cast to float",
				to.Scale, DigitsMax)
		}
		x, y = convert(a, Type{Kind: Decimal, Scale: s}), convert(b, Type{Kind: Decimal, Scale: t})
	} else {
		x, y = convert(a, to), convert(b, to)
	}
	var n *Node
	n = node(to, []*Node{x, y}, func(r *run, live []bool) *vec {
		p, q := x.eval(r, live), y.eval(r, live)
		v := r.alloc(to, r.nulls(p, q))
		for i := range v.decs {
			if !asked(live, v.null, i) {
				continue
			}
			if op == "%" && q.decs[i&q.mask] == (decimal128.Num{}) {
				v.setNull(r, i, true)
				continue
			}
			var ok bool
			if v.decs[i], ok = decimalOp(op, p.decs[i&p.mask], q.decs[i&q.mask]); !ok {
				r.fail(n.At, fmt.Sprintf("overflow: %s %s %s has more than %d digits",
					p.decs[i&p.mask].ToString(x.Type.Scale),
					op, q.decs[i&q.mask].ToString(y.Type.Scale), DigitsMax))
			}
		}
		return v
	}).mayFail()
	return n, nil
}

// decimalOp returns p op q on numbers of the same scale; false if it has more than 38 digits.
func decimalOp(op string, p, q decimal128.Num) (decimal128.Num, bool) {
	a, b := p.BigInt(), q.BigInt()
	switch op {
	case "+":
		a.Add(a, b)
	case "-":
		a.Sub(a, b)
	case "*":
		a.Mul(a, b)
	case "%":
		a.Rem(a, b)
	}
	return fromBig(a)
}

// limit is the first number of more than 38 digits.
var limit = pow10(DigitsMax)

func fromBig(b *big.Int) (decimal128.Num, bool) {
	if b.CmpAbs(limit) >= 0 {
		return decimal128.Num{}, false
	}
	return decimal128.FromBigInt(b), true
}

// rescale multiplies d by a power of ten; false if it gets more than 38 digits.
func rescale(d decimal128.Num, by int32) (decimal128.Num, bool) {
	if by == 0 {
		return d, true
	}
	if h := d.HighBits(); by <= 18 && (h == 0 && d.LowBits() < 1<<63 || h == -1 && d.LowBits() >= 1<<63) {
		return d.Mul(decimal128.FromU64(powers[by])), true // 2^63 × 10^18 has less than 38 digits
	}
	return fromBig(new(big.Int).Mul(d.BigInt(), pow10(by)))
}

var powers = func() (out [19]uint64) {
	out[0] = 1
	for i := 1; i < len(out); i++ {
		out[i] = 10 * out[i-1]
	}
	return out
}()

// Neg returns -a.
func Neg(a *Node) (*Node, error) {
	if a.Type.Kind == Float { // 0 - 0.0 would be 0.0
		return floats1(a, func(f float64) float64 { return -f }), nil
	}
	return Arith("-", constant(Type{Kind: Int}, &vec{ints: []int64{0}}), a)
}

func floats1(a *Node, f func(float64) float64) *Node {
	t := a.Type
	return node(t, []*Node{a}, func(r *run, live []bool) *vec {
		x := a.eval(r, live)
		v := r.alloc(t, r.nulls(x))
		for i := range v.floats {
			v.floats[i] = round32(t, f(x.floats[i&x.mask]))
		}
		return v
	})
}

// Abs returns the magnitude of a.
func Abs(a *Node) (*Node, error) {
	switch a.Type.Kind {
	case Null:
		return null, nil
	case Float:
		return floats1(a, math.Abs), nil
	case Int:
		var n *Node
		n = node(a.Type, []*Node{a}, func(r *run, live []bool) *vec {
			x := a.eval(r, live)
			v := r.alloc(a.Type, r.nulls(x))
			for i := range v.ints {
				if v.ints[i] = int64(magnitude(x.ints[i&x.mask])); v.ints[i] < 0 && asked(live, v.null, i) {
					r.fail(n.At, fmt.Sprintf("overflow: abs(%d) is no integer of 64 bits", x.ints[i&x.mask]))
				}
			}
			return v
		}).mayFail()
		return n, nil
	case Decimal:
		return decimals1(a, a.Type.Scale, func(b *big.Int) *big.Int { return b.Abs(b) }), nil
	}
	return nil, fault.Invalidf("abs is for numbers, not for %s", a.Type)
}

// decimals1 returns f of unscaled decimals, which never gets more digits than one.
func decimals1(a *Node, scale int32, f func(b *big.Int) *big.Int) *Node {
	t := Type{Kind: Decimal, Scale: scale}
	var n *Node
	n = node(t, []*Node{a}, func(r *run, live []bool) *vec {
		x := a.eval(r, live)
		v := r.alloc(t, r.nulls(x))
		for i := range v.decs {
			if !asked(live, v.null, i) {
				continue
			}
			var ok bool
			if v.decs[i], ok = fromBig(f(x.decs[i&x.mask].BigInt())); !ok {
				r.fail(n.At, fmt.Sprintf("overflow: more than %d digits", DigitsMax))
			}
		}
		return v
	}).mayFail()
	return n
}

// Rounding is a way to make a number whole.
type Rounding int

// The roundings.
const (
	Half  Rounding = iota // to the nearest, halves away from zero
	Floor                 // down
	Ceil                  // up
)

// Round returns a with digits digits after the point.
func Round(a *Node, how Rounding, digits int64) (*Node, error) {
	if digits > DigitsMax || digits < -DigitsMax {
		return nil, fault.Invalidf("expected %d to %d digits", -DigitsMax, DigitsMax)
	}
	switch a.Type.Kind {
	case Null:
		return null, nil
	case Float:
		return floats1(a, roundFloat(how, digits)), nil
	case Int:
		if digits >= 0 {
			return a, nil
		}
		n, err := Round(convert(a, Type{Kind: Decimal}), how, digits)
		if err == nil {
			n = convert(n, Type{Kind: Int})
		}
		return n, err
	case Decimal:
		drop := int64(a.Type.Scale) - digits
		if drop <= 0 {
			return a, nil
		}
		unit := pow10(int32(drop))
		back := pow10(int32(max(0, -digits)))
		return decimals1(a, int32(max(0, digits)), func(b *big.Int) *big.Int {
			b = divide(how, b, unit)
			return b.Mul(b, back)
		}), nil
	}
	return nil, fault.Invalidf("expected a number to round, not %s", a.Type)
}

func roundFloat(how Rounding, digits int64) func(f float64) float64 {
	f := [...]func(float64) float64{math.Round, math.Floor, math.Ceil}[how]
	if digits == 0 {
		return f
	}
	m := math.Pow10(int(max(digits, -digits)))
	return func(x float64) float64 {
		y := f(x*m) / m
		if digits < 0 {
			y = f(x/m) * m
		}
		if math.IsInf(y, 0) || y != y {
			return x
		}
		return y
	}
}

// divide returns b / unit as a whole number.
func divide(how Rounding, b, unit *big.Int) *big.Int {
	q, rest := new(big.Int).QuoRem(b, unit, new(big.Int))
	sign := int64(b.Sign())
	up := false
	switch how {
	case Half:
		up = rest.Abs(rest).Lsh(rest, 1).CmpAbs(unit) >= 0
	case Floor:
		up = rest.Sign() < 0
	case Ceil:
		up = rest.Sign() > 0
	}
	if up {
		q.Add(q, big.NewInt(sign))
	}
	return q
}
