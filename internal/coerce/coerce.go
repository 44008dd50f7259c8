// Package coerce converts Arrow values to the forms in which formats store them, and back: extensions to their storage,
// decimals to big-endian integers.
package coerce

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Storage returns t, or the storage type if t is an extension.
func Storage(t arrow.DataType) arrow.DataType {
	for {
		e, ok := t.(arrow.ExtensionType)
		if !ok {
			return t
		}
		t = e.StorageType()
	}
}

// Stored returns a, or the storage array if a is an extension array.
func Stored(a arrow.Array) arrow.Array {
	for {
		e, ok := a.(array.ExtensionArray)
		if !ok {
			return a
		}
		a = e.Storage()
	}
}

// BigEndian returns v in two's complement, most significant byte first, in as few bytes as possible, as in Avro and
// Java.
func BigEndian(v decimal128.Num) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(b[8:], v.LowBits())
	k := 0
	for k < 15 && (b[k] == 0 && b[k+1] < 0x80 || b[k] == 0xff && b[k+1] >= 0x80) {
		k++
	}
	return b[k:]
}

// OfBigEndian is the inverse, for any number of bytes; it returns false if the value exceeds 128 bits.
func OfBigEndian(b []byte) (decimal128.Num, bool) {
	var hi, lo uint64
	if len(b) > 0 && b[0] >= 0x80 {
		hi, lo = math.MaxUint64, math.MaxUint64
	}
	for len(b) > 16 { // remove bytes that only repeat the sign
		if (b[0] != 0 || b[1] >= 0x80) && (b[0] != 0xff || b[1] < 0x80) {
			return decimal128.Num{}, false
		}
		b = b[1:]
	}
	for _, x := range b {
		hi, lo = hi<<8|lo>>56, lo<<8|uint64(x)
	}
	return decimal128.New(int64(hi), lo), true
}
