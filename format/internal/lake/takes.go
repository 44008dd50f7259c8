package lake

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Takes reports whether a column of the stored type to takes values of type from: they are stored as this type, or as
// one that catalogues promote to it. What such a type cannot represent exactly, as a timestamp in nanoseconds, is
// refused value by value, by Cast.
func (r Rules) Takes(to, from arrow.DataType) bool {
	r.SmallInts, r.Times, r.Nanos, r.Fixed, r.UUIDs = true, true, true, true, true // to says what the table has
	switch t := from.(type) {
	case *arrow.NullType:
		return true
	case *arrow.DictionaryType:
		return r.Takes(to, t.ValueType)
	case arrow.ExtensionType:
		return arrow.TypeEqual(from, to) || r.Takes(to, t.StorageType())
	case *arrow.StructType:
		return r.takesEach(to, t)
	case *arrow.MapType:
		x, ok := to.(*arrow.MapType)
		return ok && r.Takes(x.KeyType(), t.KeyType()) && r.Takes(x.ItemType(), t.ItemType())
	case arrow.ListLikeType:
		x, ok := to.(*arrow.ListType)
		return ok && r.Takes(x.Elem(), t.Elem())
	case *arrow.TimestampType:
		x, ok := to.(*arrow.TimestampType)
		return ok && (t.TimeZone == "") == (x.TimeZone == "")
	}
	stored, err := r.typeOf(from)
	return err == nil && (arrow.TypeEqual(stored, to) || promoted(stored, to))
}

// takesEach is Takes for the fields of structs, which Cast pairs by their positions.
func (r Rules) takesEach(to arrow.DataType, from *arrow.StructType) bool {
	x, ok := to.(*arrow.StructType)
	if !ok || x.NumFields() != from.NumFields() {
		return false
	}
	for i, f := range from.Fields() {
		if o := x.Field(i); o.Name != f.Name || !r.Takes(o.Type, f.Type) {
			return false
		}
	}
	return true
}

// Widened returns the type that a column of the stored type to needs for values of type from: a wider one, where the
// catalogue promotes its type to that, at any depth but not in keys of maps, and else to.
func (r Rules) Widened(to, from arrow.DataType) arrow.DataType {
	if d, ok := from.(*arrow.DictionaryType); ok {
		return r.Widened(to, d.ValueType)
	}
	one := func(f arrow.Field, from arrow.DataType) arrow.Field {
		f.Type = r.Widened(f.Type, from)
		return f
	}
	switch t := to.(type) {
	case *arrow.StructType:
		x, ok := from.(*arrow.StructType)
		if !ok || x.NumFields() != t.NumFields() {
			return to
		}
		fields := slices.Clone(t.Fields())
		for i := range fields {
			fields[i] = one(fields[i], x.Field(i).Type)
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		if x, ok := from.(*arrow.MapType); ok {
			return mapOf(t.KeyField(), one(t.ItemField(), x.ItemType()), t.KeysSorted)
		}
		return to
	case *arrow.ListType:
		if x, ok := from.(arrow.ListLikeType); ok && from.ID() != arrow.MAP {
			return arrow.ListOfField(one(t.ElemField(), x.Elem()))
		}
		return to
	}
	stored, err := r.typeOf(from)
	if err == nil && to.ID() != arrow.FIXED_SIZE_BINARY && promoted(to, stored) {
		return stored
	}
	return to
}

// promoted reports whether a catalogue lets a column of a type become one of another type: wider integers and floats,
// decimals of more digits. Fixed-width bytes are stored as bytes of any width where a catalogue has no other type.
func promoted(from, to arrow.DataType) bool {
	switch f := from.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type:
		return arrow.IsSignedInteger(to.ID()) && f.(arrow.FixedWidthDataType).BitWidth() <
			to.(arrow.FixedWidthDataType).BitWidth()
	case *arrow.Float32Type:
		return to.ID() == arrow.FLOAT64
	case *arrow.Decimal128Type:
		t, ok := to.(*arrow.Decimal128Type)
		return ok && t.Scale == f.Scale && t.Precision >= f.Precision
	case *arrow.FixedSizeBinaryType:
		return to.ID() == arrow.BINARY
	}
	return false
}
