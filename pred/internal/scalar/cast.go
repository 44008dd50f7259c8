package scalar

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/internal/civil"
	"stoa/pred/internal/literal"
)

// Target is the type of a cast: a type, and the limits of its values.
type Target struct {
	Type
	name     string
	min, max int64 // of integers
	digits   int32 // of decimals
	unsigned bool  // of decimals: an integer of 64 bits without sign
}

func integerTarget(bits int, unsigned bool) Target {
	t := Target{Type: Type{Kind: Int}, min: math.MinInt64 >> (64 - bits), max: math.MaxInt64 >> (64 - bits)}
	switch {
	case unsigned && bits == 64:
		return Target{Type: Type{Kind: Decimal}, digits: 20, unsigned: true}
	case unsigned:
		t.min, t.max = 0, 1<<bits-1
	}
	return t
}

// targets are the names of types: those of SQL, and those of Arrow.
var targets = func() map[string]Target {
	out := map[string]Target{}
	for names, t := range map[string]Target{
		"bool boolean":                   {Type: Type{Kind: Bool}},
		"tinyint int8":                   integerTarget(8, false),
		"smallint int16":                 integerTarget(16, false),
		"int integer int32":              integerTarget(32, false),
		"bigint int64":                   integerTarget(64, false),
		"utinyint uint8":                 integerTarget(8, true),
		"usmallint uint16":               integerTarget(16, true),
		"uinteger uint32":                integerTarget(32, true),
		"ubigint uint64":                 integerTarget(64, true),
		"hugeint":                        {Type: Type{Kind: Decimal}, digits: DigitsMax},
		"decimal numeric":                {Type: Type{Kind: Decimal, Scale: 3}, digits: 18},
		"real float float32":             {Type: Type{Kind: Float, Bits: 32}},
		"double float64":                 {Type: Type{Kind: Float, Bits: 64}},
		"varchar text string utf8":       {Type: Type{Kind: String}},
		"blob binary bytea":              {Type: Type{Kind: Binary}},
		"date date32":                    {Type: Type{Kind: Date}},
		"time":                           {Type: Type{Kind: Time}},
		"timestamp datetime timestamptz": {Type: Type{Kind: Timestamp, Per: 1e6}},
		"timestamp_s":                    {Type: Type{Kind: Timestamp, Per: 1}},
		"timestamp_ms":                   {Type: Type{Kind: Timestamp, Per: 1e3}},
		"timestamp_us":                   {Type: Type{Kind: Timestamp, Per: 1e6}},
		"timestamp_ns":                   {Type: Type{Kind: Timestamp, Per: 1e9}},
	} {
		for _, name := range strings.Fields(names) {
			t.name = name
			out[name] = t
		}
	}
	return out
}()

// TargetNames returns the names of the types that a cast can have.
func TargetNames() []string {
	out := make([]string, 0, len(targets))
	for n := range targets {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// TargetOf returns the type of a name and, for decimals, its digits and scale.
func TargetOf(name string, digits, scale int, given bool) (Target, bool) {
	t, ok := targets[name]
	if !ok || !given {
		return t, ok
	}
	if t.Kind != Decimal || t.unsigned || name == "hugeint" || digits < 1 || digits > DigitsMax || scale < 0 ||
		scale > digits {
		return t, false
	}
	t.digits, t.Scale, t.name = int32(digits), int32(scale), fmt.Sprintf("%s(%d, %d)", name, digits, scale)
	return t, true
}

// convert casts implicitly, to a type that can hold every value of n.
func convert(n *Node, t Type) *Node {
	if n.Type == t {
		return n
	}
	target := Target{Type: t, min: math.MinInt64, max: math.MaxInt64, digits: DigitsMax}
	out, err := Cast(n, target, false)
	if err != nil {
		panic(err) // callers convert numbers to numbers; null instead would be a wrong answer
	}
	return out
}

// caster converts value i of v to value k of out; it returns the reason why it cannot.
type caster func(v *vec, i int, out *vec, k int) string

// Cast returns n as a value of type t. With try, what cannot be cast is null.
func Cast(n *Node, t Target, try bool) (*Node, error) {
	if n.Type.Kind == Null {
		return constant(t.Type, blank(t.Type)), nil
	}
	f, fails := casterOf(n.Type, t)
	if f == nil {
		return nil, fault.Invalidf("%s cannot be cast to %s", n.Type, t.name)
	}
	if n.Type.Kind == Timestamp && t.Kind == Timestamp && t.name == "timestamp" || n.Type == t.Type && !fails {
		return n, nil
	}
	var c *Node
	c = node(t.Type, []*Node{n}, func(r *run, live []bool) *vec {
		x := n.eval(r, live)
		v := r.alloc(t.Type, r.nulls(x))
		for i := range r.n {
			if !asked(live, v.null, i) {
				continue
			}
			reason := f(x, i&x.mask, v, i)
			if reason != "" && !try {
				r.fail(c.At, reason)
			}
			v.setNull(r, i, reason != "")
		}
		return v
	})
	if fails && !try {
		c.mayFail()
	}
	return c, nil
}

// blank returns a null of type t.
func blank(t Type) *vec {
	v := (&run{n: 1}).alloc(t, []bool{true})
	v.mask = 0
	return v
}

// casterOf returns the conversion of s to t, nil if there is none, and whether it may fail.
func casterOf(s Type, t Target) (f caster, fails bool) {
	if s.Kind == List {
		return nil, false
	}
	switch t.Kind {
	case Bool:
		return toBool(s), s.Kind == String
	case Int:
		return toInt(s, t), s.Kind != Bool && (s.Kind != Int || t.min != math.MinInt64)
	case Decimal:
		return toDecimal(s, t), s.Kind != Bool
	case Float:
		return toFloat(s, t.Type), s.Kind == String || s.Kind == Float && t.Bits < s.Bits
	case String:
		return toString(s), s.Kind == Binary
	case Binary:
		if s.isText() {
			return func(v *vec, i int, out *vec, k int) string { out.texts[k] = v.texts[i]; return "" }, false
		}
	case Date, Timestamp:
		return toDay(s, t.Type), s.Kind == String || t.Kind == Timestamp || s.Kind == Timestamp && s.Per < 1e6
	case Time:
		return toTime(s), s.Kind == String
	}
	return nil, false
}

func toBool(s Type) caster {
	switch s.Kind {
	case Bool:
		return func(v *vec, i int, out *vec, k int) string { out.bools[k] = v.bools[i]; return "" }
	case Int:
		return func(v *vec, i int, out *vec, k int) string { out.bools[k] = v.ints[i] != 0; return "" }
	case Float:
		return func(v *vec, i int, out *vec, k int) string { out.bools[k] = v.floats[i] != 0; return "" }
	case Decimal:
		return func(v *vec, i int, out *vec, k int) string {
			out.bools[k] = v.decs[i] != (decimal128.Num{})
			return ""
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			switch strings.ToLower(strings.Trim(v.texts[i], " ")) {
			case "true", "t", "1", "yes", "y":
				out.bools[k] = true
			case "false", "f", "0", "no", "n":
				out.bools[k] = false
			default:
				return quoted(v.texts[i]) + " is neither true nor false"
			}
			return ""
		}
	}
	return nil
}

func quoted(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		s = string([]rune(s)[:39]) + "…"
	}
	return "'" + strings.ToValidUTF8(s, "�") + "'"
}

func toInt(s Type, t Target) caster {
	put := func(x int64, out *vec, k int) string {
		if out.ints[k] = x; x < t.min || x > t.max {
			return fmt.Sprintf("%d is out of the range of %s", x, t.name)
		}
		return ""
	}
	fromDecimal := func(d decimal128.Num, scale int32, out *vec, k int) string {
		b := d.BigInt()
		if scale > 0 {
			b = divide(Half, b, pow10(scale))
		} else if scale < 0 {
			b.Mul(b, pow10(-scale))
		}
		if !b.IsInt64() {
			return fmt.Sprintf("%s is out of the range of %s", b, t.name)
		}
		return put(b.Int64(), out, k)
	}
	switch s.Kind {
	case Bool:
		return func(v *vec, i int, out *vec, k int) string { out.ints[k] = int64(whole(v.bools[i])); return "" }
	case Int:
		return func(v *vec, i int, out *vec, k int) string { return put(v.ints[i], out, k) }
	case Decimal:
		return func(v *vec, i int, out *vec, k int) string { return fromDecimal(v.decs[i], s.Scale, out, k) }
	case Float:
		return func(v *vec, i int, out *vec, k int) string {
			f := math.RoundToEven(v.floats[i])
			if !(f >= -1<<63 && f < 1<<63) {
				return fmt.Sprintf("%v is out of the range of %s", v.floats[i], t.name)
			}
			return put(int64(f), out, k)
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			text := trimSpace(v.texts[i])
			if x, err := strconv.ParseInt(text, 10, 64); err == nil {
				return put(x, out, k)
			}
			d, scale, ok := literal.ParseDecimal(text)
			if !ok || scale < -DigitsMax {
				return quoted(v.texts[i]) + " is no integer of " + t.name
			}
			return fromDecimal(d, scale, out, k)
		}
	}
	return nil
}

func trimSpace(s string) string { return strings.Trim(s, " \t\n\v\f\r") }

func toDecimal(s Type, t Target) caster {
	most := pow10(t.digits)
	put := func(b *big.Int, out *vec, k int) string {
		if b.CmpAbs(most) >= 0 || t.unsigned && (b.Sign() < 0 || b.BitLen() > 64) {
			return fmt.Sprintf("overflow: the number does not fit %s", t.orDecimal())
		}
		out.decs[k] = decimal128.FromBigInt(b)
		return ""
	}
	scaled := func(b *big.Int, scale int32, out *vec, k int) string {
		if scale > t.Scale {
			return put(divide(Half, b, pow10(scale-t.Scale)), out, k)
		}
		return put(b.Mul(b, pow10(t.Scale-scale)), out, k)
	}
	switch s.Kind {
	case Bool:
		return func(v *vec, i int, out *vec, k int) string {
			return scaled(big.NewInt(int64(whole(v.bools[i]))), 0, out, k)
		}
	case Int:
		quick := t.digits == DigitsMax && t.Scale <= 18 && !t.unsigned
		return func(v *vec, i int, out *vec, k int) string {
			if quick {
				out.decs[k], _ = rescale(decimal128.FromI64(v.ints[i]), t.Scale)
				return ""
			}
			return scaled(big.NewInt(v.ints[i]), 0, out, k)
		}
	case Decimal:
		quick := t.digits == DigitsMax && t.Scale >= s.Scale && !t.unsigned
		return func(v *vec, i int, out *vec, k int) string {
			if quick {
				var ok bool
				if out.decs[k], ok = rescale(v.decs[i], t.Scale-s.Scale); ok {
					return ""
				}
			}
			return scaled(v.decs[i].BigInt(), s.Scale, out, k)
		}
	case Float:
		return func(v *vec, i int, out *vec, k int) string {
			f := math.Round(v.floats[i] * math.Pow10(int(t.Scale)))
			if f != f || math.IsInf(f, 0) {
				return fmt.Sprintf("%v does not fit %s", v.floats[i], t.orDecimal())
			}
			b, _ := big.NewFloat(f).Int(nil)
			return put(b, out, k)
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			d, scale, ok := literal.ParseDecimal(trimSpace(v.texts[i]))
			if !ok || scale < -DigitsMax {
				return quoted(v.texts[i]) + " is no number of " + t.orDecimal()
			}
			return scaled(d.BigInt(), scale, out, k)
		}
	}
	return nil
}

// orDecimal is the name of a decimal type; an implicit one has none.
func (t Target) orDecimal() string {
	if t.name == "" {
		return fmt.Sprintf("decimal(%d, %d)", t.digits, t.Scale)
	}
	return t.name
}

// toFloat converts to the nearest float.
func toFloat(s, t Type) caster {
	switch s.Kind {
	case Bool:
		return func(v *vec, i int, out *vec, k int) string { out.floats[k] = float64(whole(v.bools[i])); return "" }
	case Int:
		return func(v *vec, i int, out *vec, k int) string {
			if out.floats[k] = float64(v.ints[i]); t.Bits == 32 {
				out.floats[k] = float64(float32(v.ints[i]))
			}
			return ""
		}
	case Decimal:
		return func(v *vec, i int, out *vec, k int) string {
			out.floats[k] = round32(t, decimalFloat(v.decs[i], s.Scale))
			return ""
		}
	case Float:
		return func(v *vec, i int, out *vec, k int) string {
			f := v.floats[i]
			if out.floats[k] = round32(t, f); math.IsInf(out.floats[k], 0) && !math.IsInf(f, 0) {
				return fmt.Sprintf("%v is out of the range of a float of 32 bits", f)
			}
			return ""
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			text := trimSpace(v.texts[i])
			f, err := strconv.ParseFloat(text, t.Bits)
			if err != nil || strings.ContainsAny(text, "xX_pP") {
				return quoted(v.texts[i]) + " is no float"
			}
			out.floats[k] = f
			return ""
		}
	}
	return nil
}

// decimalFloat returns the float nearest to a decimal.
func decimalFloat(d decimal128.Num, scale int32) float64 {
	if h, l := d.HighBits(), d.LowBits(); h == 0 && l < 1<<53 && scale <= 22 {
		return float64(l) / math.Pow10(int(scale)) // both exact, so the quotient is the nearest
	} else if h == -1 && -l < 1<<53 && scale <= 22 {
		return -float64(-l) / math.Pow10(int(scale))
	}
	f, _ := new(big.Rat).SetFrac(d.BigInt(), pow10(scale)).Float64()
	return f
}

func toString(s Type) caster {
	var f func(v *vec, i int) string
	switch s.Kind {
	case Bool:
		f = func(v *vec, i int) string { return strconv.FormatBool(v.bools[i]) }
	case Int:
		f = func(v *vec, i int) string { return strconv.FormatInt(v.ints[i], 10) }
	case Decimal:
		f = func(v *vec, i int) string { return literal.FormatDecimal(v.decs[i], s.Scale) }
	case Float:
		f = func(v *vec, i int) string { return formatFloat(v.floats[i], s.Bits) }
	case String:
		f = func(v *vec, i int) string { return v.texts[i] }
	case Binary:
		return func(v *vec, i int, out *vec, k int) string {
			if out.texts[k] = v.texts[i]; !utf8.ValidString(v.texts[i]) {
				return "the bytes are no UTF-8"
			}
			return ""
		}
	case Date:
		f = func(v *vec, i int) string { return literal.FormatDate(v.ints[i]) }
	case Time:
		f = func(v *vec, i int) string { return literal.FormatTime(v.ints[i]) }
	case Timestamp:
		f = func(v *vec, i int) string {
			sec, nanos := instant(v.ints[i], s.Per)
			day := civil.FloorDiv(sec, daySeconds)
			return literal.FormatDate(day) + " " + literal.FormatTime((sec-day*daySeconds)*1e9+nanos)
		}
	}
	return func(v *vec, i int, out *vec, k int) string { out.texts[k] = f(v, i); return "" }
}

// formatFloat writes the shortest text that is read as f again: 1.0, 1.5e-07, nan.
func formatFloat(f float64, bits int) string {
	switch {
	case f != f:
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(f, 'e', -1, bits)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, bits)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// toDay converts to a date or timestamp.
func toDay(s, t Type) caster {
	put := func(sec, nanos int64, out *vec, k int) string {
		if t.Kind == Date {
			if out.ints[k] = civil.FloorDiv(sec, daySeconds); out.ints[k] != int64(int32(out.ints[k])) {
				return "the date is out of the range of dates of 32 bits"
			}
			return ""
		}
		p, ok := multiply(sec, t.Per)
		q := nanos / (1e9 / t.Per)
		if out.ints[k] = p + q; !ok || p > math.MaxInt64-q {
			return "the date is out of the range of timestamps"
		}
		return ""
	}
	switch s.Kind {
	case Date:
		return func(v *vec, i int, out *vec, k int) string { return put(v.ints[i]*daySeconds, 0, out, k) }
	case Timestamp:
		return func(v *vec, i int, out *vec, k int) string {
			sec, nanos := instant(v.ints[i], s.Per)
			return put(sec, nanos, out, k)
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			sec, nanos, ok := literal.ParseTimestamp(trimSpace(v.texts[i]))
			if !ok {
				return quoted(v.texts[i]) + " is neither a date like '2020-01-02' nor a timestamp like " +
					"'2020-01-02T03:04:05Z'"
			}
			return put(sec, int64(nanos), out, k)
		}
	}
	return nil
}

func toTime(s Type) caster {
	switch s.Kind {
	case Time:
		return func(v *vec, i int, out *vec, k int) string { out.ints[k] = v.ints[i]; return "" }
	case Timestamp:
		return func(v *vec, i int, out *vec, k int) string {
			sec, nanos := instant(v.ints[i], s.Per)
			out.ints[k] = (sec-civil.FloorDiv(sec, daySeconds)*daySeconds)*1e9 + nanos
			return ""
		}
	case String:
		return func(v *vec, i int, out *vec, k int) string {
			t, ok := literal.ParseTime(trimSpace(v.texts[i]))
			if out.ints[k] = t; !ok {
				return quoted(v.texts[i]) + " is not a time like '03:04:05'"
			}
			return ""
		}
	}
	return nil
}
