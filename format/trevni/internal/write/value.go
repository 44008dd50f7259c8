package write

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/coerce"
)

// plainType returns the type as which values of t are written and read back: the value type of dictionaries and the
// storage type of extensions; strings and lists with 32-bit offsets.
func plainType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return plainType(t.StorageType())
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case *arrow.LargeStringType, *arrow.StringViewType:
		return arrow.BinaryTypes.String
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = PlainField(f)
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		m := arrow.MapOf(plainType(t.KeyType()), plainType(t.ItemType()))
		m.SetItemNullable(PlainField(t.ItemField()).Nullable)
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.ListType:
		return arrow.ListOfField(PlainField(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.ListOfField(PlainField(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.ListOfField(PlainField(t.ElemField()))
	case *arrow.DenseUnionType:
		fields := make([]arrow.Field, len(t.Fields()))
		codes := make([]arrow.UnionTypeCode, len(fields))
		for i, f := range t.Fields() {
			fields[i], codes[i] = PlainField(f), arrow.UnionTypeCode(i)
		}
		return arrow.DenseUnionOf(fields, codes)
	}
	return t
}

// PlainField returns f with its plain type. A field of type null is nullable.
func PlainField(f arrow.Field) arrow.Field {
	f.Type = plainType(f.Type)
	if f.Type.ID() == arrow.NULL {
		f.Nullable = true
	}
	return f
}

// storedAs returns the stored type of a plain Arrow type; ok is false if there is none. Avro's schemas have no fixed32
// and fixed64.
func storedAs(t arrow.DataType, d layout.Dialect) (s layout.Type, ok bool) {
	switch t.ID() {
	case arrow.NULL:
		return layout.Null, true
	case arrow.BOOL:
		return layout.Boolean, true
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16, arrow.DATE32, arrow.TIME32:
		return layout.Int, true
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return layout.Long, true
	case arrow.UINT32:
		if d == layout.Wiki {
			return layout.Fixed32, true
		}
		return layout.Long, true
	case arrow.UINT64:
		if d == layout.Wiki {
			return layout.Fixed64, true
		}
		return layout.Long, true // up to 2⁶³−1
	case arrow.FLOAT32:
		return layout.Float, true
	case arrow.FLOAT64:
		return layout.Double, true
	case arrow.STRING:
		return layout.String, true
	case arrow.BINARY, arrow.FIXED_SIZE_BINARY, arrow.DECIMAL128:
		return layout.Bytes, true
	}
	return 0, false
}

// appender appends the stored form of value i of an array, which must not be null.
type appender func(b []byte, i int) ([]byte, error)

// appenderOf returns the appender for an array whose plain type is stored as s; nil for booleans and nulls.
func appenderOf(a arrow.Array, s layout.Type) (appender, error) {
	a = coerce.Stored(a)
	if d, ok := a.(*array.Dictionary); ok {
		of, err := appenderOf(d.Dictionary(), s)
		return func(b []byte, i int) ([]byte, error) { return of(b, d.GetValueIndex(i)) }, err
	}
	switch s {
	case layout.Int, layout.Long:
		return wholeAppender(a)
	case layout.Fixed32, layout.Fixed64, layout.Float, layout.Double:
		return fixedAppender(a)
	case layout.String, layout.Bytes:
		return stringAppender(a)
	case layout.Null, layout.Boolean:
		return nil, nil
	}
	return nil, fault.Bugf("trevni: %s as %s", a.DataType(), s)
}

func longs[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | arrow.Date32 | arrow.Time32 | arrow.Date64 |
	arrow.Time64 | arrow.Timestamp | arrow.Duration](vals []T) appender {
	return func(b []byte, i int) ([]byte, error) {
		v := int64(vals[i])
		if u := uint64(v)<<1 ^ uint64(v>>63); u < 0x80 {
			return append(b, byte(u)), nil
		}
		return layout.AppendLong(b, v), nil
	}
}

func wholeAppender(a arrow.Array) (appender, error) {
	switch a := a.(type) {
	case *array.Int8:
		return longs(a.Int8Values()), nil
	case *array.Int16:
		return longs(a.Int16Values()), nil
	case *array.Int32:
		return longs(a.Int32Values()), nil
	case *array.Int64:
		return longs(a.Int64Values()), nil
	case *array.Uint8:
		return longs(a.Uint8Values()), nil
	case *array.Uint16:
		return longs(a.Uint16Values()), nil
	case *array.Uint32:
		return longs(a.Uint32Values()), nil
	case *array.Date32:
		return longs(a.Date32Values()), nil
	case *array.Date64:
		return longs(a.Date64Values()), nil
	case *array.Time32:
		return longs(a.Time32Values()), nil
	case *array.Time64:
		return longs(a.Time64Values()), nil
	case *array.Timestamp:
		return longs(a.TimestampValues()), nil
	case *array.Duration:
		return longs(a.DurationValues()), nil
	case *array.Uint64:
		vals := a.Uint64Values()
		return func(b []byte, i int) ([]byte, error) {
			if vals[i] > math.MaxInt64 {
				return b, fault.Invalidf("%d does not fit a long: it has 64 bits with a sign", vals[i])
			}
			return layout.AppendLong(b, int64(vals[i])), nil
		}, nil
	}
	return nil, fault.Bugf("trevni: %s as a varint", a.DataType())
}

func fixedAppender(a arrow.Array) (appender, error) {
	le := binary.LittleEndian
	switch a := a.(type) {
	case *array.Uint32:
		vals := a.Uint32Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint32(b, vals[i]), nil }, nil
	case *array.Int32:
		vals := a.Int32Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint32(b, uint32(vals[i])), nil }, nil
	case *array.Uint64:
		vals := a.Uint64Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint64(b, vals[i]), nil }, nil
	case *array.Int64:
		vals := a.Int64Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint64(b, uint64(vals[i])), nil }, nil
	case *array.Float32:
		vals := a.Float32Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint32(b, math.Float32bits(vals[i])), nil }, nil
	case *array.Float64:
		vals := a.Float64Values()
		return func(b []byte, i int) ([]byte, error) { return le.AppendUint64(b, math.Float64bits(vals[i])), nil }, nil
	}
	return nil, fault.Bugf("trevni: %s as fixed bytes", a.DataType())
}

func stringAppender(a arrow.Array) (appender, error) {
	switch a := a.(type) {
	case interface{ Value(int) string }: // strings of all kinds
		return func(b []byte, i int) ([]byte, error) { return layout.AppendText(b, a.Value(i)), nil }, nil
	case interface{ Value(int) []byte }: // binary of all kinds
		return func(b []byte, i int) ([]byte, error) { return layout.AppendText(b, a.Value(i)), nil }, nil
	case *array.Decimal128:
		vals := a.Values()
		return func(b []byte, i int) ([]byte, error) {
			return layout.AppendText(b, coerce.BigEndian(vals[i])), nil
		}, nil
	}
	return nil, fault.Bugf("trevni: %s as bytes", a.DataType())
}
