package scalar

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Kind is the kind of a type.
type Kind uint8

// The kinds. Time of day is in nanoseconds, dates in days since 1970.
const (
	Null Kind = iota // only null
	Bool
	Int     // 64 bits; all columns of signed and of narrower unsigned integers
	Decimal // 128 bits, Scale digits after the point; also unsigned integers of 64 bits
	Float   // computed with 64 bits; if Bits is 32, rounded to that after each step
	String
	Binary
	Date
	Time
	Timestamp // Per units a second since 1970
	List
	Other // an element that nothing can be computed with
)

// Type is the type of an expression.
type Type struct {
	Kind  Kind
	Bits  int
	Scale int32
	Per   int64
	Elem  *Type
}

func (t Type) String() string {
	switch t.Kind {
	case List:
		return "list of " + t.Elem.String()
	case Float:
		return fmt.Sprintf("float%d", t.Bits)
	}
	return [...]string{"null", "bool", "integer", "decimal", "float", "string", "binary", "date", "time",
		"timestamp", "list", "nested value"}[t.Kind]
}

func (t Type) isNumber() bool { return t.Kind == Int || t.Kind == Decimal || t.Kind == Float }
func (t Type) isText() bool   { return t.Kind == String || t.Kind == Binary }
func (t Type) isDay() bool    { return t.Kind == Date || t.Kind == Timestamp }

// IsTime reports whether t is a date, time or timestamp.
func (t Type) IsTime() bool { return t.Kind == Date || t.Kind == Time || t.Kind == Timestamp }
func (t Type) isWhole() bool {
	return t.Kind == Int || t.Kind == Date || t.Kind == Time || t.Kind == Timestamp
}

// DigitsMax is how many digits a decimal has at most.
const DigitsMax = 38

// maxColumnScale limits the scales of columns that can be computed with.
const maxColumnScale = DigitsMax

func perSecond(u arrow.TimeUnit) int64 { return [...]int64{1, 1e3, 1e6, 1e9}[uint(u)&3] }

// TypeOf returns the type in which cells of an Arrow type are computed with; false if they cannot be.
func TypeOf(t arrow.DataType) (Type, bool) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return TypeOf(t.ValueType)
	case arrow.ExtensionType:
		return TypeOf(t.StorageType())
	case *arrow.TimestampType:
		return Type{Kind: Timestamp, Per: perSecond(t.Unit)}, true
	case *arrow.MapType:
		return Type{}, false
	case *arrow.Decimal256Type:
		return Type{}, false
	case arrow.DecimalType:
		return Type{Kind: Decimal, Scale: t.GetScale()}, t.GetScale() >= 0 && t.GetScale() <= maxColumnScale
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		elem, ok := TypeOf(t.(arrow.ListLikeType).Elem())
		if !ok || elem.Kind == List {
			elem = Type{Kind: Other}
		}
		return Type{Kind: List, Elem: &elem}, true
	}
	switch t.ID() {
	case arrow.NULL:
		return Type{}, true
	case arrow.BOOL:
		return Type{Kind: Bool}, true
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.DURATION:
		return Type{Kind: Int}, true
	case arrow.UINT64:
		return Type{Kind: Decimal}, true
	case arrow.FLOAT16, arrow.FLOAT32:
		return Type{Kind: Float, Bits: 32}, true
	case arrow.FLOAT64:
		return Type{Kind: Float, Bits: 64}, true
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return Type{Kind: String}, true
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return Type{Kind: Binary}, true
	case arrow.DATE32:
		return Type{Kind: Date}, true
	case arrow.DATE64:
		return Type{Kind: Timestamp, Per: 1e3}, true
	case arrow.TIME32, arrow.TIME64:
		return Type{Kind: Time}, true
	}
	return Type{}, false
}
