package read

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/page"
	"stoa/vec"
)

// StoredPages decodes single data pages of a chunk, with values in their stored form and the levels of all entries.
type StoredPages struct{ p *pageReader }

// StoredPages opens a chunk.
func (r *Reader) StoredPages(ctx context.Context, group, leaf int) (*StoredPages, error) {
	p, err := r.asStored(ctx, group, leaf)
	if err != nil {
		return nil, err
	}
	return &StoredPages{p}, nil
}

// Vector returns a new vector into which pages can be decoded.
func (s *StoredPages) Vector() (*vec.Vector, error) { return vec.New(s.p.typ, memory.DefaultAllocator) }

// Dict returns the chunk's dictionary; nil if it has none.
func (s *StoredPages) Dict() *vec.Vector { return s.p.dict }

// Page decodes data page i into v, replacing its contents.
func (s *StoredPages) Page(ctx context.Context, i int, v *vec.Vector) error {
	v.Reset()
	s.p.c.i = i
	if _, err := s.p.next(ctx, v); err != nil {
		return err
	}
	return v.Plain()
}

// Parse decodes a data page with the given number of entries whose bytes are not in the file.
func (s *StoredPages) Parse(b []byte, entries int64, v *vec.Vector) error {
	v.Reset()
	s.p.arena.Reset()
	at := fault.Span{Len: int64(len(b))}
	own := page.PageRef{At: at, Values: entries, First: -1, Rows: -1}
	t := format.Task{Page: format.Page{First: -1, Rows: -1, Entries: entries, Spans: []fault.Span{at}, Own: &own},
		N: entries, Bytes: [][]byte{b}, Dict: s.p.dict, Scratch: &s.p.arena, Limits: s.p.c.t.r.Limits}
	if err := s.p.c.Decode(&t, v); err != nil {
		return err
	}
	return v.Plain()
}
