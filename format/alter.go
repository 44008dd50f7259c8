package format

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Alteration is a column of which an option has a writer change values.
type Alteration struct {
	Column string // a field of the schema
	Option string // that asks for it, as it is given: "timestamps=truncate"
	// Changed reports whether value i of an array of the column, which is not null, is written as another.
	Changed func(a arrow.Array, i int) bool
	// Unit is what all timestamps of the column, also those in lists and structs, are written as whole multiples of:
	// the largest that is not above, or with Nearest the nearest one (of two the one above). 0: something else is
	// changed.
	Unit    time.Duration
	Nearest bool
}

// Altered is how many values of a column were changed because an option asks for it: rows, of nested columns, too.
type Altered struct {
	Column string `json:"column"`
	Option string `json:"option"`
	Values int64  `json:"values"`
}

// Rounding is the alteration of a column whose timestamps become whole multiples of unit.
func Rounding(column, option string, unit time.Duration, nearest bool) Alteration {
	return Alteration{Column: column, Option: option, Unit: unit, Nearest: nearest,
		Changed: func(a arrow.Array, i int) bool { return finer(a, i, unit) }}
}

// Finer reports whether type t has timestamps of a unit that is shorter than a unit, also in lists and structs.
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

// finer reports whether a timestamp of value i of a is no whole multiple of unit.
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

// AnyChild reports whether is holds for an item of value i of a list or map, or for a field of that of a struct.
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
