package trevni

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// RandomType draws a type nested up to depth levels deep, with unions if wanted. As in Avro, the keys of maps are
// strings.
func RandomType(r *rand.Rand, depth int, unions bool) arrow.DataType {
	leaves := []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String,
		arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Float64, &arrow.FixedSizeBinaryType{ByteWidth: 3},
		&arrow.Decimal128Type{Precision: 20, Scale: 4}, arrow.PrimitiveTypes.Uint16}
	if depth == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(6) {
	case 0, 1:
		return arrow.ListOfField(RandomField(r, "item", depth-1, unions))
	case 2:
		m := arrow.MapOf(arrow.BinaryTypes.String, RandomType(r, depth-1, unions))
		m.SetItemNullable(r.IntN(2) == 0 && m.ItemType().ID() != arrow.DENSE_UNION)
		return m
	case 3:
		if !unions {
			break
		}
		fields := []arrow.Field{{Name: "null", Type: arrow.Null, Nullable: true},
			{Name: "long", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			{Name: "string", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "array", Type: arrow.ListOfField(RandomField(r, "item", depth-1, unions)), Nullable: true},
			{Name: "boolean", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		return arrow.DenseUnionOf(fields, []arrow.UnionTypeCode{0, 1, 2, 3, 4})
	}
	var fields []arrow.Field
	for i := range 1 + r.IntN(3) {
		fields = append(fields, RandomField(r, fmt.Sprintf("f%d", i), depth-1, unions))
	}
	return arrow.StructOf(fields...)
}

// RandomField draws a field with a type of RandomType, in one of two cases nullable (unions never are).
func RandomField(r *rand.Rand, name string, depth int, unions bool) arrow.Field {
	t := RandomType(r, depth, unions)
	return arrow.Field{Name: name, Type: t, Nullable: r.IntN(2) == 0 && t.ID() != arrow.DENSE_UNION}
}

// fill appends a random value, null in one of four cases if nullable.
func fill(r *rand.Rand, b array.Builder, nullable bool) {
	if nullable && r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			fill(r, b.FieldBuilder(i), f.Nullable)
		}
	case *array.MapBuilder:
		b.Append(true)
		for k := range r.IntN(4) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", k))
			fill(r, b.ItemBuilder(), b.Type().(*arrow.MapType).ItemField().Nullable)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range max(0, r.IntN(7)-2) {
			fill(r, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable)
		}
	case *array.DenseUnionBuilder:
		k := r.IntN(b.NumChildren())
		b.Append(arrow.UnionTypeCode(k))
		fill(r, b.Child(k), false)
	default:
		fillLeaf(r, b)
	}
}

// fillLeaf appends a random value of a type without children.
func fillLeaf(r *rand.Rand, b array.Builder) {
	x := r.Uint64() >> r.IntN(64) // all magnitudes
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.Int32Builder:
		b.Append(int32(x))
	case *array.Int64Builder:
		b.Append(int64(x))
	case *array.Int8Builder:
		b.Append(int8(x))
	case *array.Int16Builder:
		b.Append(int16(x))
	case *array.Uint8Builder:
		b.Append(uint8(x))
	case *array.Uint32Builder:
		b.Append(uint32(x))
	case *array.Float32Builder:
		b.Append(float32(x) / 7)
	case *array.Date32Builder:
		b.Append(arrow.Date32(x))
	case *array.Time32Builder:
		b.Append(arrow.Time32(x % 86400000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(x % 86400000000))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(x >> 1))
	case *array.Uint16Builder:
		b.Append(uint16(x))
	case *array.Float64Builder:
		b.Append(float64(x) / 7)
	case *array.BooleanBuilder:
		b.Append(x&1 == 0)
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("é%d", x)[:2+r.IntN(2)])
	case *array.BinaryBuilder:
		b.Append([]byte{byte(x), 0, 255}[:1+r.IntN(3)])
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{byte(x), byte(x >> 8), 7})
	case *array.Decimal128Builder:
		b.AppendValueFromString(fmt.Sprintf("%d.%04d", int64(x>>12)-100, x%10000))
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// RandomBatch makes n rows of a schema whose types RandomType draws; in nullable columns about a quarter is null.
func RandomBatch(r *rand.Rand, sc *arrow.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for range n {
		for i, f := range sc.Fields() {
			fill(r, b.Field(i), f.Nullable)
		}
	}
	return b.NewRecordBatch()
}
