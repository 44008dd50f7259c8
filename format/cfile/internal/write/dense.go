package write

import (
	"encoding/binary"
	"unsafe"
)

// dense is values (no NULL among them), in the form in which the blocks store them. Which fields are set
// follows from the type of the column.
type dense struct {
	n     int
	fixed []byte // n values of the type's width, little-endian
	bits  []byte // bool: n bits from bit at on
	at    int
	strs  []strSpan // strings: where each lies in data
	data  []byte
}

// strSpan is a run of bytes.
type strSpan struct{ lo, hi uint32 }

// fullness is what a blockBuilder says after taking values.
type fullness uint8

func appendTwo(dst []byte, a, b uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, a), b)
}

// view sees bytes as values of T; the machine is little-endian, as the files are.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// RawBytes is the inverse of view.
func RawBytes[T any](v []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}
