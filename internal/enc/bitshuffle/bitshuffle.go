// Package bitshuffle implements the bitshuffle encoding: chunks of values, bit-transposed and then compressed with LZ4.
//
// A sequence of fixed-size elements, their number a multiple of 8, is cut into chunks of max(128, 8192/size)
// elements, the quotient rounded down to a multiple of 8; the last chunk may be shorter. A chunk is
//
//	u32 big-endian   size of the LZ4 block
//	LZ4 block        the transposed chunk, as large as the chunk itself
//
// A transposed chunk of n elements has a row of n/8 bytes for each bit of an element: first the rows of the
// first byte, lowest bit first, then those of the second byte, and so on. Bit i of a row, counted from the
// lowest bit of its first byte, belongs to element i.
//
//	element 0 .. 7 = 01 00 00 00 00 00 00 80 (one byte each)  →  rows 01 00 00 00 00 00 00 80
//	element 0 .. 7 = 03 03 03 03 00 00 00 00                  →  rows 0f 0f 00 00 00 00 00 00
//
// On amd64 with AVX2 the transposition is done in assembly, and with GFNI and AVX-512 about twice as fast again
// (gen/main.go generates it); pure Go serves other machines, few elements, and the build tag purego.
//
// The header of Kudu's block (20 bytes) is left to the caller. Source: notes on Kudu, section 5; the bitshuffle library
// of Kiyoshi Masui (the seed document only names it).
package bitshuffle

import (
	"encoding/binary"
	"strconv"
	"sync"

	"github.com/pierrec/lz4/v4"

	"stoa/fault"
)

// MaxElem is the maximum size of an element, in bytes. Kudu uses 1, 2, 4, 8 and 16, for which there are fast kernels.
const MaxElem = 64

// maxChunk is the size in bytes of the largest chunk, for any size of element up to MaxElem.
const maxChunk = 8192

// chunkElems is the number of elements of a chunk that is not the last.
func chunkElems(elem int) int { return max(128, maxChunk/elem&^7) }

// scratch is the memory that Decode and Append need besides their arguments.
type scratch struct {
	rows [maxChunk]byte
	tmp  [8192]byte // for the kernels
	lz   lz4.Compressor
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Decode fills dst from the chunks at the front of src. len(dst) must be elem times the number of elements, which must
// be a multiple of 8 (Kudu pads the last block and states both numbers in the block's header). used is the size of the
// chunks. elem is 1 to MaxElem. Errors (path chunk[i].size, .lz4): the input ends; a block is damaged or does not
// decompress to exactly the size of its chunk; elem is out of range, or len(dst) is not such a multiple (class bug).
func Decode(dst []byte, src []byte, elem int) (used int, err error) {
	if err := check(len(dst), elem); err != nil {
		return 0, err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	chunk := chunkElems(elem) * elem
	at := 0
	for i := 0; len(dst) > 0; i++ {
		n := min(chunk, len(dst))
		size, err := chunkSize(src, at, i)
		if err != nil {
			return at, err
		}
		at += 4
		rows := s.rows[:n]
		got, lzErr := lz4.UncompressBlock(src[at:at+size], rows)
		if lzErr != nil {
			return at, fault.Rel(at, size, path(i, ".lz4"), "not a block of %d raw bytes: %v", n, lzErr)
		}
		if got != n {
			return at, fault.Rel(at, size, path(i, ".lz4"), "%d raw bytes where the chunk has %d", got, n)
		}
		s.untranspose(dst[:n], rows, elem)
		dst = dst[n:]
		at += size
	}
	return at, nil
}

// check validates the caller's arguments.
func check(n, elem int) error {
	if elem < 1 || elem > MaxElem {
		return fault.Bugf("bitshuffle: elements of %d bytes", elem)
	}
	if n%(8*elem) != 0 {
		return fault.Bugf("bitshuffle: %d bytes are not a multiple of 8 elements of %d bytes", n, elem)
	}
	return nil
}

func path(chunk int, field string) string { return "chunk[" + strconv.Itoa(chunk) + "]" + field }

// chunkSize reads the size of the LZ4 block of chunk i and checks that src holds all of the block.
func chunkSize(src []byte, at, i int) (int, error) {
	if len(src)-at < 4 {
		return 0, fault.Rel(at, 4, path(i, ".size"), "the input ends: %d bytes are left", len(src)-at)
	}
	size := binary.BigEndian.Uint32(src[at:])
	if size == 0 {
		return 0, fault.Rel(at, 4, path(i, ".size"), "0: no LZ4 block is that short")
	}
	if uint64(size) > uint64(len(src)-at-4) {
		return 0, fault.Rel(at, 4, path(i, ".size"), "%d bytes, %d are left", size, len(src)-at-4)
	}
	return int(size), nil
}

// Append appends the chunks of src, whose length must be a multiple of 8·elem; elem is 1 to MaxElem (it panics
// otherwise). The LZ4 blocks may differ from those of the C library.
func Append(dst []byte, src []byte, elem int) []byte {
	if err := check(len(src), elem); err != nil {
		panic(err)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	chunk := chunkElems(elem) * elem
	for len(src) > 0 {
		n := min(chunk, len(src))
		rows := s.rows[:n]
		s.transpose(rows, src[:n], elem)
		at, bound := len(dst), lz4.CompressBlockBound(n)
		if cap(dst)-at < 4+bound {
			dst = append(make([]byte, 0, 2*cap(dst)+4+bound), dst...)
		}
		size, err := s.lz.CompressBlock(rows, dst[at+4:at+4+bound])
		if err != nil || size == 0 {
			panic("bitshuffle: an LZ4 block does not fit in its own bound") // cannot happen
		}
		dst = dst[:at+4+size]
		binary.BigEndian.PutUint32(dst[at:], uint32(size))
		src = src[n:]
	}
	return dst
}
