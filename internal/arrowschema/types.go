package arrowschema

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// digits is the maximum number of digits of each decimal type.
var digits = map[arrow.Type]int32{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}

// CheckTypes checks the parameters of types, which the library accepts unchecked but fails on later.
func CheckTypes(fields []arrow.Field) error {
	for _, f := range fields {
		if err := checkType(f.Type); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
	}
	return nil
}

func checkType(t arrow.DataType) error {
	bad := false
	switch t := t.(type) {
	case arrow.DecimalType:
		// A scale may exceed the precision, but the library has no powers of ten beyond the type's digits.
		maxDigits := digits[t.ID()]
		p, s := t.GetPrecision(), t.GetScale()
		bad = p < 1 || p > maxDigits || s > maxDigits || s < -maxDigits
	case *arrow.FixedSizeBinaryType:
		bad = t.ByteWidth < 0
	case *arrow.FixedSizeListType:
		bad = t.Len() < 0
	case *arrow.Time32Type:
		bad = t.Unit != arrow.Second && t.Unit != arrow.Millisecond
	case *arrow.Time64Type:
		bad = t.Unit != arrow.Microsecond && t.Unit != arrow.Nanosecond
	case *arrow.TimestampType:
		bad = t.Unit < arrow.Second || t.Unit > arrow.Nanosecond
	case *arrow.DurationType:
		bad = t.Unit < arrow.Second || t.Unit > arrow.Nanosecond
	case *arrow.DictionaryType:
		if err := checkType(t.IndexType); err != nil {
			return err
		}
		return checkType(t.ValueType)
	case arrow.ExtensionType:
		return checkType(t.StorageType())
	}
	if bad {
		return fmt.Errorf("type %s cannot be", t)
	}
	if n, ok := t.(arrow.NestedType); ok {
		return CheckTypes(n.Fields())
	}
	return nil
}

// LongInteger reports whether err is the library's error for an integer longer than Arrow's integers, such as Polars'
// Int128. The text of the error is its only distinguishing mark. Lengths that no system uses are damage.
func LongInteger(err error) bool {
	if err == nil {
		return false
	}
	const words = "integers with more than 64 bits not implemented (bits="
	return strings.Contains(err.Error(), words+"128)") || strings.Contains(err.Error(), words+"256)")
}
