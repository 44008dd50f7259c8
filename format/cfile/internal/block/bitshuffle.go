package block

import (
	"strconv"

	"stoa/fault"
	"stoa/internal/enc/bitshuffle"
	"stoa/vec"
	"stoa/wire"
)

const (
	shuffledHead = 20
	shuffleChunk = 8192   // bytes of a chunk, provided that they hold at least 128 elements
	shuffleSlack = 8 * 16 // bytes for the padding of up to 7 elements
)

// parseShuffled reads a bitshuffle block of values of width bytes:
//
//	ordinal         u32
//	num_values      u32
//	size            u32, of all, this header included
//	padded          u32, num_values rounded up to a multiple of 8
//	element_size    u32: width; in blocks of uint32 (narrow) also 1 or 2
//	chunks          see package bitshuffle
func parseShuffled(c *wire.Cursor, width int, narrow bool) (v values) {
	v.Form = formShuffled
	start := c.Pos()
	v.Ordinal = c.U32("ordinal")
	v.Count = int(c.U32("num_values"))
	size := c.U32("size")
	v.padded = int(c.U32("padded"))
	v.elem = int(c.U32("element_size"))
	switch {
	case c.Err() != nil:
		return v
	case int64(size) != int64(c.Left())+shuffledHead:
		c.Fail(start+8, 4, "size", "expected the size of the block, %d, found %d", c.Left()+shuffledHead, size)
	case v.padded != (v.Count+7)&^7:
		c.Fail(start+12, 4, "padded", "expected %d for %s, found %d", (v.Count+7)&^7, fault.Count(v.Count, "value"),
			v.padded)
	case v.elem != width && !(narrow && (v.elem == 1 || v.elem == 2)):
		c.Fail(start+16, 4, "element_size", "%d for values of %d bytes", v.elem, width)
	case int64(v.padded)*int64(v.elem) > 255*int64(c.Left()):
		c.Fail(start+4, 4, "num_values", "%s in %d bytes: LZ4 compresses by at most 255",
			fault.Count(v.Count, "value"), c.Left())
	}
	v.data, v.At = takeRest(c, "chunks", int64(c.Left()))
	return v
}

// unshuffle skips skip values and decodes the next n to the front of dst, whose spare capacity is used for padding if
// it suffices.
func (v *values) unshuffle(dst []byte, skip, n, width int, a *vec.Arena) error {
	if v.elem != width {
		return v.unshuffleNarrow(As[uint32](dst, n), skip, n, a)
	}
	if skip == 0 && n == v.Count && v.padded*width <= cap(dst) {
		used, err := bitshuffle.Decode(dst[:v.padded*width], v.data, width)
		if err == nil && used != len(v.data) {
			err = fault.Rel(used, len(v.data)-used, "chunks", "%d bytes are left", len(v.data)-used)
		}
		return err
	}
	return v.unshuffleSome(dst[:n*width], skip, n, a)
}

// unshuffleSome decodes chunk by chunk, and only the chunks that hold some of the n values after the first skip.
func (v *values) unshuffleSome(dst []byte, skip, n int, a *vec.Arena) error {
	elems := max(128, shuffleChunk/v.elem&^7)
	at := 0
	var spare []byte
	for i, from := 0, 0; from < v.padded && from < skip+n; i, from = i+1, from+elems {
		m := min(elems, v.padded-from)
		if from+m <= skip {
			size, err := chunkSize(v.data, at, i)
			if err != nil {
				return err
			}
			at += 4 + size
			continue
		}
		lo, hi := max(from, skip), min(from+m, skip+n)
		out := dst[(lo-skip)*v.elem:]
		whole := lo == from && hi == from+m
		if whole {
			out = out[:m*v.elem]
		} else {
			if spare == nil {
				spare = a.Bytes(elems * v.elem)
			}
			out = spare[:m*v.elem]
		}
		used, err := bitshuffle.Decode(out, v.data[at:], v.elem)
		if err != nil {
			return Relative(err, at, "chunk["+strconv.Itoa(i)+"]")
		}
		at += used
		if !whole {
			copy(dst[(lo-skip)*v.elem:(hi-skip)*v.elem], out[(lo-from)*v.elem:])
		}
	}
	if skip+n == v.Count && at != len(v.data) {
		return fault.Rel(at, len(v.data)-at, "chunks", "%d bytes are left", len(v.data)-at)
	}
	return nil
}

// chunkSize returns the size in bytes of chunk i, which begins at offset at. The four bytes of the size itself are not
// counted.
func chunkSize(data []byte, at, i int) (int, error) {
	if len(data)-at >= 4 {
		d := data[at:]
		size := uint64(d[0])<<24 | uint64(d[1])<<16 | uint64(d[2])<<8 | uint64(d[3])
		if size <= uint64(len(d)-4) {
			return int(size), nil
		}
	}
	return 0, fault.Rel(at, len(data)-at, "chunk["+strconv.Itoa(i)+"].size",
		"the chunk does not fit in the %d bytes that are left", len(data)-at)
}

// unshuffleNarrow decodes elements of one or two bytes into four.
func (v *values) unshuffleNarrow(dst []uint32, skip, n int, a *vec.Arena) error {
	narrow := a.Bytes(n*v.elem + shuffleSlack)
	w := *v
	if err := w.unshuffle(narrow[:n*v.elem], skip, n, v.elem, a); err != nil {
		return err
	}
	if v.elem == 1 {
		for i, x := range narrow[:len(dst)] {
			dst[i] = uint32(x)
		}
		return nil
	}
	for i, x := range As[uint16](narrow, n)[:len(dst)] {
		dst[i] = uint32(x)
	}
	return nil
}
