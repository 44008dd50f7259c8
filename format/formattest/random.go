package formattest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Random returns n random entries of type t, of which about nulls percent are null.
func Random(r *rand.Rand, t arrow.DataType, n, nulls int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	for range n {
		if r.IntN(100) < nulls {
			b.AppendNull()
		} else {
			appendRandom(r, b)
		}
	}
	return b.NewArray()
}

// appendRandom appends a value that is not null; items and fields in it may be.
func appendRandom(r *rand.Rand, b array.Builder) {
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(5) {
			if r.IntN(5) == 0 {
				b.ValueBuilder().AppendNull()
			} else {
				appendRandom(r, b.ValueBuilder())
			}
		}
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			if f.Nullable && r.IntN(5) == 0 {
				b.FieldBuilder(i).AppendNull()
			} else {
				appendRandom(r, b.FieldBuilder(i))
			}
		}
	default:
		appendRandomLeaf(r, b)
	}
}

// appendRandomLeaf appends a value of a type without children.
func appendRandomLeaf(r *rand.Rand, b array.Builder) {
	x := r.Uint64() >> r.IntN(64) // all magnitudes
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(x&1 == 1)
	case *array.Int8Builder:
		b.Append(int8(x))
	case *array.Int16Builder:
		b.Append(int16(x))
	case *array.Int32Builder:
		b.Append(int32(x))
	case *array.Int64Builder:
		b.Append(int64(x))
	case *array.Uint8Builder:
		b.Append(uint8(x))
	case *array.Uint16Builder:
		b.Append(uint16(x))
	case *array.Uint32Builder:
		b.Append(uint32(x))
	case *array.Uint64Builder:
		b.Append(x)
	case *array.Float32Builder:
		b.Append([]float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1)),
			float32(x) / 3}[min(3, r.IntN(20))])
	case *array.Float64Builder:
		b.Append([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), float64(x) / 3}[min(3, r.IntN(20))])
	case *array.StringBuilder:
		b.Append(randomText(r))
	case *array.BinaryBuilder:
		b.Append([]byte(randomText(r) + string([]byte{0, 255, byte(x)})[:r.IntN(4)]))
	case *array.Date32Builder:
		b.Append(arrow.Date32(int32(x % 100000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(int64(x) % (1 << 52)))
	case *array.Decimal128Builder:
		p := b.Type().(*arrow.Decimal128Type).Precision
		limit := int64(1)
		for range min(p, 18) {
			limit *= 10
		}
		b.AppendValueFromString(decimalText(int64(x)%limit, b.Type().(*arrow.Decimal128Type).Scale))
	default:
		panic(fmt.Sprintf("formattest cannot make values of type %s", b.Type()))
	}
}

func decimalText(v int64, scale int32) string {
	s := fmt.Sprint(max(v, -v))
	if len(s) <= int(scale) {
		s = strings.Repeat("0", int(scale)-len(s)+1) + s
	}
	s = s[:len(s)-int(scale)] + "." + s[len(s)-int(scale):]
	if v < 0 {
		s = "-" + s
	}
	return strings.TrimSuffix(s, ".")
}

// randomText is mostly one of 30 words, so that dictionaries are used; sometimes unique, empty or long; rarely too long
// for a page or for statistics.
func randomText(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return ""
	case 1:
		n := r.IntN(40)
		if r.IntN(50) == 0 {
			n *= 100
		}
		return strings.Repeat("long é ", n)
	case 2:
		return fmt.Sprintf("new %d", r.Uint64())
	}
	return fmt.Sprintf("word%d", r.IntN(30))
}

// Lines returns a batch as exact text (see Cell), one line per row.
func Lines(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, Cell(c, i))
		}
		out[i] = strings.Join(cells, " | ")
	}
	return out
}
