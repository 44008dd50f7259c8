package read

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/internal/enc/half"
	"stoa/pred"
)

// flatLeaf returns the leaf at a path from the schema's root, unless it is in a list.
func (r *Reader) flatLeaf(path []int) (order.LeafField, bool) {
	i := slices.IndexFunc(r.FlatLeaves, func(l order.LeafField) bool { return slices.Equal(l.Path, path) })
	if i < 0 {
		return order.LeafField{}, false
	}
	return r.FlatLeaves[i], true
}

// LeafNamed returns the leaf that a predicate names, unless it is in a list.
func (r *Reader) LeafNamed(name string) (order.LeafField, bool) {
	at, _, err := pred.Find(r.Shown.Fields(), name)
	if err != nil {
		return order.LeafField{}, false
	}
	return r.flatLeaf(at)
}

// GroupBounds returns the bounds of a leaf according to the statistics of a row group.
func (r *Reader) GroupBounds(group int, l order.LeafField) pred.Bounds {
	g := r.Footer.RowGroups[group]
	return r.boundsOf(l, g.Columns[l.Column].MetaData.Statistics, g.NumRows)
}

// boundsOf returns the bounds according to s, which may be nil, of a leaf with one value in each of the given number of
// rows.
func (r *Reader) boundsOf(l order.LeafField, s *meta.Stats, rows int64) pred.Bounds {
	b := pred.Bounds{Nulls: -1, Rows: rows}
	if s == nil {
		return b
	}
	if s.Nulls != nil && *s.Nulls >= 0 && *s.Nulls <= rows && r.CountsNulls(l.Column) {
		b.Nulls = *s.Nulls
	}
	switch {
	case r.Ordered(l.Column):
		b.Min, b.Max = r.StatsValue(l, s.Min), r.StatsValue(l, s.Max)
		b.Exact = s.MinExact && s.MaxExact && r.ExactBounds()
	case Signed(l.Typ) && r.Footer.Orders == nil: // min and max predate defined orders, and compared signed
		b.Min, b.Max = r.StatsValue(l, s.DeprecatedMin), r.StatsValue(l, s.DeprecatedMax)
	}
	return b
}

// CountsNulls reports whether the null counts and null pages that the writer states for a column can be trusted. For a
// dictionary-encoded Arrow array below a struct, Arrow C++ (seen in versions 15 to 26) and Arrow Go (18) count only the
// nulls of the array, not those of the structs above it. The file does not always record that the array was
// dictionary-encoded, so no leaf below a group is trusted.
func (r *Reader) CountsNulls(column int) bool {
	d := r.Footer.Schema.Column(column)
	return len(d.Steps) == 1 || d.MaxDefinitionLevel() == 0 ||
		!r.by("parquet-cpp") && !r.by("parquet-go version")
}

// ExactBounds reports whether bounds that the writer marks as exact are values of the column. Arrow C++ computes them
// from the whole dictionary of an array, and rows need not refer to every value in it.
func (r *Reader) ExactBounds() bool { return !r.by("parquet-cpp") }

// by reports whether the name of the writing program in the footer begins with program.
func (r *Reader) by(program string) bool { return strings.HasPrefix(r.Footer.CreatedBy, program) }

// Ordered reports whether min_value and max_value are in the order that the specification defines for the type, which
// the footer must state.
func (r *Reader) Ordered(column int) bool {
	return column < len(r.Footer.Orders) && r.Footer.Orders[column] == meta.TypeOrder
}

// Signed reports whether values of t compare like the signed numbers that represent them.
func Signed(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64,
		arrow.DATE32, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		return true
	}
	return false
}

// StatsValue decodes a value of a leaf from statistics (PLAIN, without a length); nil if it cannot be interpreted.
func (r *Reader) StatsValue(l order.LeafField, b []byte) *pred.Value {
	if b == nil {
		return nil
	}
	var v pred.Value
	switch t := r.Footer.Schema.Column(l.Column).PhysicalType(); {
	case t == meta.TypeBoolean && len(b) == 1:
		v = pred.Bool(b[0] != 0)
	case t == meta.TypeInt32 && len(b) == 4:
		v = integer(l.Typ, int64(int32(binary.LittleEndian.Uint32(b))), 32)
	case t == meta.TypeInt64 && len(b) == 8:
		v = integer(l.Typ, int64(binary.LittleEndian.Uint64(b)), 64)
	case t == meta.TypeFloat && len(b) == 4:
		v = pred.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case t == meta.TypeDouble && len(b) == 8:
		v = pred.Float(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case t == meta.TypeBytes, t == meta.TypeFixed:
		v = stringValue(l.Typ, b)
	}
	if v.Kind == pred.KindNull {
		return nil
	}
	return &v
}

// integer returns the value that a column of type t stores as v, which has 32 or 64 bits.
func integer(t arrow.DataType, v int64, bits int) pred.Value {
	switch d := t.(type) {
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		if bits == 32 {
			return pred.Uint(uint64(uint32(v)))
		}
		return pred.Uint(uint64(v))
	case arrow.DecimalType:
		return pred.Decimal(decimal128.FromI64(v), d.GetScale())
	}
	return pred.Typed(t, v)
}

func stringValue(t arrow.DataType, b []byte) pred.Value {
	switch d := t.(type) {
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return pred.String(string(b))
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		return pred.Bytes(b)
	case *arrow.DictionaryType:
		return stringValue(d.ValueType, b)
	case *arrow.Float16Type:
		if len(b) != 2 {
			return pred.Null()
		}
		return pred.Float(float64(half.Float(binary.LittleEndian.Uint16(b))))
	case arrow.DecimalType:
		if len(b) == 0 || len(b) > 16 {
			return pred.Null()
		}
		n := new(big.Int).SetBytes(b) // big-endian, two's complement
		if b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		if n.BitLen() > 127 {
			return pred.Null()
		}
		return pred.Decimal(decimal128.FromBigInt(n), d.GetScale())
	}
	return pred.Null()
}

// bounds returns the bounds, in a row group, of those columns that are not in a list.
func (r *Reader) bounds(group int, cols []int) map[int]pred.Bounds {
	out := make(map[int]pred.Bounds, len(cols))
	for _, c := range cols {
		if r.Leaves[c].MaxRep == 0 {
			out[c] = r.GroupBounds(group, r.LeafOf(c))
		}
	}
	return out
}
