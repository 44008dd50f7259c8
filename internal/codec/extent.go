package codec

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zlib"
)

// Extent returns the number of bytes at the beginning of b that are the compressed form of raw bytes, for blocks whose
// stored size was lost: blocks of "lz4", "snappy" and "zlib" show where they end. It returns -1 if b does not begin
// with such a block or the method is another one.
func Extent(name string, b []byte, raw int) int {
	switch name {
	case "lz4":
		return lz4Extent(b, raw)
	case "snappy":
		return snappyExtent(b, raw)
	case "zlib":
		return zlibExtent(b, raw)
	}
	return -1
}

// lz4Extent walks the sequences of an LZ4 block.
func lz4Extent(b []byte, raw int) int {
	at, out := 0, 0
	more := func(n int) int { // a length of 15 continues in the bytes that follow
		for at < len(b) {
			x := b[at]
			at++
			if n += int(x); x != 255 || n > raw {
				return n
			}
		}
		return raw + 1
	}
	for at < len(b) {
		token := b[at]
		at++
		lit := int(token >> 4)
		if lit == 15 {
			lit = more(lit)
		}
		if lit > len(b)-at || out+lit > raw {
			return -1
		}
		at += lit
		if out += lit; out == raw {
			return at
		}
		if at+2 > len(b) {
			return -1
		}
		back := int(binary.LittleEndian.Uint16(b[at:]))
		at += 2
		match := int(token & 15)
		if match == 15 {
			match = more(match)
		}
		if back == 0 || back > out || out+match+4 > raw {
			return -1
		}
		out += match + 4
	}
	return -1
}

// snappyExtent walks the elements of a Snappy block.
func snappyExtent(b []byte, raw int) int {
	v, at := binary.Uvarint(b)
	if at <= 0 || v != uint64(raw) {
		return -1
	}
	for out := 0; out < raw; {
		if at >= len(b) {
			return -1
		}
		tag := int(b[at])
		at++
		n := tag>>2 + 1
		switch tag & 3 {
		case 0:
			if n > 60 {
				k := n - 60
				if at+k > len(b) {
					return -1
				}
				n = 0
				for i := range k {
					n |= int(b[at+i]) << (8 * i)
				}
				n++
				at += k
			}
			at += n
		case 1:
			n = tag>>2&7 + 4
			at++
		case 2:
			at += 2
		case 3:
			at += 4
		}
		if out += n; out > raw || at > len(b) {
			return -1
		}
	}
	return at
}

// zlibExtent inflates a stream, which marks its own end.
func zlibExtent(b []byte, raw int) int {
	if len(b) < 2 || b[0]&15 != 8 || (int(b[0])<<8|int(b[1]))%31 != 0 {
		return -1
	}
	in := bytes.NewReader(b)
	z, err := zlib.NewReader(in)
	if err != nil {
		return -1
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, int64(raw)+1))
	if err != nil || n != int64(raw) {
		return -1
	}
	return len(b) - in.Len()
}
