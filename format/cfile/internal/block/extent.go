package block

import (
	"encoding/binary"

	"stoa/internal/enc/groupvarint"
)

// The size of a block is in the index, not in the block. But the end of a block of any encoding or compression follows
// from its structure, so a block can be measured if only its beginning is known. These functions return the size in
// bytes of the structure at the beginning of b, or -1 if b does not begin with one.

// DataExtent measures a data block that is not compressed.
func DataExtent(b []byte, f *Footer) int {
	head := 0
	switch {
	case f.Array():
		if head = arraysExtent(b); head < 0 {
			return -1
		}
	case f.Nullable:
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return -1
		}
		m := sizedExtent(b[n:])
		if m < 0 {
			return -1
		}
		head = n + m
	}
	n := ValuesExtent(b[head:], f.Type, f.Encoding)
	if n < 0 || n > len(b)-head {
		return -1
	}
	return head + n
}

// sizedExtent measures a varint and as many bytes as its value.
func sizedExtent(b []byte) int {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(len(b)-n) {
		return -1
	}
	return n + int(v)
}

// arraysExtent measures the header of an array block.
func arraysExtent(b []byte) int {
	at := 0
	for range 2 {
		_, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return -1
		}
		at += n
	}
	for range 3 {
		n := sizedExtent(b[at:])
		if n < 0 {
			return -1
		}
		at += n
	}
	return at
}

// ValuesExtent measures encoded values.
func ValuesExtent(b []byte, t Type, e Encoding) int {
	if e == GroupVarint { // an empty one has five bytes
		return groupsExtent(b)
	}
	if len(b) < 8 {
		return -1
	}
	count := int64(Le32(b))
	switch e {
	case Plain:
		switch {
		case t.IsBinary():
			return PlainBinaryExtent(b)
		case t == Bool:
			return UpTo(b, 8+(count+7)/8)
		}
		return UpTo(b, 8+count*int64(t.Width()))
	case Dict:
		n := -1
		if Le32(b) == DictCodes && len(b) >= 4+shuffledHead {
			n = UpTo(b[4:], int64(Le32(b[12:])))
		} else if Le32(b) == DictPlain {
			n = PlainBinaryExtent(b[4:])
		}
		if n < 0 {
			return -1
		}
		return 4 + n
	case BitShuffle:
		if len(b) < shuffledHead || Le32(b[8:]) < shuffledHead {
			return -1
		}
		return UpTo(b, int64(Le32(b[8:])))
	case RLE:
		width := 8 * t.Width()
		if t == Bool {
			width = 1
		}
		return runsExtent(b, count, width)
	case Prefix:
		return prefixExtent(b)
	}
	return -1
}

// UpTo returns n if b has at least n bytes, else -1.
func UpTo(b []byte, n int64) int {
	if n > int64(len(b)) {
		return -1
	}
	return int(n)
}

// PlainBinaryExtent measures a plain block of strings.
func PlainBinaryExtent(b []byte) int {
	if len(b) < plainBinaryHead {
		return -1
	}
	count, at := int64(Le32(b[4:])), int64(Le32(b[8:]))
	if at < plainBinaryHead || at > int64(len(b)) || (count+3)/4*5 > int64(len(b))-at {
		return -1
	}
	return groupRun(b, int(at), count)
}

// groupRun is the offset after the group varints of count values that begin at at.
func groupRun(b []byte, at int, count int64) int {
	for i := int64(0); i < count; i += 4 {
		_, n, err := groupvarint.Decode4(b[at:])
		if err != nil {
			return -1
		}
		at += n
	}
	return at
}

// groupsExtent measures a group-varint block.
func groupsExtent(b []byte) int {
	g, n, err := groupvarint.Decode4(b)
	if err != nil || (int64(g[0])+3)/4*5 > int64(len(b)-n) {
		return -1
	}
	return groupRun(b, n, int64(g[0]))
}

// prefixExtent measures a prefix block.
func prefixExtent(b []byte) int {
	g, at, err := groupvarint.Decode4(b)
	if err != nil || g[0] == 0 || g[2] == 0 || uint64(g[0]) > uint64(len(b)/2) {
		return -1
	}
	for range g[0] {
		_, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return -1
		}
		m := sizedExtent(b[at+n:])
		if m < 0 {
			return -1
		}
		at += n + m
	}
	restarts := int64(g[0]-1) / int64(g[2])
	end := int64(at) + 4*restarts + 4
	if end > int64(len(b)) || int64(Le32(b[end-4:])) != restarts {
		return -1
	}
	return int(end)
}

// runsExtent measures count values of width bits after a header of eight bytes.
func runsExtent(b []byte, count int64, width int) int {
	at := 8
	for count > 0 {
		head, n := binary.Uvarint(b[at:])
		k := int64(head >> 1)
		if n <= 0 || k == 0 || head > 1<<32-1 {
			return -1
		}
		at += n
		size := int64(width+7) / 8
		if head&1 != 0 {
			k *= 8
			size = (min(k, count)*int64(width) + 7) / 8
			if k < count {
				size = k * int64(width) / 8
			}
		}
		if size > int64(len(b)-at) {
			return -1
		}
		at += int(size)
		count -= k
	}
	return at
}
