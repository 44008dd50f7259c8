package diff

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// A cell is compared in a form that does not depend on how its column's type stores it: int8 7 and int64 7 are
// the same bytes, and so are a dictionary's "a" and a plain one, 1.50 and 1.5 as decimals, a date and the
// timestamp of its midnight. All NaN are one, and -0 is 0. The form delimits itself, so that a row is the cells
// one after the other:
//
//	null    0
//	whole   1, sign, uvarint magnitude
//	real    1, 8 bytes
//	mixed   1, 8 bytes of the nearest real, 0; or 1 and a decimal after them, without its first byte: a whole number
//	        that no real is
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
