package block

import "unsafe"

// form is how the values of a block are stored.
type form uint8

const (
	formFixed   form = iota // plain, fixed width
	formBits                // plain bool
	formStrings             // plain binary
	FormPrefix
	formRuns     // rle of integers
	formBitRuns  // rle of bools
	formShuffled // bitshuffle
	FormCodes    // codes of a dictionary: bitshuffle
	formGroups   // group varint, v1
)

// values are the values of a block that are not null, as stored.
type values struct {
	Form    form
	Count   int    // number of values
	Ordinal uint32 // of the block's first row
	data    []byte // after the header
	At      int    // offset of data in the block

	elem     int    // bitshuffle: bytes of an element
	padded   int    // bitshuffle: elements with padding
	base     uint32 // group varint: added to each value
	offsets  []byte // plain binary: group varints
	restarts int    // prefix: number of stored restart points
	points   []byte // prefix: u32 each
	start    int    // prefix: offset of the header in the block
}

// As views the beginning of b as n values of type T, without copying. b must be long enough.
func As[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	_ = b[n*int(unsafe.Sizeof(*new(T)))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// BytesOf views s as bytes, without copying.
func BytesOf(s []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
}
