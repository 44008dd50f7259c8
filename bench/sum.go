package main

import (
	"math/big"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sum is a checksum of a column's values that the peers can compute, too: the number of nulls, and the sum of all valid
// values modulo 2⁶⁴. A float counts as its bits, a text as the sum of its bytes plus its length, a boolean as 0 or 1,
// a decimal as its low word.
type sum struct {
	Rows, Nulls int64
	Total       uint64
}

func (s *sum) add(a arrow.Array) {
	s.Rows += int64(a.Len())
	s.Nulls += int64(a.NullN())
	switch a := a.(type) {
	case *array.Int64:
		each(s, a, a.Values())
	case *array.Timestamp:
		each(s, a, a.Values())
	case *array.Int32:
		each(s, a, a.Values())
	case *array.Date32:
		each(s, a, a.Values())
	case *array.Float64:
		v := a.Values()
		each(s, a, unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)))
	case *array.Decimal128:
		for i, v := range a.Values() {
			if a.IsValid(i) {
				s.Total += new(big.Int).And(v.BigInt(), new(big.Int).SetUint64(1<<64-1)).Uint64()
			}
		}
	case *array.Boolean:
		for i := range a.Len() {
			if a.IsValid(i) && a.Value(i) {
				s.Total++
			}
		}
	case *array.String:
		for i := range a.Len() {
			if a.IsValid(i) {
				v := a.Value(i)
				s.Total += uint64(len(v))
				for k := range len(v) {
					s.Total += uint64(v[k])
				}
			}
		}
	}
}

func each[T ~int32 | ~int64](s *sum, a arrow.Array, vals []T) {
	for i, v := range vals {
		if a.IsValid(i) {
			s.Total += uint64(int64(v))
		}
	}
}
