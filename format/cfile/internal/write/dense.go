package write

import (
	"encoding/binary"
	"unsafe"
)

// dense holds values, none of them NULL, in the form in which blocks store them. The type of the column determines
// which fields are set.
type dense struct {
	n     int
	fixed []byte // n values of the type's width, little-endian
	bits  []byte // bool: n bits from bit at on
	at    int
	strs  []strSpan // strings: position of each in data
	data  []byte
}

// strSpan is a range of bytes of dense.data.
type strSpan struct{ lo, hi uint32 }

// fullness is the state of a blockBuilder after values were added.
type fullness uint8

func appendTwo(dst []byte, a, b uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, a), b)
}

// view reinterprets bytes as values of T; this needs a little-endian machine, as the files are little-endian.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// RawBytes is the inverse of view.
func RawBytes[T any](v []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}
