package vec

import (
	"encoding/binary"
	"math/bits"
)

// SetBits sets the bits [from, to) of b to on.
func SetBits(b []byte, from, to int, on bool) {
	if from >= to {
		return
	}
	i, j := from>>3, to>>3
	head, tail := byte(0xff)<<(from&7), byte(1)<<(to&7)-1
	var fill byte
	if on {
		fill = 0xff
	}
	if i == j {
		m := head & tail
		b[i] = b[i]&^m | fill&m
		return
	}
	b[i] = b[i]&^head | fill&head
	for k := i + 1; k < j; k++ {
		b[k] = fill
	}
	if tail != 0 {
		b[j] = b[j]&^tail | fill&tail
	}
}

// countZeros counts the zero bits in [from, to) of b.
func countZeros(b []byte, from, to int) int {
	ones := 0
	i := from
	for ; i < to && i&7 != 0; i++ {
		ones += int(b[i>>3] >> (i & 7) & 1)
	}
	for ; i+64 <= to; i += 64 {
		ones += bits.OnesCount64(binary.LittleEndian.Uint64(b[i>>3:]))
	}
	for ; i < to; i++ {
		ones += int(b[i>>3] >> (i & 7) & 1)
	}
	return to - from - ones
}

// moveBits copies n bits of src from bit from on to the beginning of dst, which may be the same slice.
func moveBits(dst, src []byte, from, n int) {
	if n <= 0 {
		return
	}
	if from&7 == 0 {
		copy(dst[:(n+7)/8], src[from>>3:])
		return
	}
	for i := range (n + 7) / 8 {
		dst[i] = bitsAt(src, from+8*i)
	}
}

// copyBits copies n bits of src from bit from on to bit at of dst, and leaves other bits unchanged.
func copyBits(dst []byte, at int, src []byte, from, n int) {
	for n > 0 && at&7 != 0 {
		setBit(dst, at, src[from>>3]>>(from&7)&1)
		at, from, n = at+1, from+1, n-1
	}
	k := n &^ 7
	moveBits(dst[at>>3:], src, from, k)
	for i := k; i < n; i++ {
		setBit(dst, at+i, src[(from+i)>>3]>>((from+i)&7)&1)
	}
}

func setBit(b []byte, i int, x byte) { b[i>>3] = b[i>>3]&^(1<<(i&7)) | x<<(i&7) }
