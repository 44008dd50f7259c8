package pred

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// The naive evaluator: one cell at a time, of type any, on the tree before Bind. Its truth values are
// *bool; nil is unknown. Cells are nil, bool, *big.Rat, float64, string ([]byte for binary), or time: *big.Int
// nanoseconds.

func is(b bool) *bool { return &b }

func naive(e *Expr, cell func(path string) (any, arrow.DataType)) *bool {
	switch e.Op {
	case OpTrue, OpFalse:
		return is(e.Op == OpTrue)
	case OpUnknown:
		return nil
	case OpNot:
		return invert(naive(e.Args[0], cell))
	case OpAnd, OpOr:
		out := is(e.Op == OpAnd)
		for _, a := range e.Args {
			switch x := naive(a, cell); {
			case x == nil:
				if out != nil && *out == (e.Op == OpAnd) {
					out = nil
				}
			case *x != (e.Op == OpAnd):
				return x
			}
		}
		return out
	}
	c, t := cell(e.Column)
	return naiveTest(e.Op, c, t, e.Values, e.Escape)
}

func invert(b *bool) *bool {
	if b == nil {
		return nil
	}
	return is(!*b)
}

func naiveTest(op Op, c any, t arrow.DataType, vs []Value, esc string) *bool {
	cmp := func(i int, ok func(c int) bool) *bool {
		if c == nil || vs[i].Kind == KindNull {
			return nil
		}
		return is(ok(naiveCompare(c, vs[i], t)))
	}
	switch op {
	case OpIsNull:
		return is(c == nil)
	case OpIsNotNull:
		return is(c != nil)
	case OpEq:
		return cmp(0, func(c int) bool { return c == 0 })
	case OpLt:
		return cmp(0, func(c int) bool { return c < 0 })
	case OpLe:
		return cmp(0, func(c int) bool { return c <= 0 })
	case OpGt:
		return cmp(0, func(c int) bool { return c > 0 })
	case OpGe:
		return cmp(0, func(c int) bool { return c >= 0 })
	case OpBetween:
		lo := cmp(0, func(c int) bool { return c >= 0 })
		hi := cmp(1, func(c int) bool { return c <= 0 })
		if lo != nil && !*lo || hi != nil && !*hi {
			return is(false)
		}
		if lo == nil || hi == nil {
			return nil
		}
		return is(true)
	case OpIn:
		if c == nil {
			return nil
		}
		out := is(false)
		for i := range vs {
			x := cmp(i, func(c int) bool { return c == 0 })
			if x == nil {
				out = nil
			} else if *x {
				return x
			}
		}
		return out
	case OpLike:
		if c == nil || vs[0].Kind == KindNull {
			return nil
		}
		if b, ok := c.([]byte); ok {
			return is(naiveLike(vs[0].Text, string(b), esc, true))
		}
		return is(naiveLike(vs[0].Text, c.(string), esc, false))
	}
	return invert(naiveTest(ops[op].not, c, t, vs, esc))
}

// naiveLike is like, by backtracking.
func naiveLike(pat, s, esc string, binary bool) bool {
	if pat == "" {
		return s == ""
	}
	_, n := utf8.DecodeRuneInString(pat)
	w := 1
	if !binary && s != "" {
		_, w = utf8.DecodeRuneInString(s)
	}
	if esc == "" {
		esc = "\\"
	}
	switch head := pat[:n]; {
	case head == esc:
		_, m := utf8.DecodeRuneInString(pat[n:])
		return strings.HasPrefix(s, pat[n:n+m]) && naiveLike(pat[n+m:], s[m:], esc, binary)
	case head == "%":
		return naiveLike(pat[n:], s, esc, binary) || s != "" && naiveLike(pat, s[w:], esc, binary)
	case head == "_":
		return s != "" && naiveLike(pat[n:], s[w:], esc, binary)
	default:
		return strings.HasPrefix(s, head) && naiveLike(pat[n:], s[n:], esc, binary)
	}
}

// naiveCompare compares a cell with a literal.
func naiveCompare(c any, v Value, t arrow.DataType) int {
	switch c := c.(type) {
	case bool:
		return int(Bool(c).Int - v.Int)
	case string:
		return strings.Compare(c, v.Text)
	case []byte:
		return bytes.Compare(c, []byte(v.Text))
	case *big.Int:
		return c.Cmp(naiveNanos(v))
	case *big.Rat:
		if v.rank() != 0 {
			return -v.rank()
		}
		return c.Cmp(naiveRat(v))
	case float64:
		return naiveFloats(c, v, t)
	}
	panic("no such cell")
}

func naiveRat(v Value) *big.Rat {
	switch v.Kind {
	case KindInt, KindUint:
		r, _ := new(big.Rat).SetString(v.String())
		return r
	case KindFloat:
		return new(big.Rat).SetFloat64(v.Float)
	}
	r, _ := new(big.Rat).SetString(v.plain())
	return r
}

func naiveNanos(v Value) *big.Int {
	if v.Kind == KindString {
		if d, ok := parseDate(v.Text); ok {
			v = Date(d)
		} else if sec, n, ok := parseTimestamp(v.Text); ok {
			v = Timestamp(sec, n)
		} else {
			d, _ := parseTime(v.Text)
			v = Time(d)
		}
	}
	sec, nanos := v.Int, int64(v.Nanos)
	switch v.Kind {
	case KindDate:
		sec *= 86400
	case KindTime:
		sec, nanos = 0, v.Int
	}
	n := new(big.Int).Mul(big.NewInt(sec), big.NewInt(1e9))
	return n.Add(n, big.NewInt(nanos))
}

func naiveFloats(c float64, v Value, t arrow.DataType) int {
	rank := func(f float64) int { return Float(f).rank() }
	if rank(c) != 0 || v.rank() != 0 {
		return rank(c) - v.rank()
	}
	r := naiveRat(v)
	if v.Kind == KindFloat || v.Kind == KindDecimal {
		if f := naiveRound(r, t); f != 0 && !math.IsInf(f, 0) {
			r.SetFloat64(f)
		}
	}
	return new(big.Rat).SetFloat64(c).Cmp(r)
}

// naiveRound returns the float of type t that is nearest to r.
func naiveRound(r *big.Rat, t arrow.DataType) float64 {
	switch t.ID() {
	case arrow.FLOAT64:
		f, _ := r.Float64()
		return f
	case arrow.FLOAT32:
		f, _ := r.Float32()
		return float64(f)
	}
	f, _ := new(big.Float).SetPrec(11).SetMode(big.ToNearestEven).SetRat(r).Float64()
	if math.Abs(f) < 0x1p-14 { // subnormal: multiples of 2^-24
		g, _ := new(big.Float).SetPrec(200).SetRat(r).Float64()
		f = math.RoundToEven(g*0x1p24) * 0x1p-24
	}
	if math.Abs(f) > 65504 {
		return math.Inf(int(f))
	}
	return f
}
