package lake

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// FieldID is the metadata key of a field that Parquet stores as the field's id.
const FieldID = "PARQUET:field_id"

// Rules state which types a catalogue supports; other values are stored as wider types.
type Rules struct {
	Catalogue string // for errors
	SmallInts bool   // integers of 8 and 16 bits
	Times     bool   // times of day
	Nanos     bool   // timestamps in nanoseconds
	Fixed     bool   // bytes of fixed width
	UUIDs     bool
}

// And returns the rules that both sets share.
func (r Rules) And(o Rules) Rules {
	return Rules{r.Catalogue + " and " + o.Catalogue, r.SmallInts && o.SmallInts, r.Times && o.Times,
		r.Nanos && o.Nanos, r.Fixed && o.Fixed, r.UUIDs && o.UUIDs}
}

// Storage returns the schema of the data files for rows of schema sc, with ids for all fields: first the table's
// columns, then the fields in them. last is the last id.
func (r Rules) Storage(sc *arrow.Schema) (stored *arrow.Schema, last int, err error) {
	var fields []arrow.Field
	for _, f := range sc.Fields() {
		t, err := r.typeOf(f.Type)
		if err != nil {
			return nil, 0, fault.Locate(err, fault.Span{}, false, f.Name)
		}
		fields = append(fields, arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable || t.ID() == arrow.NULL ||
			f.Type.ID() == arrow.NULL})
	}
	n := &numbering{}
	fields = n.fields(fields)
	return arrow.NewSchema(fields, nil), n.last, nil
}

func (r Rules) refuse(t arrow.DataType) error {
	return fault.Unsupportedf(fault.Span{}, "", "%s has no type for values of type %s", r.Catalogue, t)
}

// typeOf returns the type as which values of type t are stored.
func (r Rules) typeOf(t arrow.DataType) (arrow.DataType, error) {
	switch t := t.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Uint8Type, *arrow.Uint16Type:
		return r.small(t), nil
	case *arrow.Uint32Type:
		return arrow.PrimitiveTypes.Int64, nil
	case *arrow.Uint64Type:
		return &arrow.Decimal128Type{Precision: 20}, nil
	case *arrow.Float16Type:
		return arrow.PrimitiveTypes.Float32, nil
	case *arrow.BooleanType, *arrow.Int32Type, *arrow.Int64Type, *arrow.Float32Type, *arrow.Float64Type,
		*arrow.Date32Type:
		return t, nil
	case *arrow.NullType, *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return arrow.BinaryTypes.String, nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary, nil
	case *arrow.FixedSizeBinaryType:
		if r.Fixed {
			return t, nil
		}
		return arrow.BinaryTypes.Binary, nil
	case arrow.DecimalType:
		p, s := t.GetPrecision(), t.GetScale()
		if p < 1 || p > 38 || s < 0 || s > p {
			return nil, r.refuse(t)
		}
		return &arrow.Decimal128Type{Precision: p, Scale: s}, nil
	case *arrow.Date64Type:
		return arrow.FixedWidthTypes.Date32, nil
	case *arrow.Time32Type, *arrow.Time64Type:
		if !r.Times {
			return nil, r.refuse(t)
		}
		return arrow.FixedWidthTypes.Time64us, nil
	case *arrow.TimestampType:
		out := &arrow.TimestampType{Unit: arrow.Microsecond}
		if t.Unit == arrow.Nanosecond && r.Nanos {
			out.Unit = arrow.Nanosecond
		}
		if t.TimeZone != "" {
			out.TimeZone = "UTC"
		}
		return out, nil
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" && r.UUIDs {
			return t, nil
		}
		return r.typeOf(t.StorageType())
	}
	return r.nested(t)
}

// small returns the type as which integers of 8 and 16 bits are stored.
func (r Rules) small(t arrow.DataType) arrow.DataType {
	switch id := t.ID(); {
	case !r.SmallInts || id == arrow.UINT16:
		return arrow.PrimitiveTypes.Int32
	case id == arrow.UINT8:
		return arrow.PrimitiveTypes.Int16
	}
	return t
}

// nested returns the stored type of lists, maps and structs.
func (r Rules) nested(t arrow.DataType) (arrow.DataType, error) {
	one := func(f arrow.Field, name string) (arrow.Field, error) {
		in, err := r.typeOf(f.Type)
		return arrow.Field{Name: name, Type: in, Nullable: f.Nullable || f.Type.ID() == arrow.NULL}, err
	}
	switch t := t.(type) {
	case *arrow.MapType:
		key, err := one(t.KeyField(), "key")
		if err != nil {
			return nil, err
		}
		value, err := one(t.ItemField(), "value")
		if err != nil {
			return nil, err
		}
		key.Nullable = false
		return mapOf(key, value, t.KeysSorted), nil
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return nil, r.refuse(t)
		}
		var fields []arrow.Field
		for _, f := range t.Fields() {
			in, err := one(f, f.Name)
			if err != nil {
				return nil, fault.Locate(err, fault.Span{}, false, f.Name)
			}
			fields = append(fields, in)
		}
		return arrow.StructOf(fields...), nil
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType, *arrow.ListViewType, *arrow.LargeListViewType:
		item, err := one(t.(arrow.ListLikeType).ElemField(), "element")
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(item), nil
	}
	return nil, r.refuse(t)
}

// mapOf returns a map type with the metadata of its key and value.
func mapOf(key, value arrow.Field, sorted bool) *arrow.MapType {
	t := arrow.MapOfFields(key, value)
	t.KeysSorted = sorted
	return t
}

// numbering assigns ids to fields.
type numbering struct{ last int }

// fields numbers fields, and then those in them.
func (n *numbering) fields(fs []arrow.Field) []arrow.Field {
	out := make([]arrow.Field, len(fs))
	for i, f := range fs {
		n.last++
		f.Metadata = arrow.NewMetadata([]string{FieldID}, []string{strconv.Itoa(n.last)})
		out[i] = f
	}
	for i := range out {
		out[i].Type = n.typeOf(out[i].Type)
	}
	return out
}

func (n *numbering) typeOf(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return arrow.StructOf(n.fields(t.Fields())...)
	case *arrow.MapType:
		fs := n.fields([]arrow.Field{t.KeyField(), t.ItemField()})
		return mapOf(fs[0], fs[1], t.KeysSorted)
	case *arrow.ListType:
		return arrow.ListOfField(n.fields([]arrow.Field{t.ElemField()})[0])
	}
	return t
}

// IDOf returns a field's id; -1 if it has none.
func IDOf(f arrow.Field) int {
	if v, ok := f.Metadata.GetValue(FieldID); ok {
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	}
	return -1
}
