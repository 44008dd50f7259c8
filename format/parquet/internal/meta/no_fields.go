package meta

import "github.com/apache/arrow-go/v18/arrow"

// NoFields is the field of a struct that has none: Parquet has no group without fields. It is always null, so that of
// the struct only its own nulls are kept. Who reads the file with another program sees it.
const NoFields = "stoa_no_fields"

// Filled is a field with NoFields in each struct that has no fields; any: there is one.
func Filled(f arrow.Field) (out arrow.Field, any bool) {
	return MapTypes(f, func(t arrow.DataType) (arrow.DataType, bool) {
		if st, ok := t.(*arrow.StructType); ok && st.NumFields() == 0 {
			return arrow.StructOf(arrow.Field{Name: NoFields, Type: arrow.Null, Nullable: true}), true
		}
		return t, false
	})
}

// Emptied is a field without NoFields, as Filled was given it; any: it was there.
func Emptied(f arrow.Field) (out arrow.Field, any bool) {
	return MapTypes(f, func(t arrow.DataType) (arrow.DataType, bool) {
		if st, ok := t.(*arrow.StructType); ok && st.NumFields() == 1 {
			if c := st.Field(0); c.Name == NoFields && c.Type.ID() == arrow.NULL {
				return arrow.StructOf(), true
			}
		}
		return t, false
	})
}

// MapTypes is a field with all types changed that lists, maps and structs lead to, and these, from the leaves up; any:
// change says that it changed one. A type below which nothing was changed stays itself.
func MapTypes(f arrow.Field, change func(arrow.DataType) (arrow.DataType, bool)) (out arrow.Field, any bool) {
	of := func(c arrow.Field) arrow.Field {
		to, is := MapTypes(c, change)
		any = any || is
		return to
	}
	made := f.Type
	switch t := f.Type.(type) {
	case *arrow.ListType:
		made = arrow.ListOfField(of(t.ElemField()))
	case *arrow.LargeListType:
		made = arrow.LargeListOfField(of(t.ElemField()))
	case *arrow.FixedSizeListType:
		made = arrow.FixedSizeListOfField(t.Len(), of(t.ElemField()))
	case *arrow.MapType:
		m := arrow.MapOfFields(of(t.KeyField()), of(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		made = m
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i] = of(fields[i])
		}
		made = arrow.StructOf(fields...)
	}
	if any {
		f.Type = made
	}
	to, is := change(f.Type)
	f.Type = to
	return f, any || is
}
