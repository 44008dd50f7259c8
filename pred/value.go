package pred

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/pred/internal/literal"
	"stoa/pred/internal/syntax"
)

// Kind is the kind of a Value.
type Kind uint8

// The kinds of values, and the fields of Value that hold them.
const (
	KindNull      Kind = iota // none
	KindBool                  // Int: 0 or 1
	KindInt                   // Int
	KindUint                  // Uint: an integer above the largest int64
	KindFloat                 // Float
	KindDecimal               // Dec, Scale: Dec × 10^-Scale
	KindString                // Text
	KindBytes                 // Text
	KindDate                  // Int: days since 1970-01-01
	KindTime                  // Int: nanoseconds since midnight
	KindTimestamp             // Int: seconds since 1970-01-01 UTC, rounded down; Nanos on top of them
)

// kindNames are the names of the kinds in messages and, from int on, in JSON.
var kindNames = [...]string{"null", "bool", "int", "uint", "float", "decimal", "string", "bytes", "date", "time",
	"timestamp"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Value is a literal or a bound, never a cell. The zero Value is null.
//
// In JSON null, booleans and strings are themselves; everything else is an object with one member, a text, so that
// nothing is lost:
//
//	{"int":"-9007199254740993"}  {"uint":"18446744073709551615"}  {"float":"NaN"}  {"decimal":"12.50"}
//	{"bytes":"00ff"}  {"date":"2020-01-02"}  {"time":"03:04:05.5"}  {"timestamp":"2020-01-02T03:04:05.123456Z"}
//
// {"string":"61ff"} is the string of these bytes, for strings that are not UTF-8. A plain JSON number is parsed as by
// Parse.
type Value struct {
	Kind  Kind
	Scale int32
	Nanos int32
	Int   int64
	Uint  uint64
	Float float64
	Dec   decimal128.Num
	Text  string
}

// Null returns the null value.
func Null() Value { return Value{} }

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return Value{Kind: KindBool, Int: 1}
	}
	return Value{Kind: KindBool}
}

// Int returns an integer.
func Int(i int64) Value { return Value{Kind: KindInt, Int: i} }

// Uint returns an integer, of KindInt if it fits.
func Uint(u uint64) Value {
	if u <= math.MaxInt64 {
		return Int(int64(u))
	}
	return Value{Kind: KindUint, Uint: u}
}

// Float returns a floating-point number. All NaN become the same one.
func Float(f float64) Value {
	if f != f {
		f = math.NaN()
	}
	return Value{Kind: KindFloat, Float: f}
}

// Decimal returns unscaled × 10^-scale.
func Decimal(unscaled decimal128.Num, scale int32) Value {
	return Value{Kind: KindDecimal, Dec: unscaled, Scale: scale}
}

// String returns a string.
func String(s string) Value { return Value{Kind: KindString, Text: s} }

// Bytes returns a binary value with a copy of b.
func Bytes(b []byte) Value { return Value{Kind: KindBytes, Text: string(b)} }

// Date returns the day that is this many days after 1970-01-01.
func Date(days int64) Value { return Value{Kind: KindDate, Int: days} }

// Time returns a time of day, in nanoseconds since midnight.
func Time(nanos int64) Value { return Value{Kind: KindTime, Int: nanos} }

// Timestamp returns the instant sec seconds and nanos nanoseconds (0 to 999999999) after 1970-01-01 UTC.
func Timestamp(sec int64, nanos int32) Value {
	return Value{Kind: KindTimestamp, Int: sec, Nanos: nanos}
}

const (
	daySeconds = literal.DaySeconds
	dayNanos   = daySeconds * 1_000_000_000
	maxDays    = literal.MaxDays
	maxScale   = literal.MaxScale
)

// perSecond returns how many units there are in a second.
func perSecond(u arrow.TimeUnit) int64 {
	return [...]int64{1, 1e3, 1e6, 1e9}[uint(u)&3]
}

// Typed returns the value that a column of type t stores as the integer v: an integer, boolean, date, time, timestamp,
// duration or 32- or 64-bit decimal. It returns null for every other type, and for a time outside of the day.
func Typed(t arrow.DataType, v int64) Value {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return Bool(v != 0)
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.DurationType:
		return Int(v)
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return Uint(uint64(v))
	case *arrow.Decimal32Type:
		return Decimal(decimal128.FromI64(v), t.Scale)
	case *arrow.Decimal64Type:
		return Decimal(decimal128.FromI64(v), t.Scale)
	case *arrow.Date32Type:
		return Date(v)
	case *arrow.Date64Type:
		return instant(v, 1e3)
	case *arrow.TimestampType:
		return instant(v, perSecond(t.Unit))
	case *arrow.Time32Type:
		return timeOfDay(v, perSecond(t.Unit))
	case *arrow.Time64Type:
		return timeOfDay(v, perSecond(t.Unit))
	case *arrow.DictionaryType:
		return Typed(t.ValueType, v)
	}
	return Null()
}

// instant returns the timestamp v units of 1/per second after 1970.
func instant(v, per int64) Value {
	sec, rest := v/per, v%per
	if rest < 0 {
		sec, rest = sec-1, rest+per
	}
	return Timestamp(sec, int32(rest*(1e9/per)))
}

func timeOfDay(v, per int64) Value {
	if v < 0 || v >= daySeconds*per {
		return Null()
	}
	return Time(v * (1e9 / per))
}

// Stored is the inverse of Typed: it returns the integer that stores v in a column of type t, if there is an exact one.
func (v Value) Stored(t arrow.DataType) (int64, bool) {
	d := domainOf(t)
	if v.Kind == KindNull || d.bits > 64 || d.class != classBool && d.class != classInt && d.class != classUint {
		return 0, false
	}
	p, err := d.place(v)
	if err != nil || !p.exact || p.side != 0 {
		return 0, false
	}
	return int64(p.at[3]), true
}

// check returns an error if v, which may come from JSON, is malformed.
func (v Value) check() error {
	bad := v.Kind > KindTimestamp || v.Kind == KindBool && v.Int>>1 != 0 ||
		v.Scale > maxScale || v.Scale < -maxScale || v.Nanos < 0 || v.Nanos >= 1e9 ||
		v.Kind == KindDate && (v.Int > maxDays || v.Int < -maxDays) ||
		v.Kind == KindTime && (v.Int < 0 || v.Int >= dayNanos)
	if bad {
		return fault.Invalidf("a malformed literal of kind %s", v.Kind)
	}
	return nil
}

// Equal reports whether v and o are the same value of the same kind. All NaN are equal.
func (v Value) Equal(o Value) bool {
	if v.Kind == KindFloat && o.Kind == KindFloat && v.Float != v.Float && o.Float != o.Float {
		return true
	}
	return v == o
}

// Compare compares a and b by value, exactly: numbers with numbers, strings and bytes with each other, dates and
// timestamps with each other. It returns false if they cannot be compared, which includes null.
func Compare(a, b Value) (int, bool) {
	switch {
	case a.Kind == KindInt && b.Kind == KindInt, a.Kind == b.Kind &&
		(a.Kind == KindBool || a.Kind == KindTime || a.Kind == KindDate):
		return cmp.Compare(a.Int, b.Int), true
	case a.isText() && b.isText():
		return strings.Compare(a.Text, b.Text), true
	case a.isNumber() && b.isNumber():
		return compareNumbers(a, b), true
	case a.isInstant() && b.isInstant():
		as, an := a.seconds()
		bs, bn := b.seconds()
		return cmp.Or(cmp.Compare(as, bs), cmp.Compare(an, bn)), true
	}
	return 0, false
}

func (v Value) isText() bool    { return v.Kind == KindString || v.Kind == KindBytes }
func (v Value) isNumber() bool  { return v.Kind >= KindInt && v.Kind <= KindDecimal }
func (v Value) isInstant() bool { return v.Kind == KindDate || v.Kind == KindTimestamp }

// seconds returns an instant, as seconds and nanoseconds.
func (v Value) seconds() (int64, int32) {
	if v.Kind == KindDate {
		return v.Int * daySeconds, 0
	}
	return v.Int, v.Nanos
}

func compareNumbers(a, b Value) int {
	ra, rb := a.rat(), b.rat()
	if ra != nil && rb != nil {
		return ra.Cmp(rb)
	}
	return cmp.Compare(a.rank(), b.rank())
}

// rank orders numbers that are not finite around those that are.
func (v Value) rank() int {
	switch {
	case v.Kind != KindFloat:
		return 0
	case v.Float != v.Float:
		return 2
	case math.IsInf(v.Float, 1):
		return 1
	case math.IsInf(v.Float, -1):
		return -1
	}
	return 0
}

// rat returns a number's exact value; nil if v is not a number or not finite.
func (v Value) rat() *big.Rat {
	switch v.Kind {
	case KindInt:
		return new(big.Rat).SetInt64(v.Int)
	case KindUint:
		return new(big.Rat).SetUint64(v.Uint)
	case KindFloat:
		return new(big.Rat).SetFloat64(v.Float)
	case KindDecimal:
		r := new(big.Rat).SetInt(v.Dec.BigInt())
		if v.Scale >= 0 {
			return r.Quo(r, new(big.Rat).SetInt(pow10(v.Scale)))
		}
		return r.Mul(r, new(big.Rat).SetInt(pow10(-v.Scale)))
	}
	return nil
}

func pow10(n int32) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(min(n, 2*maxScale))), nil)
}

// String returns v in the syntax of Parse.
func (v Value) String() string {
	s := v.plain()
	switch v.Kind {
	case KindFloat:
		if v.rank() == 0 {
			return s
		}
	case KindDecimal:
		if numberKind(s) == KindDecimal {
			return s
		}
	case KindString:
		if utf8.ValidString(s) {
			return syntax.Quote(s)
		}
		return "x'" + hex.EncodeToString([]byte(s)) + "'"
	case KindBytes:
		return "x'" + s + "'"
	case KindDate, KindTime, KindTimestamp:
	default:
		return s
	}
	return v.Kind.String() + " '" + s + "'"
}

// plain returns v without kind and quotation marks.
func (v Value) plain() string {
	switch v.Kind {
	case KindBool:
		return strconv.FormatBool(v.Int != 0)
	case KindInt:
		return strconv.FormatInt(v.Int, 10)
	case KindUint:
		return strconv.FormatUint(v.Uint, 10)
	case KindFloat:
		return formatFloat(v.Float)
	case KindDecimal:
		return formatDecimal(v.Dec, v.Scale)
	case KindString:
		return v.Text
	case KindBytes:
		return hex.EncodeToString([]byte(v.Text))
	case KindDate:
		return formatDate(v.Int)
	case KindTime:
		return formatTime(v.Int)
	case KindTimestamp:
		return formatTimestamp(v.Int, v.Nanos)
	}
	return "null"
}

// MarshalJSON encodes v in the form that is described at Value.
func (v Value) MarshalJSON() ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	switch v.Kind {
	case KindNull, KindBool:
		return []byte(v.plain()), nil
	case KindString:
		if utf8.ValidString(v.Text) {
			return json.Marshal(v.Text)
		}
		return json.Marshal(map[string]string{"string": hex.EncodeToString([]byte(v.Text))})
	}
	return json.Marshal(map[string]string{v.Kind.String(): v.plain()})
}

// UnmarshalJSON decodes the form that is described at Value.
func (v *Value) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return fault.Invalidf("an empty literal")
	}
	switch b[0] {
	case 'n':
		*v = Null()
		return nil
	case 't', 'f':
		*v = Bool(b[0] == 't')
		return nil
	case '"':
		*v = Value{Kind: KindString}
		return json.Unmarshal(b, &v.Text)
	case '{':
		return v.unmarshalTagged(b)
	}
	var err error
	*v, err = parseNumber(string(b))
	return err
}

func (v *Value) unmarshalTagged(b []byte) error {
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return fault.Invalidf("literal %s: %v", b, err)
	}
	if len(m) != 1 {
		return fault.Invalidf("literal %s: must have exactly one member", b)
	}
	for name, s := range m {
		for k := KindInt; k <= KindTimestamp; k++ {
			if k.String() == name {
				var err error
				*v, err = parseAs(k, s)
				return err
			}
		}
	}
	return fault.Invalidf("literal %s: unknown kind", b)
}

// parseAs parses the output of plain, for kinds with a name of their own; a string is in hexadecimal.
func parseAs(k Kind, s string) (Value, error) {
	bad := func(what string) (Value, error) { return Null(), fault.Invalidf("%s '%s': %s", k, s, what) }
	switch k {
	case KindInt:
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return Int(i), nil
		}
		return bad("expected an integer of 64 bits")
	case KindUint:
		if u, err := strconv.ParseUint(s, 10, 64); err == nil {
			return Value{Kind: KindUint, Uint: u}, nil
		}
		return bad("expected an unsigned integer of 64 bits")
	case KindFloat:
		if f, ok := parseFloat(s); ok {
			return Float(f), nil
		}
		return bad("expected a number within the range of floats, NaN, Infinity or -Infinity")
	case KindDecimal:
		if d, scale, ok := parseDecimal(s); ok {
			return Decimal(d, scale), nil
		}
		return bad("expected a decimal number of at most 38 digits")
	case KindString, KindBytes:
		if b, err := hex.DecodeString(s); err == nil {
			return Value{Kind: k, Text: string(b)}, nil
		}
		return bad("expected pairs of hexadecimal digits")
	case KindDate:
		if d, ok := parseDate(s); ok {
			return Date(d), nil
		}
		return bad("expected a day that exists, as YYYY-MM-DD")
	case KindTime:
		if t, ok := parseTime(s); ok {
			return Time(t), nil
		}
		return bad("expected a time of day as HH:MM:SS, with at most nine digits of fraction")
	case KindTimestamp:
		if sec, nanos, ok := parseTimestamp(s); ok {
			return Timestamp(sec, nanos), nil
		}
		return bad("expected a day and time that exist, as YYYY-MM-DDTHH:MM:SS, with at most nine digits of " +
			"fraction and a zone Z or +HH:MM")
	}
	return bad("unknown kind")
}
