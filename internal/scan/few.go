package scan

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/vec"
)

// Look-ups want a few rows of a page, and the next one may want others of the same: such pages are kept decoded
// (Source.Pages).

// few reports whether the scan wants at most an eighth of page p's rows, so that it is worth keeping. Scans
// with a budget keep nothing, and those that are traced tell what they read.
func (s *stream) few(p format.Page, first int64) bool {
	spec := &s.run.plan.spec
	if s.run.src.Pages == nil || spec.Trace != nil || spec.Memory > 0 || p.Lost != nil || len(p.Spans) == 0 ||
		p.Entries != p.Rows {
		return false
	}
	var wanted int64
	for _, r := range s.pager.rows {
		wanted += r.Intersect(vec.Range{From: first, To: first + p.Rows}).Len()
	}
	return 8*wanted <= p.Rows
}

// someOf appends the rows [from, to) of page p, whose first row is first.
func (s *stream) someOf(ctx context.Context, p format.Page, first, from, to int64) error {
	v, err := s.kept(ctx, p)
	if err == nil {
		err = s.vec.Append(v, int(from-first), int(to-first), nil)
	}
	if err != nil {
		return s.losePage(p, first, from, err)
	}
	if to == first+p.Rows { // else it is looked at again in the next window
		s.pass(to)
	}
	return nil
}

// mostExpected is for how many rows memory is taken by a page's word alone.
const mostExpected = 1 << 20

// kept is the whole page, decoded now or before.
func (s *stream) kept(ctx context.Context, p format.Page) (*vec.Vector, error) {
	k := vec.CacheKey{Object: p.Spans[0].Object, Off: p.Spans[0].Off, Sub: p.Sub, Column: s.column}
	if v := s.run.src.Pages.Get(k); v != nil {
		return v, nil
	}
	v, err := vec.New(s.col.Type, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	bytes, err := s.pager.bytes(ctx)
	if err != nil {
		return nil, err
	}
	s.arena.Reset()
	t := format.Task{Page: p, N: p.Entries, Bytes: bytes, Dict: s.dict, Scratch: s.arena, Limits: s.run.src.Limits,
		NoVerify: s.run.src.NoVerify}
	v.Expect(int(min(p.Rows, mostExpected)))
	if err := decode(s.chunk, &t, v); err != nil {
		return nil, err
	}
	if err := v.Plain(); err != nil { // it is shared: nothing may have to be spelled out later
		return nil, err
	}
	s.run.src.Pages.Put(k, v)
	return v, nil
}
