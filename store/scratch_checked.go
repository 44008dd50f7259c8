package store

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// Checked returns a Scratch that keeps checksums of what was written, and fails if it reads anything else.
func Checked(s Scratch) Scratch { return &checked{Scratch: s} }

// checkedPage is how many bytes one checksum covers.
const checkedPage = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type checked struct {
	Scratch
	mu   sync.Mutex
	sums []uint32 // of each page; that of the last page is still growing
	size int64
	page []byte // the page that was read last
	no   int64  // number of page
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.Scratch.Write(p)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := p[:n]; len(b) > 0; {
		in := c.size % checkedPage
		if in == 0 {
			c.sums = append(c.sums, 0)
		}
		k := min(int64(len(b)), checkedPage-in)
		last := &c.sums[len(c.sums)-1]
		*last = crc32.Update(*last, castagnoli, b[:k])
		c.size += k
		b = b[k:]
	}
	return n, err
}

func (c *checked) ReadAt(p []byte, off int64) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) && off < c.size {
		b, err := c.load(off / checkedPage)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], b[off%checkedPage:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// load reads a page.
func (c *checked) load(no int64) ([]byte, error) {
	size := min(checkedPage, c.size-no*checkedPage)
	if c.page != nil && c.no == no && int64(len(c.page)) == size {
		return c.page, nil
	}
	if cap(c.page) < checkedPage {
		c.page = make([]byte, checkedPage)
	}
	b := c.page[:size]
	c.page = nil
	if n, err := c.Scratch.ReadAt(b, no*checkedPage); int64(n) < size {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("a temporary file: %w", err)
	}
	if crc32.Checksum(b, castagnoli) != c.sums[no] {
		return nil, fmt.Errorf("a temporary file gives other bytes back than were written, between %d and %d",
			no*checkedPage, no*checkedPage+size)
	}
	c.page, c.no = b, no
	return b, nil
}

// Strict returns a Sink that does not trust s: a short write is an error, and scratch files are Checked.
func Strict(s Sink) Sink { return strict{s} }

type strict struct{ Sink }

func (s strict) Create(ctx context.Context, name string) (Object, error) {
	o, err := s.Sink.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return strictObject{o}, nil
}

func (s strict) Scratch(ctx context.Context) (Scratch, error) {
	f, err := s.Sink.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	return Checked(f), nil
}

type strictObject struct{ Object }

func (o strictObject) Write(p []byte) (int, error) {
	n, err := o.Object.Write(p)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}
