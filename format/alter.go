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
	// Changed reports whether value i of a, an array of the column, is written as a different value. Value i is not
	// null.
	Changed func(a arrow.Array, i int) bool
	// Unit: all timestamps of the column, including those in lists and structs, are rounded to whole multiples of it:
	// down or, with Nearest, to the nearest one (up if two are equally near). 0: the alteration is not a rounding of
	// timestamps.
	Unit    time.Duration
	Nearest bool
}

// Altered is the number of values of a column that an option changed. In a nested column it counts rows.
type Altered struct {
	Column string `json:"column"`
	Option string `json:"option"`
	Values int64  `json:"values"`
}

// Rounding returns the alteration that rounds a column's timestamps to whole multiples of unit; see Alteration.Unit.
func Rounding(column, option string, unit time.Duration, nearest bool) Alteration {
	return Alteration{Column: column, Option: option, Unit: unit, Nearest: nearest,
		Changed: func(a arrow.Array, i int) bool { return finer(a, i, unit) }}
}

// Finer reports whether type t has timestamps whose unit is shorter than unit, including in lists and structs.
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

// AnyChild reports whether is returns true for any child of value i: for an item if a is an array of lists or maps, for
// a field if it is an array of structs.
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
