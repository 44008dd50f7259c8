package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cespare/xxhash/v2"
)

// checksum is a sum over the rows of a table that does not depend on their order, nor on how wide a type a format has for a value:
// an int8 that comes back as an int64, or milliseconds that come back as microseconds, are the same value. Each row is hashed to 64
// bits (its columns in order, names do not count), and these, and their halves turned, are added up: 128 bits.
type checksum struct {
	rows     int64
	sum, mix uint64
	row      []uint64
}

// String is the sum in 32 hexadecimal digits.
func (s *checksum) String() string { return fmt.Sprintf("%016x%016x", s.sum, s.mix) }

// add counts the rows of b.
func (s *checksum) add(b arrow.RecordBatch) {
	n := int(b.NumRows())
	s.rows += int64(n)
	if cap(s.row) < n {
		s.row = make([]uint64, n)
	}
	rows := s.row[:n]
	clear(rows)
	for _, a := range b.Columns() {
		h := hashes(a)
		for i := range rows {
			rows[i] = fold(rows[i], h[i])
		}
	}
	for _, h := range rows {
		h = scramble(h)
		s.sum += h
		s.mix += scramble(h ^ 0x9e3779b97f4a7c15)
	}
}

// fold puts the hash of the next value behind those before it.
func fold(h, next uint64) uint64 { return (h^next)*0x9fb21c651e98df25 + 0x165667b19e3779f9 ^ h>>29 }

// scramble spreads every bit over all (the end of splitmix64).
func scramble(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// The kinds of values: values of different kinds are never the same.
const (
	kindNull uint64 = iota + 1
	kindBool
	kindInt
	kindFloat
	kindBytes
	kindDate
	kindInstant
	kindTime
	kindDecimal
	kindList
	kindMap
	kindStruct
	kindOther
)

// kindNames are the kinds as comparable says them.
var kindNames = [...]string{kindNull: "null", kindBool: "bool", kindInt: "int", kindFloat: "float", kindBytes: "bytes", kindDate: "date", kindInstant: "instant",
	kindTime: "time", kindDecimal: "decimal", kindList: "list", kindMap: "map", kindStruct: "struct", kindOther: "other"}

// kindOf is the kind of a type's values.
func kindOf(t arrow.DataType) uint64 {
	switch t := t.(type) {
	case *arrow.NullType:
		return kindNull
	case *arrow.BooleanType:
		return kindBool
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return kindFloat
	case *arrow.Date32Type, *arrow.Date64Type:
		return kindDate
	case *arrow.TimestampType:
		return kindInstant
	case *arrow.Time32Type, *arrow.Time64Type:
		return kindTime
	case arrow.DecimalType:
		return kindDecimal
	case *arrow.MapType:
		return kindMap
	case arrow.ListLikeType:
		return kindList
	case *arrow.StructType:
		return kindStruct
	case *arrow.DictionaryType:
		return kindOf(t.ValueType)
	case arrow.ExtensionType:
		return kindOf(t.StorageType())
	}
	switch id := t.ID(); {
	case arrow.IsInteger(id):
		return kindInt
	case arrow.IsBaseBinary(id), id == arrow.STRING_VIEW, id == arrow.BINARY_VIEW, id == arrow.FIXED_SIZE_BINARY:
		return kindBytes
	}
	return kindOther
}

// shape is the kinds of all columns: tables of different shapes cannot have the same sum. A format without some type (texts of CSV)
// gives back another shape.
func shape(sc *arrow.Schema) string {
	var walk func(t arrow.DataType) string
	walk = func(t arrow.DataType) string {
		k := kindOf(t)
		s := kindNames[k]
		if k == kindList || k == kindMap || k == kindStruct {
			var parts []string
			for _, f := range childFields(t) {
				parts = append(parts, walk(f.Type))
			}
			s += "(" + strings.Join(parts, ",") + ")"
		}
		return s
	}
	var parts []string
	for _, f := range sc.Fields() {
		parts = append(parts, walk(f.Type))
	}
	return strings.Join(parts, ",")
}

// hashes are those of an array's values.
func hashes(a arrow.Array) []uint64 {
	out := make([]uint64, a.Len())
	if d, ok := a.(*array.Dictionary); ok {
		words := hashes(d.Dictionary())
		for i := range out {
			if d.IsValid(i) {
				out[i] = words[d.GetValueIndex(i)]
			} else {
				out[i] = scramble(kindNull)
			}
		}
		return out
	}
	if x, ok := a.(array.ExtensionArray); ok {
		return hashes(x.Storage())
	}
	value := hasher(a)
	for i := range out {
		if a.IsNull(i) {
			out[i] = scramble(kindNull)
		} else {
			out[i] = value(i)
		}
	}
	return out
}

// one is the hash of a value that is a number.
func one(kind, v uint64) uint64 { return scramble(v ^ kind<<56 ^ kind*0x9e3779b97f4a7c15) }

// hasher gives the hash of a valid value.
func hasher(a arrow.Array) func(i int) uint64 {
	switch a := a.(type) {
	case *array.Boolean:
		return func(i int) uint64 {
			if a.Value(i) {
				return one(kindBool, 1)
			}
			return one(kindBool, 0)
		}
	case *array.Int8:
		return wholeHash(a.Int8Values())
	case *array.Int16:
		return wholeHash(a.Int16Values())
	case *array.Int32:
		return wholeHash(a.Int32Values())
	case *array.Int64:
		return wholeHash(a.Int64Values())
	case *array.Uint8:
		return wholeHash(a.Uint8Values())
	case *array.Uint16:
		return wholeHash(a.Uint16Values())
	case *array.Uint32:
		return wholeHash(a.Uint32Values())
	case *array.Uint64:
		return func(i int) uint64 {
			v := a.Value(i)
			if v > math.MaxInt64 {
				return one(kindInt, ^v)
			}
			return one(kindInt, v)
		}
	case *array.Float16:
		return func(i int) uint64 { return floatHash(float64(a.Value(i).Float32())) }
	case *array.Float32:
		return func(i int) uint64 { return floatHash(float64(a.Value(i))) }
	case *array.Float64:
		return func(i int) uint64 { return floatHash(a.Value(i)) }
	case interface{ Value(int) []byte }:
		return func(i int) uint64 { return fold(kindBytes, xxhash.Sum64(a.Value(i))) }
	case array.StringLike:
		return func(i int) uint64 { return fold(kindBytes, xxhash.Sum64String(a.Value(i))) }
	}
	return timeHasher(a)
}

func wholeHash[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](v []T) func(int) uint64 {
	return func(i int) uint64 { return one(kindInt, uint64(int64(v[i]))) }
}

// floatHash: all NaN are one; 0 and -0 are two.
func floatHash(f float64) uint64 {
	if f != f {
		f = math.NaN()
	}
	return one(kindFloat, math.Float64bits(f))
}

func timeHasher(a arrow.Array) func(i int) uint64 {
	moment := func(kind uint64, v, unit int64) uint64 { // unit: how many are in a second
		sec, rest := v/unit, v%unit
		if rest < 0 {
			sec, rest = sec-1, rest+unit
		}
		return fold(one(kind, uint64(sec)), uint64(rest*(1_000_000_000/unit)))
	}
	perSecond := func(u arrow.TimeUnit) int64 { return int64(time.Second / u.Multiplier()) }
	switch a := a.(type) {
	case *array.Date32:
		return func(i int) uint64 { return moment(kindDate, int64(a.Value(i))*86400, 1) }
	case *array.Date64:
		return func(i int) uint64 { return moment(kindDate, int64(a.Value(i)), 1000) }
	case *array.Timestamp:
		unit := perSecond(a.DataType().(*arrow.TimestampType).Unit)
		return func(i int) uint64 { return moment(kindInstant, int64(a.Value(i)), unit) }
	case *array.Time32:
		unit := perSecond(a.DataType().(*arrow.Time32Type).Unit)
		return func(i int) uint64 { return moment(kindTime, int64(a.Value(i)), unit) }
	case *array.Time64:
		unit := perSecond(a.DataType().(*arrow.Time64Type).Unit)
		return func(i int) uint64 { return moment(kindTime, int64(a.Value(i)), unit) }
	case *array.Decimal32:
		return func(i int) uint64 { return decimalHash(a.DataType(), big.NewInt(int64(a.Value(i)))) }
	case *array.Decimal64:
		return func(i int) uint64 { return decimalHash(a.DataType(), big.NewInt(int64(a.Value(i)))) }
	case *array.Decimal128:
		scale := one(kindDecimal, uint64(uint32(a.DataType().(arrow.DecimalType).GetScale())))
		return func(i int) uint64 {
			v := a.Value(i)
			return fold(fold(scale, uint64(v.HighBits())), v.LowBits())
		}
	case *array.Decimal256:
		return func(i int) uint64 { return decimalHash(a.DataType(), a.Value(i).BigInt()) }
	}
	return nestedHasher(a)
}

// decimalHash is that of a number of 128 bits, if it needs no more.
func decimalHash(t arrow.DataType, v *big.Int) uint64 {
	h := one(kindDecimal, uint64(uint32(t.(arrow.DecimalType).GetScale())))
	words := 2
	if v.BitLen() > 127 {
		words = 4
	}
	mod := new(big.Int).Lsh(big.NewInt(1), uint(64*words))
	b := new(big.Int).Mod(v, mod).FillBytes(make([]byte, 8*words))
	for ; len(b) > 0; b = b[8:] {
		h = fold(h, binary.BigEndian.Uint64(b))
	}
	return h
}

func nestedHasher(a arrow.Array) func(i int) uint64 {
	switch a := a.(type) {
	case *array.Map:
		keys, items := hashes(a.Keys()), hashes(a.Items())
		return func(i int) uint64 {
			from, to := a.ValueOffsets(i)
			h := one(kindMap, uint64(to-from))
			for k := from; k < to; k++ {
				h = fold(fold(h, keys[k]), items[k])
			}
			return h
		}
	case array.ListLike:
		items := hashes(a.ListValues())
		return func(i int) uint64 {
			from, to := a.ValueOffsets(i)
			h := one(kindList, uint64(to-from))
			for _, x := range items[from:to] {
				h = fold(h, x)
			}
			return h
		}
	case *array.Struct:
		kids := make([][]uint64, a.NumField())
		for k := range kids {
			kids[k] = hashes(a.Field(k))
		}
		return func(i int) uint64 {
			h := one(kindStruct, uint64(len(kids)))
			for _, k := range kids {
				h = fold(h, k[i])
			}
			return h
		}
	}
	return func(i int) uint64 { return fold(kindOther, xxhash.Sum64String(a.ValueStr(i))) }
}
