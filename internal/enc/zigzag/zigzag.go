// Package zigzag decodes zig-zag varints, Avro's encoding of int and long, many at once.
package zigzag

import "unsafe"

// level is a set of kernels for one level of instructions; each decodes groups of eight values, and returns how many
// groups it decoded and how many bytes they took.
type level struct {
	name        string
	ints, longs func(dst, src *byte, groups, last int) (done, used int)
}

// levels are the kernels that this processor supports, best first.
var levels []level

// Ints decodes values from the front of src into dst, eight at a time, as long as each of the eight has at most five
// bytes and 32 bits. n is the number of values, a multiple of 8; used is the number of their bytes. Both are 0 if the
// processor has no kernel. The caller decodes the rest one by one, and detects its errors.
func Ints(dst []int32, src []byte) (n, used int) {
	if len(levels) == 0 || len(src) < 64 {
		return 0, 0
	}
	done, used := levels[0].ints((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), unsafe.SliceData(src), len(dst)/8,
		len(src)-64)
	return 8 * done, used
}

// Longs is Ints for values of 64 bits, of at most eight bytes each.
func Longs(dst []int64, src []byte) (n, used int) {
	if len(levels) == 0 || len(src) < 64 {
		return 0, 0
	}
	done, used := levels[0].longs((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), unsafe.SliceData(src), len(dst)/8,
		len(src)-64)
	return 8 * done, used
}

// Quick reports whether this processor has kernels, that is, whether Ints and Longs decode anything.
func Quick() bool { return len(levels) > 0 }
