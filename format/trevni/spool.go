package trevni

import (
	"context"
	"io"
	"sync"

	"stoa/store"
)

// spool keeps finished blocks until the file can be put together, since a file has its columns one behind the other and counts in
// front: in memory up to a bound, then in a scratch file. So a file is never held in memory as a whole, and its stored bytes are written
// twice if there are many of them.
type spool struct {
	ctx  context.Context
	sink store.Sink
	mem  []*segment
	disk store.Scratch
	size int64
}

// spoolMemory is how much of a file is kept in memory, segmentSize in how large pieces.
const (
	spoolMemory = 128 << 20
	segmentSize = 1 << 20
)

type segment [segmentSize]byte

var segments = sync.Pool{New: func() any { return new(segment) }}

// add keeps the concatenation of parts and says where.
func (s *spool) add(parts ...[]byte) (at int64, err error) {
	at = s.size
	for _, p := range parts {
		for len(p) > 0 && s.size < spoolMemory {
			if s.size == int64(len(s.mem))*segmentSize {
				s.mem = append(s.mem, segments.Get().(*segment))
			}
			n := copy(s.mem[len(s.mem)-1][s.size%segmentSize:], p)
			s.size += int64(n)
			p = p[n:]
		}
		if len(p) == 0 {
			continue
		}
		if s.disk == nil {
			if s.disk, err = s.sink.Scratch(s.ctx); err != nil {
				return 0, err
			}
		}
		if _, err := s.disk.Write(p); err != nil {
			return 0, err
		}
		s.size += int64(len(p))
	}
	return at, nil
}

// copy writes n bytes from at on to w. buf is for what comes from disk.
func (s *spool) copy(w io.Writer, at, n int64, buf *[]byte) error {
	for n > 0 && at < spoolMemory {
		b := s.mem[at/segmentSize][at%segmentSize:]
		b = b[:min(int64(len(b)), n)]
		if _, err := w.Write(b); err != nil {
			return err
		}
		at, n = at+int64(len(b)), n-int64(len(b))
	}
	for n > 0 {
		k := min(n, 1<<20)
		if int64(cap(*buf)) < k {
			*buf = make([]byte, k)
		}
		b := (*buf)[:k]
		if m, err := s.disk.ReadAt(b, at-spoolMemory); int64(m) < k {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		at, n = at+k, n-k
	}
	return nil
}

// reset forgets everything, for the next file.
func (s *spool) reset() error {
	for _, m := range s.mem {
		segments.Put(m)
	}
	s.mem, s.size = s.mem[:0], 0
	if s.disk == nil {
		return nil
	}
	err := s.disk.Close()
	s.disk = nil
	return err
}
