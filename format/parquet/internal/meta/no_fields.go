package meta

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// NoFields is the only field of a struct that would otherwise have none, because Parquet has no group without fields.
// It is always null, so all that is stored of the struct is whether it is null. Other programs that read the file see
// this field.
const NoFields = "stoa_no_fields"

// Filled returns the field with NoFields added to each struct without fields; any reports whether there is such a
// struct.
func Filled(f arrow.Field) (out arrow.Field, any bool) {
	return MapTypes(f, func(t arrow.DataType) (arrow.DataType, bool) {
		if st, ok := t.(*arrow.StructType); ok && st.NumFields() == 0 {
			return arrow.StructOf(arrow.Field{Name: NoFields, Type: arrow.Null, Nullable: true}), true
		}
		return t, false
	})
}

// Emptied is the inverse of Filled: it returns the field without NoFields; any reports whether there was one.
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

// MapTypes is MapFields for changes that depend on types alone.
func MapTypes(f arrow.Field, change func(arrow.DataType) (arrow.DataType, bool)) (out arrow.Field, any bool) {
	return MapFields(f, func(f arrow.Field) (arrow.Field, bool) {
		t, is := change(f.Type)
		f.Type = t
		return f, is
	})
}

// MapFields changes the field and every field below it in lists, maps, structs and unions, from the leaves up; any
// reports whether change changed one. A type below which nothing changed is kept as it is.
func MapFields(f arrow.Field, change func(arrow.Field) (arrow.Field, bool)) (out arrow.Field, any bool) {
	of := func(c arrow.Field) arrow.Field {
		to, is := MapFields(c, change)
		any = any || is
		return to
	}
	all := func(fields []arrow.Field) []arrow.Field {
		for i := range fields {
			fields[i] = of(fields[i])
		}
		return fields
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
		made = arrow.StructOf(all(t.Fields())...)
	case *arrow.DenseUnionType:
		made = arrow.DenseUnionOf(all(slices.Clone(t.Fields())), t.TypeCodes())
	case *arrow.SparseUnionType:
		made = arrow.SparseUnionOf(all(slices.Clone(t.Fields())), t.TypeCodes())
	}
	if any {
		f.Type = made
	}
	f, is := change(f)
	return f, any || is
}
