package cfile

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"stoa/fault"
)

// The footer of a file has the id of its set. If the footer is lost, the blocks may belong to another table although
// their checksums match. So the setFile has marks for each file. The file, from the first byte to the footer, is
// divided into pieces, and the mark of a piece is its length in bytes (uvarint) and the lower 32 bits of its XXH3-64
// (little-endian). A piece is the header or some consecutive blocks, at least a 32nd as long as everything before it.
// Recovery of a file without a footer returns only blocks within pieces that match their marks.

// marker computes the marks of a file from the bytes written to it: the header, then one block per call of Write.
type marker struct {
	sums []byte
	h    *xxh3.Hasher
	at   int64 // offset at which the piece begins
	n    int64 // bytes of the piece so far
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

// marks ends the last piece and returns all marks.
func (m *marker) marks() []byte {
	if m.n > 0 {
		m.end()
	}
	return bytes.Clone(m.sums)
}

// intactRanges returns the byte ranges of a file whose pieces match the marks, with adjacent ranges merged. It stops at
// a mark that is truncated or reaches beyond the file.
func intactRanges(data, marks []byte) (out []fault.Span) {
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
