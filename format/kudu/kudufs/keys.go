package kudufs

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"stoa/internal/sorted"
	"stoa/store"
)

// keySpool is a temporary file with the encoded keys of all rowsets, so that at the end those of rowsets with
// overlapping ranges can be compared: Kudu fails on a key that is live in two rowsets.
type keySpool struct {
	file store.Scratch
	w    *bufio.Writer
	off  int64
}

func newKeySpool(f store.Scratch) *keySpool {
	return &keySpool{file: f, w: bufio.NewWriterSize(f, 64<<10)}
}

// keyRun is the part of the file with the keys of a rowset: of each, a varint length and the bytes.
type keyRun struct {
	off, size   int64
	first, last []byte
}

// add appends the keys of a rowset, which are sorted.
func (s *keySpool) add(keys [][]byte) (r keyRun, err error) {
	r = keyRun{off: s.off, first: bytes.Clone(keys[0]), last: bytes.Clone(keys[len(keys)-1])}
	var head [binary.MaxVarintLen64]byte
	for _, k := range keys {
		n := binary.PutUvarint(head[:], uint64(len(k)))
		_, err1 := s.w.Write(head[:n])
		_, err2 := s.w.Write(k)
		if err := errors.Join(err1, err2); err != nil {
			return r, err
		}
		r.size += int64(n + len(k))
	}
	s.off += r.size
	return r, nil
}

// duplicate is a key that several of the rowsets have; nil if there is none.
func (s *keySpool) duplicate(runs []keyRun) ([]byte, error) {
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	runs = slices.Clone(runs)
	sorted.By(runs, func(a, b keyRun) int { return bytes.Compare(a.first, b.first) })
	for len(runs) > 0 {
		n, end := 1, runs[0].last // the runs that overlap, and their last key
		for ; n < len(runs) && bytes.Compare(runs[n].first, end) <= 0; n++ {
			if bytes.Compare(runs[n].last, end) > 0 {
				end = runs[n].last
			}
		}
		if key, err := s.merged(runs[:n]); key != nil || err != nil {
			return key, err
		}
		runs = runs[n:]
	}
	return nil, nil
}

// merged merges the keys of overlapping rowsets, and returns the first that occurs twice; nil if none does.
func (s *keySpool) merged(runs []keyRun) ([]byte, error) {
	if len(runs) == 1 {
		return nil, nil
	}
	var h cursors
	for _, r := range runs {
		c := &cursor{r: bufio.NewReaderSize(io.NewSectionReader(s.file, r.off, r.size), 32<<10)}
		if err := c.next(); err != nil {
			return nil, err
		}
		h = append(h, c)
	}
	heap.Init(&h)
	var last []byte
	for first := true; len(h) > 0; first = false {
		c := h[0]
		if !first && bytes.Equal(last, c.key) {
			return c.key, nil
		}
		last = append(last[:0], c.key...)
		switch err := c.next(); {
		case err == io.EOF:
			heap.Pop(&h)
		case err != nil:
			return nil, err
		default:
			heap.Fix(&h, 0)
		}
	}
	return nil, nil
}

// cursor is a position in the keys of a rowset.
type cursor struct {
	r   *bufio.Reader
	key []byte
}

// next goes to the next key; io.EOF after the last.
func (c *cursor) next() error {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return err
	}
	c.key = slices.Grow(c.key[:0], int(n))[:n]
	_, err = io.ReadFull(c.r, c.key)
	return err
}

// cursors is a heap by key.
type cursors []*cursor

func (h cursors) Len() int           { return len(h) }
func (h cursors) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) < 0 }
func (h cursors) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)        { *h = append(*h, x.(*cursor)) }
func (h *cursors) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
