package block

import (
	"encoding/json"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/present"
)

// Names of field metadata, which keep properties that Arrow types cannot express when files are converted.
const (
	MetaType        = "stoa.type"        // Kudu's name of the type
	MetaEncoding    = "stoa.encoding"    // of the blocks
	MetaCompression = "stoa.compression" // of the blocks
	MetaVersion     = "stoa.version"     // of the format: 1 or 2
	MetaLength      = "stoa.length"      // of varchar, in characters
	MetaHolds       = "stoa.holds"       // HoldsValidity: no values, see StoredField

	// FieldKey is the key of the footer's metadata under which our writer keeps a StoredField.
	FieldKey = "stoa.field"
	// SetKey is the key under which each file of a set has the set's id.
	SetKey = "stoa.set"
)

// StoredField is the value of FieldKey, as JSON: properties of the Arrow field that Kudu's footer has no field for.
type StoredField struct {
	Name      string `json:"name,omitempty"`
	Type      string `json:"type,omitempty"` // Arrow's, if it does not follow from Kudu's type
	Nullable  *bool  `json:"nullable,omitempty"`
	Precision int    `json:"precision,omitempty"`
	Scale     int    `json:"scale,omitempty"`
	Length    int    `json:"length,omitempty"`
	Holds     string `json:"holds,omitempty"` // HoldsValidity, or "": values
}

// HoldsValidity marks a column of bools that is the validity of the struct with its name.
const HoldsValidity = "validity"

// Stored is the StoredField of the footer; false if it has none, or one that is not JSON of ours.
func (f *Footer) Stored() (s StoredField, ok bool) {
	b, ok := f.Get(FieldKey)
	if ok && json.Unmarshal(b, &s) != nil {
		return StoredField{}, false
	}
	return s, ok
}

// Arrow is the Arrow type that holds every value of t. Kudu's files do not record the precision and scale of decimals:
// precision 0 stands for the largest of t, a negative scale for 0.
//
// Int128 is decimal128(38, 0): both have the same 128 bits, so values of 39 digits are kept and printed although they
// exceed the precision; verify reports them.
func (t Type) Arrow(precision, scale int) arrow.DataType {
	switch t {
	case Uint8:
		return arrow.PrimitiveTypes.Uint8
	case Int8:
		return arrow.PrimitiveTypes.Int8
	case Uint16:
		return arrow.PrimitiveTypes.Uint16
	case Int16:
		return arrow.PrimitiveTypes.Int16
	case Uint32:
		return arrow.PrimitiveTypes.Uint32
	case Int32:
		return arrow.PrimitiveTypes.Int32
	case Uint64:
		return arrow.PrimitiveTypes.Uint64
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case String, Varchar:
		return arrow.BinaryTypes.String
	case Bool:
		return arrow.FixedWidthTypes.Boolean
	case Float:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	case UnixtimeMicros:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Int128:
		return &arrow.Decimal128Type{Precision: 38, Scale: 0}
	case Decimal32, Decimal64, Decimal128:
		if precision == 0 {
			precision = map[Type]int{Decimal32: 9, Decimal64: 18, Decimal128: 38}[t]
		}
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(max(scale, 0))}
	}
	return arrow.BinaryTypes.Binary
}

// Restorable reports whether values stored as type own can be returned as type was: the two must have the same meaning
// and, except for timestamps of other units (see ShowMicros), the same bits.
func Restorable(was, own arrow.DataType) bool {
	switch w := was.(type) {
	case *arrow.Time32Type:
		return own.ID() == arrow.INT32
	case *arrow.Time64Type, *arrow.DurationType:
		return own.ID() == arrow.INT64
	case *arrow.TimestampType:
		return own.ID() == arrow.TIMESTAMP
	case *arrow.Decimal128Type:
		return own.ID() == arrow.DECIMAL128
	case *arrow.ListType:
		o, ok := own.(*arrow.ListType)
		return ok && Restorable(w.Elem(), o.Elem())
	}
	return arrow.TypeEqual(was, own)
}

// Shown is the type in which values written as was and stored as own are returned if the original schema is known: was
// itself wherever a conversion exists.
func Shown(was, own arrow.DataType) arrow.DataType {
	if own = Decoded(was, own); present.Can(own, was) {
		return was
	}
	return own
}

// Decoded is the type to which values written as was and stored as own are decoded: the type nearest to was that has
// the same bits.
func Decoded(was, own arrow.DataType) arrow.DataType {
	if Restorable(was, own) {
		return was
	}
	switch w := was.(type) {
	case arrow.ExtensionType:
		return Decoded(w.StorageType(), own)
	case arrow.DecimalType: // the file may not record precision and scale
		if own.ID() == arrow.DECIMAL128 {
			return &arrow.Decimal128Type{Precision: w.GetPrecision(), Scale: w.GetScale()}
		}
	case arrow.ListLikeType:
		if o, ok := own.(*arrow.ListType); ok {
			return arrow.ListOf(Decoded(w.Elem(), o.Elem()))
		}
	}
	return own
}

// RestoredFrom parses the text of an Arrow type. It returns the type if values stored as own can be returned in it.
func RestoredFrom(text string, own arrow.DataType) arrow.DataType {
	if l, ok := own.(*arrow.ListType); ok {
		for _, t := range finer(l.Elem(), text) {
			if list := arrow.ListOf(t); list.String() == text {
				return list
			}
		}
		return own
	}
	for _, t := range finer(own, text) {
		if t.String() == text {
			return t
		}
	}
	return own
}

// finer are the types that are stored as own.
func finer(own arrow.DataType, text string) []arrow.DataType {
	switch own.ID() {
	case arrow.INT32:
		return []arrow.DataType{arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms}
	case arrow.INT64:
		return []arrow.DataType{arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
			arrow.FixedWidthTypes.Duration_s,
			arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_us, arrow.FixedWidthTypes.Duration_ns}
	case arrow.TIMESTAMP:
		_, zone, _ := strings.Cut(text, "tz=")
		zone, _, _ = strings.Cut(zone, "]")
		var out []arrow.DataType
		for _, u := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
			out = append(out, &arrow.TimestampType{Unit: u, TimeZone: zone})
		}
		return out
	}
	return nil
}
