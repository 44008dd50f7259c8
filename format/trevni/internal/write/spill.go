package write

import (
	"context"
	"io"
	"sync"
	"unsafe"

	"stoa/store"
)

// The columns of a file follow one another, each preceded by its counts, so finished blocks are kept until the file
// ends: each column's blocks together, in memory up to a common limit, then in a scratch file. So a file is never
// entirely in memory, and the stored bytes of a large file are written twice. They are written in large segments, and
// blocks without compression are built in place.

// spillStore is the state shared by the spills of a file's columns.
type spillStore struct {
	ctx     context.Context
	sink    store.Sink
	segment int   // size in bytes of a segment in memory
	limit   int64 // maximum bytes of full segments in memory

	mu     sync.Mutex
	held   int64 // bytes in use of limit
	disk   store.Scratch
	onDisk int64
}

// spillMemory is the number of bytes of a file that are kept in memory, segmentSize the size of a segment if there are
// few columns.
const (
	spillMemory = 128 << 20
	segmentSize = 1 << 20
)

var segments = sync.Pool{New: func() any { return new([segmentSize]byte) }}

// segmentFor returns the segment size at which the segments being filled take at most half of the memory.
func segmentFor(columns int) int { return min(segmentSize, max(spillMemory/2/max(columns, 1), 64<<10)) }

// blockSpill is a column's finished blocks, in order.
type blockSpill struct {
	s     *spillStore
	parts []part
	tail  []byte // the segment being filled
	size  int64  // in bytes, of all blocks
}

// part is a full segment: in memory, or n bytes of the scratch file at at.
type part struct {
	mem []byte
	at  int64
	n   int64
}

// room returns an empty slice of capacity n or more for the next bytes.
func (p *blockSpill) room(n int) ([]byte, error) {
	if cap(p.tail)-len(p.tail) < n {
		if err := p.seal(); err != nil {
			return nil, err
		}
		switch {
		case n > p.s.segment || p.s.segment < segmentSize:
			p.tail = make([]byte, 0, max(n, p.s.segment))
		case p.size < segmentSize/4: // a small table takes little memory
			p.tail = make([]byte, 0, max(n, int(p.size)))
		default:
			p.tail = segments.Get().(*[segmentSize]byte)[:0]
		}
	}
	return p.tail[len(p.tail):len(p.tail):cap(p.tail)], nil
}

// sumRoom is the room for a checksum after a block that is built in place.
const sumRoom = 4

// place returns an empty slice of capacity n or more in which a block can be built, with room for front bytes before
// and at most sumRoom bytes after it.
func (p *blockSpill) place(front, n int) ([]byte, error) {
	b, err := p.room(front + n + sumRoom)
	if err != nil {
		return nil, err
	}
	return b[front:front:(cap(b) - sumRoom)], nil
}

// add appends front, data and back. data may have been built in place.
func (p *blockSpill) add(front, data, back []byte) error {
	n, at := len(front)+len(data)+len(back), len(p.tail)+len(front)
	inPlace := len(data) > 0 && at < cap(p.tail) && unsafe.SliceData(data) == unsafe.SliceData(p.tail[at:cap(p.tail)])
	if !inPlace {
		if _, err := p.room(n); err != nil {
			return err
		}
	}
	p.tail = append(p.tail, front...)
	if inPlace {
		p.tail = p.tail[:len(p.tail)+len(data)]
	} else {
		p.tail = append(p.tail, data...)
	}
	p.tail = append(p.tail, back...)
	p.size += int64(n)
	return nil
}

// seal ends the current segment. If the file takes more memory than the limit, the column's segments go to the scratch
// file.
func (p *blockSpill) seal() error {
	if len(p.tail) > 0 {
		p.parts = append(p.parts, part{mem: p.tail, n: int64(len(p.tail))})
	}
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += int64(len(p.tail))
	p.tail = nil
	if s.held <= s.limit {
		return nil
	}
	if s.disk == nil {
		var err error
		if s.disk, err = s.sink.Scratch(s.ctx); err != nil {
			return err
		}
	}
	for i := range p.parts {
		k := &p.parts[i]
		if k.mem == nil {
			continue
		}
		if _, err := s.disk.Write(k.mem); err != nil {
			return err
		}
		k.at = s.onDisk
		s.onDisk += k.n
		s.held -= k.n
		recycle(k.mem)
		k.mem = nil
	}
	return nil
}

func recycle(b []byte) {
	if cap(b) == segmentSize {
		segments.Put((*[segmentSize]byte)(b[:segmentSize]))
	}
}

// copy writes all blocks to w. buf is a buffer for parts that are in the scratch file.
func (p *blockSpill) copy(w io.Writer, buf *[]byte) error {
	for _, k := range p.parts {
		if k.mem == nil {
			if err := p.s.copy(w, k, buf); err != nil {
				return err
			}
		} else if _, err := w.Write(k.mem); err != nil {
			return err
		}
	}
	_, err := w.Write(p.tail)
	return err
}

// copy writes a part that is in the scratch file.
func (s *spillStore) copy(w io.Writer, k part, buf *[]byte) error {
	for at, n := k.at, k.n; n > 0; {
		b := min(n, segmentSize)
		if int64(cap(*buf)) < b {
			*buf = make([]byte, segmentSize)
		}
		if m, err := s.disk.ReadAt((*buf)[:b], at); int64(m) < b {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := w.Write((*buf)[:b]); err != nil {
			return err
		}
		at, n = at+b, n-b
	}
	return nil
}

// reset removes all blocks.
func (p *blockSpill) reset() {
	for _, k := range p.parts {
		recycle(k.mem)
	}
	recycle(p.tail)
	*p = blockSpill{s: p.s, parts: p.parts[:0]}
}

// reset closes the scratch file, before the next file.
func (s *spillStore) reset() error {
	s.held, s.onDisk = 0, 0
	if s.disk == nil {
		return nil
	}
	err := s.disk.Close()
	s.disk = nil
	return err
}
