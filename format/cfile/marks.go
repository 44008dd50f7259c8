package cfile

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"stoa/fault"
)

// The end of a file says whose it is. Where that is lost, the blocks before it may be another table's, and be whole
// with checksums and all. So the setFile has marks of each file: of each piece of it, from the first byte to its
// footer, how long it is (uvarint), and the lower 32 bits of its XXH3-64, little-endian. A piece is header or blocks
// that follow each other, about a 32nd of what is before them. Of a file without an end those blocks alone are given
// that lie in pieces which are as they were written.

// marker makes the marks of what is written to it: the header, and block by block.
type marker struct {
	sums []byte
	h    *xxh3.Hasher
	at   int64 // where the piece begins
	n    int64 // bytes of it
}

func (m *marker) Write(b []byte) (int, error) {
	if m.h == nil {
		m.h = xxh3.New()
	}
	m.h.Write(b)
	if m.n += int64(len(b)); m.n >= m.at/32 {
		m.end()
	}
	return len(b), nil
}

// end ends a piece.
func (m *marker) end() {
	m.sums = binary.AppendUvarint(m.sums, uint64(m.n))
	m.sums = binary.LittleEndian.AppendUint32(m.sums, uint32(m.h.Sum64()))
	m.h.Reset()
	m.at, m.n = m.at+m.n, 0
}

// marks are those of all that was written so far.
func (m *marker) marks() []byte {
	if m.n > 0 {
		m.end()
	}
	return bytes.Clone(m.sums)
}

// asWritten are the ranges of the bytes of a file whose pieces have the marks.
func asWritten(data, marks []byte) (out []fault.Span) {
	for at := int64(0); ; {
		size, k := binary.Uvarint(marks)
		if k <= 0 || len(marks) < k+4 || size > uint64(int64(len(data))-at) {
			return out
		}
		s := fault.Span{Off: at, Len: int64(size)}
		if uint32(xxh3.Hash(data[at:s.End()])) == binary.LittleEndian.Uint32(marks[k:]) {
			if n := len(out) - 1; n >= 0 && out[n].End() == at {
				out[n].Len += s.Len
			} else {
				out = append(out, s)
			}
		}
		at, marks = s.End(), marks[k+4:]
	}
}
