package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"

	"github.com/zeebo/xxh3"

	"stoa/fault"
	"stoa/format"
)

// The footer of a file has the id of its set. If the footer is lost, the blocks may belong to another table although
// their checksums match. So the setFile has marks for each file. The file, from the first byte to the footer, is
// divided into pieces, and the mark of a piece is its length in bytes (uvarint) and the lower 32 bits of its XXH3-64
// (little-endian). A piece is the header or some consecutive blocks, at least a 32nd as long as everything before it.
// Recovery of a file whose footer is lost or damaged returns only blocks within pieces that match their marks.

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

// piece is a piece of a file and the lower 32 bits of its checksum.
type piece struct {
	fault.Span
	sum uint32
}

// pieces returns the pieces that marks state of a file of size bytes. It stops at a mark that is truncated or reaches
// beyond the file.
func pieces(marks []byte, size int64) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for at := int64(0); ; {
			n, k := binary.Uvarint(marks)
			if k <= 0 || len(marks) < k+4 || n > uint64(size-at) {
				return
			}
			p := piece{fault.Span{Off: at, Len: int64(n)}, binary.LittleEndian.Uint32(marks[k:])}
			if !yield(p) {
				return
			}
			at, marks = p.End(), marks[k+4:]
		}
	}
}

// intactRanges returns the byte ranges of the file whose pieces match the marks, with adjacent ranges merged. The error
// is that of reading.
func (f *tableFile) intactRanges(ctx context.Context, marks []byte) (out []fault.Span, err error) {
	buf := make([]byte, min(f.At.Len, 256<<10))
	for p := range pieces(marks, f.At.Len) {
		h := xxh3.New()
		for off := p.Off; off < p.End(); off += int64(len(buf)) {
			at := f.At.Sub(off, min(int64(len(buf)), p.End()-off))
			if err := format.ReadFull(ctx, f.Src, at, "", buf[:at.Len]); err != nil {
				return nil, err
			}
			h.Write(buf[:at.Len])
		}
		if uint32(h.Sum64()) != p.sum {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].End() == p.Off {
			out[n].Len += p.Len
		} else {
			out = append(out, p.Span)
		}
	}
	return out, nil
}
