// Package zigzag decodes zig-zag varints, as Avro has numbers, many at once.
package zigzag

import "unsafe"

// level is a set of kernels; each decodes groups of eight values, and says how many groups it did and how many
// bytes they took.
type level struct {
	name        string
	ints, longs func(dst, src *byte, groups, last int) (done, used int)
}

// levels are what this processor can do, the best in front.
var levels []level

// Ints decodes values from the front of src, as long as they come in eights of usual ones: of at most five
// bytes and 32 bits. It says how many there were, and how many bytes they took; none where the processor has no
// way to do many at once.
func Ints(dst []int32, src []byte) (n, used int) {
	if len(levels) == 0 || len(src) < 64 {
		return 0, 0
	}
	done, used := levels[0].ints((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), unsafe.SliceData(src), len(dst)/8,
		len(src)-64)
	return 8 * done, used
}

// Longs is Ints for values of 64 bits; usual are those of at most eight bytes.
func Longs(dst []int64, src []byte) (n, used int) {
	if len(levels) == 0 || len(src) < 64 {
		return 0, 0
	}
	done, used := levels[0].longs((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), unsafe.SliceData(src), len(dst)/8,
		len(src)-64)
	return 8 * done, used
}

// Quick is whether Ints and Longs do anything here.
func Quick() bool { return len(levels) > 0 }
