package diff

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// Kind is the common kind of the cells of a type, independent of how they are stored.
//
// A cell is compared in a form that does not depend on how its column's type stores it: int8 7 and int64 7 have the
// same bytes, and so have "a" in a dictionary and a plain "a", 1.50 and 1.5 as decimals, a date and the timestamp of
// its midnight. All NaN are equal, and -0 is 0. The form is self-delimiting, so that a row is the concatenation of its
// cells:
//
//	null    0
//	integer 1, sign, uvarint magnitude
//	float   1, 8 bytes
//	mixed   1, 8 bytes of the nearest float, 0; or 1 and a decimal after them, without its first byte: a whole number
//	        that no float is
//	decimal 1, sign, varint exponent, uvarint length, magnitude without zeros at its end
//	boolean 1, 0 or 1
//	bytes   1, uvarint length, bytes; 2 instead of 1 for text that is no base64 among such
//	instant 1, varint seconds, uvarint nanoseconds
//	list    1, uvarint count, cells
//	struct  1, a cell a field
//	union   1, which member, its cell; the null of any member is null
type Kind uint8

const (
	Integer Kind = iota
	Float
	Mixed // floating-point numbers on one side, integers or decimals on the other
	Decimal
	Boolean
	Bytes // strings and binary
	Instant
	List
	Struct
	Union
	AsText // no common kind: compared as in CSV; see normal if one side is text
	Other  // the same type on both sides, of a kind without its own form: compared as JSON
	None   // nothing in common
)

// shape describes how the cells of two columns are compared.
type shape struct {
	kind Kind
	as   Kind // with AsText: the kind on the side that is not text; Bytes if unknown
	clock
	children []*shape // the items of a list, the fields of a record
	names    []string // of a record's fields; for a union the codes of its members
	at       [2][]int // for each child, its index on either side
	reals    bool     // it contains floating-point numbers
	// of Bytes: the side (1 or 2) whose text may be the other side's bytes in base64, as in CSV and JSON; 0 if neither
	text  int
	codes bool // it contains such bytes
	coded bool // of such bytes: the text of all cells is decoded as base64
}

// clock is the form in which an instant is displayed.
type clock uint8

const (
	moment clock = iota
	day
	timeOfDay
	span
)

// pair determines how two types are compared; the kind is None if they cannot be.
func pair(a, b arrow.DataType) *shape {
	a, b = Stored(a), Stored(b)
	if a.ID() == arrow.NULL {
		a = b
	} else if b.ID() == arrow.NULL {
		b = a
	}
	ka, kb := KindOf(a), KindOf(b)
	switch {
	case ka == List && kb == List:
		item := pairItems(a, b)
		return &shape{kind: orNone(List, item), children: []*shape{item}, reals: item.reals, codes: item.codes}
	case ka == Struct && kb == Struct:
		return pairRecords(a.(*arrow.StructType), b.(*arrow.StructType))
	case ka == Union && kb == Union:
		return pairUnions(a.(arrow.UnionType), b.(arrow.UnionType))
	case ka == List || kb == List || ka == Struct || kb == Struct || ka == Union || kb == Union:
		return &shape{kind: None}
	case ka == Other || kb == Other:
		if arrow.TypeEqual(a, b) {
			return &shape{kind: Other}
		}
		return &shape{kind: None}
	case ka == Instant && kb == Instant:
		return &shape{kind: Instant, clock: min(clockOf(a), clockOf(b))}
	case ka == Bytes && kb == Bytes && isText(a) != isText(b):
		side := 1
		if isText(b) {
			side = 2
		}
		return &shape{kind: Bytes, text: side, codes: true}
	case ka == kb:
		return &shape{kind: ka, reals: ka == Float}
	case number(ka) && number(kb):
		return &shape{kind: commonNumber(ka, kb), reals: ka == Float || kb == Float}
	case ka == Bytes:
		return &shape{kind: AsText, as: kb, clock: clockOf(b)}
	case kb == Bytes:
		return &shape{kind: AsText, as: ka, clock: clockOf(a)}
	}
	return &shape{kind: AsText, as: Bytes}
}

func isText(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
}

func number(k Kind) bool { return k == Integer || k == Float || k == Decimal }

func commonNumber(a, b Kind) Kind {
	if a == Float || b == Float {
		return Mixed
	}
	return Decimal
}

func orNone(k Kind, children ...*shape) Kind {
	for _, s := range children {
		if s.kind == None {
			return None
		}
	}
	return k
}

// pairItems pairs the items of lists. The fields of a map's entries are paired by position, because their names differ
// between writers.
func pairItems(a, b arrow.DataType) *shape {
	x, y := a.(arrow.ListLikeType).Elem(), b.(arrow.ListLikeType).Elem()
	p, ok := x.(*arrow.StructType)
	q, also := y.(*arrow.StructType)
	if a.ID() != arrow.MAP && b.ID() != arrow.MAP || !ok || !also || p.NumFields() != 2 || q.NumFields() != 2 {
		return pair(x, y)
	}
	key, value := pair(p.Field(0).Type, q.Field(0).Type), pair(p.Field(1).Type, q.Field(1).Type)
	return &shape{kind: orNone(Struct, key, value), children: []*shape{key, value}, names: []string{"key", "value"},
		at: [2][]int{{0, 1}, {0, 1}}, reals: key.reals || value.reals, codes: key.codes || value.codes}
}

// pairRecords pairs fields by name; both sides must have the same names.
func pairRecords(a, b *arrow.StructType) *shape {
	s := &shape{kind: Struct}
	if a.NumFields() != b.NumFields() {
		return &shape{kind: None}
	}
	for i, f := range a.Fields() {
		j, ok := b.FieldIdx(f.Name)
		if k := len(all(b, f.Name)); !ok || k > 1 { // repeated names are paired by position
			j = i
			if b.Field(i).Name != f.Name {
				return &shape{kind: None}
			}
		}
		child := pair(f.Type, b.Field(j).Type)
		s.kind = orNone(s.kind, child)
		s.children, s.names = append(s.children, child), append(s.names, f.Name)
		s.at[0], s.at[1] = append(s.at[0], i), append(s.at[1], j)
		s.reals, s.codes = s.reals || child.reals, s.codes || child.codes
	}
	return s
}

// pairUnions pairs members by position; both sides must have the same codes.
func pairUnions(a, b arrow.UnionType) *shape {
	if !slices.Equal(a.TypeCodes(), b.TypeCodes()) {
		return &shape{kind: None}
	}
	s := &shape{kind: Union}
	for i, f := range a.Fields() {
		child := pair(f.Type, b.Fields()[i].Type)
		s.kind = orNone(s.kind, child)
		s.children, s.names = append(s.children, child), append(s.names, strconv.Itoa(int(a.TypeCodes()[i])))
		s.reals, s.codes = s.reals || child.reals, s.codes || child.codes
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

// Stored returns the type below dictionaries and extensions.
func Stored(t arrow.DataType) arrow.DataType {
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

// KindOf returns the kind of a type returned by Stored: Integer, Float, Decimal, Boolean, Bytes, Instant, List, Struct,
// Union or Other.
func KindOf(t arrow.DataType) Kind {
	switch id := t.ID(); {
	case arrow.IsInteger(id):
		return Integer
	case arrow.IsFloating(id):
		return Float
	case arrow.IsDecimal(id):
		return Decimal
	}
	switch t.ID() {
	case arrow.BOOL:
		return Boolean
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW,
		arrow.FIXED_SIZE_BINARY:
		return Bytes
	case arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return Instant
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.MAP:
		return List
	case arrow.STRUCT:
		return Struct
	case arrow.DENSE_UNION, arrow.SPARSE_UNION:
		return Union
	}
	return Other
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

// cut splits b after its first cell.
func (s *shape) cut(b []byte) (cell, rest []byte) {
	n := s.size(b)
	return b[:n], b[n:]
}

// size returns the length of the first cell of b.
func (s *shape) size(b []byte) int {
	if b[0] == 0 {
		return 1
	}
	n := 1
	switch s.kind {
	case Integer:
		_, k := binary.Uvarint(b[2:])
		return 2 + k
	case Float:
		return 9
	case Mixed:
		if b[9] == 0 {
			return 10
		}
		return 9 + (&shape{kind: Decimal}).size(b[9:])
	case Boolean:
		return 2
	case Instant:
		_, k := binary.Varint(b[n:])
		n += k
		_, k = binary.Uvarint(b[n:])
		return n + k
	case List:
		count, k := binary.Uvarint(b[n:])
		n += k
		for range count {
			n += s.children[0].size(b[n:])
		}
		return n
	case Struct:
		for _, child := range s.children {
			n += child.size(b[n:])
		}
		return n
	case Union:
		return 2 + s.children[b[1]].size(b[2:])
	case Decimal:
		_, k := binary.Varint(b[2:])
		n = 2 + k
	}
	size, k := binary.Uvarint(b[n:])
	return n + k + int(size)
}

// uncoded is the first byte of a text that is not base64 in a column that is decoded as base64: it equals no bytes.
const uncoded = 2

// read sets whether text that may be base64 is decoded or compared as it is.
func (s *shape) read(coded bool) {
	s.coded = coded && s.text != 0
	for _, child := range s.children {
		child.read(coded)
	}
}

// inexact reports whether cells with different bytes may be equal.
func (s *shape) inexact(tol tolerance) bool { return s.reals && tol != (tolerance{}) }

// equal compares two cells; floating-point numbers may differ by the tolerance.
func (s *shape) equal(a, b []byte, tol tolerance) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !s.inexact(tol) || a[0] != b[0] {
		return false
	}
	switch s.kind {
	case Float, Mixed:
		return tol.near(math.Float64frombits(binary.BigEndian.Uint64(a[1:])),
			math.Float64frombits(binary.BigEndian.Uint64(b[1:])))
	case List:
		na, ka := binary.Uvarint(a[1:])
		nb, kb := binary.Uvarint(b[1:])
		if na != nb {
			return false
		}
		a, b = a[1+ka:], b[1+kb:]
		for range na {
			var x, y []byte
			x, a = s.children[0].cut(a)
			y, b = s.children[0].cut(b)
			if !s.children[0].equal(x, y, tol) {
				return false
			}
		}
		return true
	case Struct:
		a, b = a[1:], b[1:]
		for _, child := range s.children {
			var x, y []byte
			x, a = child.cut(a)
			y, b = child.cut(b)
			if !child.equal(x, y, tol) {
				return false
			}
		}
		return true
	case Union:
		return a[1] == b[1] && s.children[a[1]].equal(a[2:], b[2:], tol)
	}
	return false
}

// tolerance is how much floating-point numbers may differ: by an absolute amount, or by a fraction of the larger one.
type tolerance struct{ absolute, relative float64 }

func (t tolerance) near(x, y float64) bool {
	if x == y {
		return true
	}
	d := math.Abs(x - y)
	return !math.IsInf(d, 0) && (d <= t.absolute || d <= t.relative*max(math.Abs(x), math.Abs(y))) // false of NaN
}
