package format

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Alteration is a column whose values a writer changes because an option asks for it.
type Alteration struct {
	Column string // a field of the schema
	Option string // the option, as the user gives it: "timestamps=truncate"
	// Changed reports whether value i of an array of the column, which is not null, is written as another value.
	Changed func(a arrow.Array, i int) bool
	// Unit: all timestamps of the column, also those in lists and structs, become whole multiples of it: the largest
	// one that is not above, or with Nearest the nearest one (of two the later). 0: something else is changed.
	Unit    time.Duration
	Nearest bool
}

// Altered is how many values of a column an option changed. Of a nested column the rows are counted.
type Altered struct {
	Column string `json:"column"`
	Option string `json:"option"`
	Values int64  `json:"values"`
}

// Rounding is the alteration of a column whose timestamps become whole multiples of unit; see Alteration.Unit.
func Rounding(column, option string, unit time.Duration, nearest bool) Alteration {
	return Alteration{Column: column, Option: option, Unit: unit, Nearest: nearest,
		Changed: func(a arrow.Array, i int) bool { return finer(a, i, unit) }}
}

// Finer reports whether type t has timestamps with a unit shorter than unit, also in lists and structs.
func Finer(t arrow.DataType, unit time.Duration) bool {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return t.Unit.Multiplier() < unit
	case *arrow.DictionaryType:
		return Finer(t.ValueType, unit)
	case arrow.ExtensionType:
		return Finer(t.StorageType(), unit)
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if Finer(f.Type, unit) {
				return true
			}
		}
	}
	return false
}

// finer reports whether a timestamp in value i of a is not a whole multiple of unit.
func finer(a arrow.Array, i int, unit time.Duration) bool {
	if a.IsNull(i) {
		return false
	}
	switch a := a.(type) {
	case *array.Timestamp:
		own := a.DataType().(*arrow.TimestampType).Unit.Multiplier()
		return own < unit && int64(a.Value(i))%int64(unit/own) != 0
	case *array.Dictionary:
		return finer(a.Dictionary(), a.GetValueIndex(i), unit)
	case array.ExtensionArray:
		return finer(a.Storage(), i, unit)
	}
	return AnyChild(a, i, func(kid arrow.Array, k int) bool { return finer(kid, k, unit) })
}

// AnyChild reports whether is holds for an item of value i, if a is of lists or maps, or for a field of it, if a is of
// structs.
func AnyChild(a arrow.Array, i int, is func(kid arrow.Array, k int) bool) bool {
	switch a := a.(type) {
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		for k := from; k < to; k++ {
			if is(a.ListValues(), int(k)) {
				return true
			}
		}
	case *array.Struct:
		for k := range a.NumField() {
			if is(a.Field(k), i) {
				return true
			}
		}
	}
	return false
}
