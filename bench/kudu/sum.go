package main

import (
	"fmt"
	"hash/crc32"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sum is an order-independent checksum of a column's values: the number of nulls, and the sum of all valid values
// modulo 2⁶⁴. A float counts as its bits, a text as its CRC-32C and length; of booleans the trues are counted.
type sum struct {
	Rows, Nulls int64
	Total       uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *sum) text(v []byte) { s.Total += uint64(crc32.Checksum(v, castagnoli)) + uint64(len(v))<<32 }

func (s *sum) add(a arrow.Array) error {
	s.Rows += int64(a.Len())
	s.Nulls += int64(a.NullN())
	var at func(i int)
	switch a := a.(type) {
	case *array.Int64:
		at = func(i int) { s.Total += uint64(a.Value(i)) }
	case *array.Timestamp:
		at = func(i int) { s.Total += uint64(a.Value(i)) }
	case *array.Int32:
		at = func(i int) { s.Total += uint64(a.Value(i)) }
	case *array.Float64:
		at = func(i int) { s.Total += math.Float64bits(a.Value(i)) }
	case *array.Decimal64:
		at = func(i int) { s.Total += uint64(a.Value(i)) }
	case *array.Decimal128:
		at = func(i int) { s.Total += a.Value(i).LowBits() }
	case *array.Boolean:
		at = func(i int) {
			if a.Value(i) {
				s.Total++
			}
		}
	case *array.String:
		at = func(i int) { s.text([]byte(a.Value(i))) }
	default:
		return fmt.Errorf("no sum for %s", a.DataType())
	}
	for i := range a.Len() {
		if a.IsValid(i) {
			at(i)
		}
	}
	return nil
}
