package write

import (
	"io"

	"stoa/store"
)

// pieceSize is the unit of allocation for stored pages.
const pieceSize = 1 << 20

// workspace is memory that the columns share: only one of them makes a page at a time.
type workspace struct {
	scratch                 denseScratch
	codes                   []uint32
	body, compressed, spare []byte
	tried                   *dictionary // a dictionary that did not save bytes
	free                    [][]byte    // pieces
	piece                   int         // length of a piece in bytes
}

// dictionary returns an empty dictionary, d if it is not nil.
func (w *workspace) dictionary(d *dictionary, width int) *dictionary {
	if d == nil {
		d, w.tried = w.tried, nil
	}
	if d == nil {
		return newDictionary(width)
	}
	d.width = width
	d.reset()
	return d
}

// segment is a range of a temporary file.
type segment struct{ off, n int64 }

// spill is a temporary file for bytes that will be copied to the output later, so that they need not stay in memory.
type spill struct {
	open func() (store.Scratch, error) // nil if there is no temporary file
	file store.Scratch
	size int64
}

// add appends b.
func (s *spill) add(b []byte) (segment, error) {
	if s.file == nil {
		var err error
		if s.file, err = s.open(); err != nil {
			return segment{}, err
		}
	}
	at := segment{s.size, int64(len(b))}
	n, err := s.file.Write(b)
	s.size += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return at, err
}

// copyTo writes a segment to w.
func (s *spill) copyTo(w io.Writer, at segment) error {
	n, err := io.Copy(w, io.NewSectionReader(s.file, at.off, at.n))
	if err == nil && n < at.n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// end removes the file.
func (s *spill) end() error {
	f := s.file
	if s.file, s.size = nil, 0; f == nil {
		return nil
	}
	return f.Close()
}

// pieces are bytes to be written later: first the bytes in the temporary file, then those in memory. The latter are
// split into pieces so that appending does not move them.
type pieces struct {
	spilled []segment
	list    [][]byte
	size    int64 // total number of bytes
}

// add appends b.
func (p *pieces) add(b []byte, ws *workspace) {
	p.size += int64(len(b))
	if k := len(p.list) - 1; k >= 0 && cap(p.list[k])-len(p.list[k]) >= len(b) {
		p.list[k] = append(p.list[k], b...)
		return
	}
	const first = 4 << 10
	var to []byte
	switch k := len(ws.free) - 1; {
	case len(p.list) == 0 && len(b) <= first:
		to = make([]byte, 0, first)
	case len(b) > ws.piece:
		to = make([]byte, 0, len(b))
	case k >= 0:
		to, ws.free = ws.free[k][:0], ws.free[:k]
	default:
		to = make([]byte, 0, ws.piece)
	}
	p.list = append(p.list, append(to, b...))
}

// held returns the memory in bytes that they occupy.
func (p *pieces) held() (n int64) {
	for _, b := range p.list {
		n += int64(cap(b))
	}
	return n
}

// drop releases the memory.
func (p *pieces) drop(ws *workspace) {
	for _, b := range p.list {
		if cap(b) == ws.piece {
			ws.free = append(ws.free, b)
		}
	}
	clear(p.list)
	p.list = p.list[:0]
}

// spill moves the bytes in memory to the temporary file.
func (p *pieces) spill(s *spill) error {
	for _, b := range p.list {
		at, err := s.add(b)
		if err != nil {
			return err
		}
		p.spilled = append(p.spilled, at)
	}
	p.list = nil
	return nil
}

// writeTo writes everything to w.
func (p *pieces) writeTo(w io.Writer, s *spill) error {
	for _, at := range p.spilled {
		if err := s.copyTo(w, at); err != nil {
			return err
		}
	}
	for _, b := range p.list {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// reset empties p.
func (p *pieces) reset(ws *workspace) {
	p.drop(ws)
	p.spilled, p.size = p.spilled[:0], 0
}
