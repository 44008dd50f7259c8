package diff

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/cells"
	"stoa/internal/enc/half"
)

// A cell is compared in a form that does not depend on how its column's type stores it: int8 7 and int64 7 are
// the same bytes, and so are a dictionary's "a" and a plain one, 1.50 and 1.5 as decimals, a date and the
// timestamp of its midnight. All NaN are one, and -0 is 0. The form delimits itself, so that a row is the cells
// one after the other:
//
//	null    0
//	whole   1, sign, uvarint magnitude
//	real    1, 8 bytes
//	mixed   1, 8 bytes of the nearest real, 0; or 1 and a decimal after them, without its first byte: a whole number that no real is
//	decimal 1, sign, varint exponent, uvarint length, magnitude without zeros at its end
//	truth   1, 0 or 1
//	bytes   1, uvarint length, bytes; 2 instead of 1 for text that is no base64 among such
//	instant 1, varint seconds, uvarint nanoseconds
//	list    1, uvarint count, cells
//	record  1, a cell a field
type kind uint8

const (
	whole kind = iota
	real
	mixed // floating-point numbers on one side, whole numbers or decimals on the other
	decimals
	truth
	octets // strings and binary
	instant
	list
	record
	words // of no common kind: as CSV has them; see normal where one side is text
	other // the same type on both sides, of a kind without a form of its own: as JSON
	none  // nothing in common
)

// shape is how the cells of two columns are compared.
type shape struct {
	kind kind
	as   kind // of words: what they are on the side that is no text; octets: nothing is known
	clock
	kids  []*shape // of a list the items', of a record the fields'
	names []string // of a record's fields
	at    [2][]int // for each kid, which child of either side it is
	reals bool     // there are floating-point numbers in it
	// of octets: the side (1 or 2) whose text may be the other's bytes in base64, as CSV and JSON have these;
	// 0: neither
	text  int
	codes bool // there are such octets in it
	coded bool // of such octets: the text is read as base64, in all cells
}

// clock is what an instant is shown as.
type clock uint8

const (
	moment clock = iota
	day
	timeOfDay
	span
)

// pair finds how two types are compared; kind none if they cannot be.
func pair(a, b arrow.DataType) *shape {
	a, b = stored(a), stored(b)
	if a.ID() == arrow.NULL {
		a = b
	} else if b.ID() == arrow.NULL {
		b = a
	}
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == list && kb == list:
		kid := pairItems(a, b)
		return &shape{kind: orNone(list, kid), kids: []*shape{kid}, reals: kid.reals, codes: kid.codes}
	case ka == record && kb == record:
		return pairRecords(a.(*arrow.StructType), b.(*arrow.StructType))
	case ka == list || kb == list || ka == record || kb == record:
		return &shape{kind: none}
	case ka == other || kb == other:
		if arrow.TypeEqual(a, b) {
			return &shape{kind: other}
		}
		return &shape{kind: none}
	case ka == instant && kb == instant:
		return &shape{kind: instant, clock: min(clockOf(a), clockOf(b))}
	case ka == octets && kb == octets && isText(a) != isText(b):
		side := 1
		if isText(b) {
			side = 2
		}
		return &shape{kind: octets, text: side, codes: true}
	case ka == kb:
		return &shape{kind: ka, reals: ka == real}
	case number(ka) && number(kb):
		return &shape{kind: commonNumber(ka, kb), reals: ka == real || kb == real}
	case ka == octets:
		return &shape{kind: words, as: kb, clock: clockOf(b)}
	case kb == octets:
		return &shape{kind: words, as: ka, clock: clockOf(a)}
	}
	return &shape{kind: words, as: octets}
}

func isText(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
}

func number(k kind) bool { return k == whole || k == real || k == decimals }

func commonNumber(a, b kind) kind {
	if a == real || b == real {
		return mixed
	}
	return decimals
}

func orNone(k kind, kids ...*shape) kind {
	for _, s := range kids {
		if s.kind == none {
			return none
		}
	}
	return k
}

// pairItems pairs what lists hold. The fields of a map's entries are not known by their names, which are
// anybody's choice.
func pairItems(a, b arrow.DataType) *shape {
	x, y := a.(arrow.ListLikeType).Elem(), b.(arrow.ListLikeType).Elem()
	p, ok := x.(*arrow.StructType)
	q, also := y.(*arrow.StructType)
	if a.ID() != arrow.MAP && b.ID() != arrow.MAP || !ok || !also || p.NumFields() != 2 || q.NumFields() != 2 {
		return pair(x, y)
	}
	key, value := pair(p.Field(0).Type, q.Field(0).Type), pair(p.Field(1).Type, q.Field(1).Type)
	return &shape{kind: orNone(record, key, value), kids: []*shape{key, value}, names: []string{"key", "value"},
		at: [2][]int{{0, 1}, {0, 1}}, reals: key.reals || value.reals, codes: key.codes || value.codes}
}

// pairRecords pairs fields by name; both sides must have the same.
func pairRecords(a, b *arrow.StructType) *shape {
	s := &shape{kind: record}
	if a.NumFields() != b.NumFields() {
		return &shape{kind: none}
	}
	for i, f := range a.Fields() {
		j, ok := b.FieldIdx(f.Name)
		if k := len(all(b, f.Name)); !ok || k > 1 { // names that come twice: by position
			j = i
			if b.Field(i).Name != f.Name {
				return &shape{kind: none}
			}
		}
		kid := pair(f.Type, b.Field(j).Type)
		s.kind = orNone(s.kind, kid)
		s.kids, s.names = append(s.kids, kid), append(s.names, f.Name)
		s.at[0], s.at[1] = append(s.at[0], i), append(s.at[1], j)
		s.reals, s.codes = s.reals || kid.reals, s.codes || kid.codes
	}
	return s
}

func all(t *arrow.StructType, name string) (out []int) {
	for i, f := range t.Fields() {
		if f.Name == name {
			out = append(out, i)
		}
	}
	return out
}

// stored is the type below dictionaries and extensions.
func stored(t arrow.DataType) arrow.DataType {
	for {
		switch x := t.(type) {
		case *arrow.DictionaryType:
			t = x.ValueType
		case arrow.ExtensionType:
			t = x.StorageType()
		default:
			return t
		}
	}
}

func kindOf(t arrow.DataType) kind {
	switch id := t.ID(); {
	case arrow.IsInteger(id):
		return whole
	case arrow.IsFloating(id):
		return real
	case arrow.IsDecimal(id):
		return decimals
	}
	switch t.ID() {
	case arrow.BOOL:
		return truth
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW,
		arrow.FIXED_SIZE_BINARY:
		return octets
	case arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return instant
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.MAP:
		return list
	case arrow.STRUCT:
		return record
	}
	return other
}

func clockOf(t arrow.DataType) clock {
	switch t.ID() {
	case arrow.DATE32, arrow.DATE64:
		return day
	case arrow.TIME32, arrow.TIME64:
		return timeOfDay
	case arrow.DURATION:
		return span
	}
	return moment
}

// append appends cell i of arr, which is of side 0 or 1.
func (s *shape) append(dst []byte, arr arrow.Array, i, side int) []byte {
	for {
		if arr.IsNull(i) {
			return append(dst, 0)
		}
		if d, ok := arr.(*array.Dictionary); ok {
			i, arr = d.GetValueIndex(i), d.Dictionary()
			continue
		}
		if e, ok := arr.(array.ExtensionArray); ok {
			arr = e.Storage()
			continue
		}
		break
	}
	if arr.DataType().ID() == arrow.NULL {
		return append(dst, 0)
	}
	return s.value(append(dst, 1), arr, i, side)
}

func (s *shape) value(dst []byte, arr arrow.Array, i, side int) []byte {
	switch s.kind {
	case whole:
		neg, m := integer(arr, i)
		return binary.AppendUvarint(append(dst, neg), m)
	case real:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(float(arr, i)))
	case mixed:
		return appendMixed(dst, arr, i)
	case decimals:
		return appendDecimal(dst, arr, i)
	case truth:
		if arr.(*array.Boolean).Value(i) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case octets:
		b := content(arr, i)
		if s.coded && s.text == side+1 {
			raw, err := base64.StdEncoding.AppendDecode(nil, b)
			// decoding passes over line ends, and bits behind the last
			if err == nil && bytes.Equal(base64.StdEncoding.AppendEncode(nil, raw), b) {
				b = raw
			} else {
				dst[len(dst)-1] = uncoded
			}
		}
		return appendBytes(dst, b)
	case instant:
		sec, nano := when(arr, i)
		return binary.AppendUvarint(binary.AppendVarint(dst, sec), nano)
	case list:
		l := arr.(array.ListLike)
		from, to := l.ValueOffsets(i)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		for k := from; k < to; k++ {
			dst = s.kids[0].append(dst, l.ListValues(), int(k), side)
		}
		return dst
	case record:
		st := arr.(*array.Struct)
		for k, kid := range s.kids {
			dst = kid.append(dst, st.Field(s.at[side][k]), i, side)
		}
		return dst
	case words:
		return appendBytes(dst, s.normal(cells.AppendCSV(nil, arr, i)))
	}
	b, err := json.Marshal(arr.GetOneForMarshal(i))
	if err != nil {
		b = []byte(arr.ValueStr(i))
	}
	return appendBytes(dst, b)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// integer is sign (1: negative) and magnitude.
func integer(arr arrow.Array, i int) (byte, uint64) {
	signed := func(v int64) (byte, uint64) {
		if v < 0 {
			return 1, -uint64(v)
		}
		return 0, uint64(v)
	}
	switch a := arr.(type) {
	case *array.Int8:
		return signed(int64(a.Value(i)))
	case *array.Int16:
		return signed(int64(a.Value(i)))
	case *array.Int32:
		return signed(int64(a.Value(i)))
	case *array.Int64:
		return signed(a.Value(i))
	case *array.Uint8:
		return 0, uint64(a.Value(i))
	case *array.Uint16:
		return 0, uint64(a.Value(i))
	case *array.Uint32:
		return 0, uint64(a.Value(i))
	case *array.Uint64:
		return 0, a.Value(i)
	}
	return 0, 0
}

// float is a number as the nearest float64; of the NaN there is one, of the zeros, too.
func float(arr arrow.Array, i int) float64 {
	var f float64
	switch a := arr.(type) {
	case *array.Float16:
		f = float64(half.Float(a.Value(i).Uint16()))
	case *array.Float32:
		f = float64(a.Value(i))
	case *array.Float64:
		f = a.Value(i)
	default:
		f, _ = strconv.ParseFloat(string(cells.AppendCSV(nil, arr, i)), 64)
	}
	switch {
	case f != f:
		return math.NaN()
	case f == 0:
		return 0
	}
	return f
}

// appendDecimal appends a decimal or an integer as digits and a power of ten, without zeros at its end.
func appendDecimal(dst []byte, arr arrow.Array, i int) []byte {
	v, exp := new(big.Int), int64(0)
	switch a := arr.(type) {
	case *array.Decimal32:
		v = big.NewInt(int64(a.Value(i)))
	case *array.Decimal64:
		v = big.NewInt(int64(a.Value(i)))
	case *array.Decimal128:
		v = a.Value(i).BigInt()
	case *array.Decimal256:
		v = a.Value(i).BigInt()
	default:
		neg, m := integer(arr, i)
		v.SetUint64(m)
		if neg == 1 {
			v.Neg(v)
		}
	}
	if t, ok := arr.DataType().(arrow.DecimalType); ok {
		exp = -int64(t.GetScale())
	}
	if v.Sign() == 0 {
		exp = 0
	}
	for ten, rest := big.NewInt(10), new(big.Int); v.Sign() != 0; exp++ {
		q, _ := new(big.Int).QuoRem(v, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		v = q
	}
	sign := byte(0)
	if v.Sign() < 0 {
		sign = 1
	}
	return appendBytes(binary.AppendVarint(append(dst, sign), exp), v.Bytes())
}

// appendMixed appends a number of any kind. That of a decimal with digits behind its point is the nearest real;
// a whole number is itself, also where reals are further apart than 1.
func appendMixed(dst []byte, arr arrow.Array, i int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(float(arr, i)))
	if arrow.IsFloating(arr.DataType().ID()) {
		return append(dst, 0)
	}
	exact := appendDecimal(nil, arr, i)
	exp, k := binary.Varint(exact[1:])
	_, l := binary.Uvarint(exact[1+k:])
	m := new(big.Int).SetBytes(exact[1+k+l:])
	if exp >= 0 {
		m.Mul(m, new(big.Int).Exp(big.NewInt(10), big.NewInt(exp), nil))
	}
	const digits = 53 // of a real
	if exp < 0 || m.BitLen()-int(m.TrailingZeroBits()) <= digits {
		return append(dst, 0)
	}
	return append(append(dst, 1), exact...)
}

// content is the bytes of a string or of binary.
func content(arr arrow.Array, i int) []byte {
	switch a := arr.(type) {
	case *array.String:
		return []byte(a.Value(i))
	case *array.LargeString:
		return []byte(a.Value(i))
	case *array.StringView:
		return []byte(a.Value(i))
	case *array.Binary:
		return a.Value(i)
	case *array.LargeBinary:
		return a.Value(i)
	case *array.BinaryView:
		return a.Value(i)
	case *array.FixedSizeBinary:
		return a.Value(i)
	}
	return nil
}

// when is seconds (of the epoch, the day, or a duration) and the nanoseconds above them.
func when(arr arrow.Array, i int) (sec int64, nano uint64) {
	split := func(v int64, u arrow.TimeUnit) (int64, uint64) {
		per := int64(time.Second / u.Multiplier())
		s, rest := v/per, v%per
		if rest < 0 {
			s, rest = s-1, rest+per
		}
		return s, uint64(rest) * uint64(u.Multiplier())
	}
	switch a := arr.(type) {
	case *array.Date32:
		return int64(a.Value(i)) * 86400, 0
	case *array.Date64:
		return split(int64(a.Value(i)), arrow.Millisecond)
	case *array.Timestamp:
		return split(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).Unit)
	case *array.Time32:
		return split(int64(a.Value(i)), a.DataType().(*arrow.Time32Type).Unit)
	case *array.Time64:
		return split(int64(a.Value(i)), a.DataType().(*arrow.Time64Type).Unit)
	case *array.Duration:
		return split(int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit)
	}
	return 0, 0
}

// cut splits the cell that b begins with off what follows.
func (s *shape) cut(b []byte) (cell, rest []byte) {
	n := s.size(b)
	return b[:n], b[n:]
}

// size is the length of the cell that b begins with.
func (s *shape) size(b []byte) int {
	if b[0] == 0 {
		return 1
	}
	n := 1
	switch s.kind {
	case whole:
		_, k := binary.Uvarint(b[2:])
		return 2 + k
	case real:
		return 9
	case mixed:
		if b[9] == 0 {
			return 10
		}
		return 9 + (&shape{kind: decimals}).size(b[9:])
	case truth:
		return 2
	case instant:
		_, k := binary.Varint(b[n:])
		n += k
		_, k = binary.Uvarint(b[n:])
		return n + k
	case list:
		count, k := binary.Uvarint(b[n:])
		n += k
		for range count {
			n += s.kids[0].size(b[n:])
		}
		return n
	case record:
		for _, kid := range s.kids {
			n += kid.size(b[n:])
		}
		return n
	case decimals:
		_, k := binary.Varint(b[2:])
		n = 2 + k
	}
	size, k := binary.Uvarint(b[n:])
	return n + k + int(size)
}

// uncoded is the first byte of a text that is no base64 in a column that is read as such: it equals no bytes.
const uncoded = 2

// read has all text that may be base64 read as that, or as it is.
func (s *shape) read(coded bool) {
	s.coded = coded && s.text != 0
	for _, kid := range s.kids {
		kid.read(coded)
	}
}

// loose reports whether cells may be equal whose bytes are not.
func (s *shape) loose(tol tolerance) bool { return s.reals && tol != (tolerance{}) }

// equal compares two cells, floating-point numbers within the tolerance.
func (s *shape) equal(a, b []byte, tol tolerance) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !s.loose(tol) || a[0] != b[0] {
		return false
	}
	switch s.kind {
	case real, mixed:
		return tol.near(math.Float64frombits(binary.BigEndian.Uint64(a[1:])),
			math.Float64frombits(binary.BigEndian.Uint64(b[1:])))
	case list:
		na, ka := binary.Uvarint(a[1:])
		nb, kb := binary.Uvarint(b[1:])
		if na != nb {
			return false
		}
		a, b = a[1+ka:], b[1+kb:]
		for range na {
			var x, y []byte
			x, a = s.kids[0].cut(a)
			y, b = s.kids[0].cut(b)
			if !s.kids[0].equal(x, y, tol) {
				return false
			}
		}
		return true
	case record:
		a, b = a[1:], b[1:]
		for _, kid := range s.kids {
			var x, y []byte
			x, a = kid.cut(a)
			y, b = kid.cut(b)
			if !kid.equal(x, y, tol) {
				return false
			}
		}
		return true
	}
	return false
}

// tolerance is how far floating-point numbers may be apart: by so much, or by this part of the greater one.
type tolerance struct{ absolute, relative float64 }

func (t tolerance) near(x, y float64) bool {
	if x == y {
		return true
	}
	d := math.Abs(x - y)
	return !math.IsInf(d, 0) && (d <= t.absolute || d <= t.relative*max(math.Abs(x), math.Abs(y))) // false of NaN
}

// show is a cell of side 0 or 1 for people.
func (s *shape) show(b []byte, side int) string {
	var out strings.Builder
	s.print(&out, b, side)
	return out.String()
}

func (s *shape) print(w *strings.Builder, b []byte, side int) {
	if b[0] == 0 {
		w.WriteString("null")
		return
	}
	coded := s.coded && s.text == side+1 && b[0] != uncoded
	b = b[1:]
	switch s.kind {
	case whole:
		m, _ := binary.Uvarint(b[1:])
		w.WriteString([]string{"", "-"}[b[0]] + strconv.FormatUint(m, 10))
	case real:
		w.WriteString(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
	case mixed:
		if b[8] == 1 {
			w.WriteString(decimalText(b[9:]))
			return
		}
		w.WriteString(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
	case decimals:
		w.WriteString(decimalText(b))
	case truth:
		w.WriteString(strconv.FormatBool(b[0] == 1))
	case instant:
		sec, k := binary.Varint(b)
		nano, _ := binary.Uvarint(b[k:])
		w.WriteString(s.clock.text(sec, nano))
	case list:
		n, k := binary.Uvarint(b)
		b = b[k:]
		w.WriteByte('[')
		for i := range n {
			if i > 0 {
				w.WriteString(", ")
			}
			var c []byte
			c, b = s.kids[0].cut(b)
			s.kids[0].print(w, c, side)
		}
		w.WriteByte(']')
	case record:
		w.WriteByte('{')
		for i, kid := range s.kids {
			if i > 0 {
				w.WriteString(", ")
			}
			var c []byte
			c, b = kid.cut(b)
			w.WriteString(s.names[i] + ": ")
			kid.print(w, c, side)
		}
		w.WriteByte('}')
	default:
		_, k := binary.Uvarint(b)
		switch b = b[k:]; {
		case s.kind != octets:
			w.Write(b)
		case coded:
			w.WriteString(strconv.Quote(base64.StdEncoding.EncodeToString(b)))
		case utf8.Valid(b):
			w.WriteString(strconv.Quote(string(b)))
		default:
			fmt.Fprintf(w, "0x%x", b)
		}
	}
}

func decimalText(b []byte) string {
	exp, k := binary.Varint(b[1:])
	_, j := binary.Uvarint(b[1+k:])
	digits := new(big.Int).SetBytes(b[1+k+j:]).String()
	switch {
	case exp > 0:
		digits += strings.Repeat("0", int(exp))
	case exp < 0:
		if n := int(-exp) + 1 - len(digits); n > 0 {
			digits = strings.Repeat("0", n) + digits
		}
		at := len(digits) + int(exp)
		digits = digits[:at] + "." + digits[at:]
	}
	if b[0] == 1 {
		return "-" + digits
	}
	return digits
}

func (c clock) text(sec int64, nano uint64) string {
	t := time.Unix(sec, int64(nano)).UTC()
	switch {
	case c == span:
		return fmt.Sprintf("%d.%09ds", sec, nano)
	case c == timeOfDay:
		return t.Format("15:04:05.999999999")
	case c == day && sec%86400 == 0 && nano == 0:
		return t.Format("2006-01-02")
	}
	return t.Format("2006-01-02 15:04:05.999999999")
}
