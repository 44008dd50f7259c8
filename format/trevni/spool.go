package trevni

import (
	"context"
	"io"

	"stoa/store"
)

// spool keeps finished blocks until the file can be put together, since a file has its columns one behind the other and counts in
// front: in memory up to a bound, then in a scratch file. So a file is never held in memory as a whole, and its stored bytes are written
// twice if there are many of them.
type spool struct {
	ctx  context.Context
	sink store.Sink
	mem  []byte
	disk store.Scratch
	size int64
}

// spoolMemory is how much of a file is kept in memory.
const spoolMemory = 32 << 20

// add keeps the concatenation of parts and says where.
func (s *spool) add(parts ...[]byte) (at int64, err error) {
	at = s.size
	for _, p := range parts {
		s.size += int64(len(p))
		if s.disk == nil && len(s.mem)+len(p) <= spoolMemory {
			s.mem = append(s.mem, p...)
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
	}
	return at, nil
}

// copy writes n bytes from at on to w. buf is for what comes from disk.
func (s *spool) copy(w io.Writer, at, n int64, buf *[]byte) error {
	if inMem := min(n, int64(len(s.mem))-at); inMem > 0 {
		if _, err := w.Write(s.mem[at : at+inMem]); err != nil {
			return err
		}
		at, n = at+inMem, n-inMem
	}
	for n > 0 {
		k := min(n, 1<<20)
		if int64(cap(*buf)) < k {
			*buf = make([]byte, k)
		}
		b := (*buf)[:k]
		if m, err := s.disk.ReadAt(b, at-int64(len(s.mem))); int64(m) < k {
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
	s.mem, s.size = s.mem[:0], 0
	if s.disk == nil {
		return nil
	}
	err := s.disk.Close()
	s.disk = nil
	return err
}
