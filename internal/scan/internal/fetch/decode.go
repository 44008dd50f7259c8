package fetch

import (
	"context"
	"runtime"
	"runtime/debug"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// Decode decodes the first page, whose bytes Bytes returned, as the function Decode does. If they are those of a mapped
// file and cannot be looked at, because the file was cut short or the disk fails, the page is read instead, with the
// error that reading has.
func (p *Pager) Decode(ctx context.Context, t *format.Task, dst *vec.Vector) (err error) {
	pb := p.queue[0]
	mapped := pb.req != nil && pb.req.unmap != nil && pb.bytes != nil
	if mapped {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	before, mark := dst.Len(), dst.Mark()
	defer func() {
		r := recover()
		if mapped && faulted(r) {
			dst.Rollback(mark)
			if t.Bytes, err = p.alone(ctx, pb); err == nil {
				err = Decode(p.Chunk, t, dst)
			}
			return
		}
		err = settle(r, err, t, dst, mark)
	}()
	if err := p.Chunk.Decode(t, dst); err != nil {
		return err
	}
	return complete(t, dst, before)
}

// faulted reports whether a panic is that of memory that could not be looked at, rather than one of a nil pointer.
func faulted(p any) bool {
	err, ok := p.(runtime.Error)
	if !ok {
		return false
	}
	_, ok = err.(interface{ Addr() uintptr })
	return ok
}

// Decode calls the format's decoder and enforces its contract: exactly N entries, no trace of the page after an error
// (see vec.Vector.Rollback: not even in what the previous page shares with this one), and no panic. A panic is a bug of
// ours, and is reported as one with its place.
func Decode(c format.Chunk, t *format.Task, dst *vec.Vector) (err error) {
	before, mark := dst.Len(), dst.Mark()
	defer func() { err = settle(recover(), err, t, dst, mark) }()
	if err := c.Decode(t, dst); err != nil {
		return err
	}
	return complete(t, dst, before)
}

// settle returns the error of decoding, which may have panicked, and removes the page's traces after one.
func settle(panicked any, err error, t *format.Task, dst *vec.Vector, mark vec.Mark) error {
	if panicked != nil {
		e := *fault.Panicked(panicked, "decoding")
		e.At = PlaceOf(t.Page)
		err = &e
	}
	if err != nil {
		dst.Rollback(mark)
	}
	return err
}

// complete returns an error if dst did not get as many entries as were declared.
func complete(t *format.Task, dst *vec.Vector, before int) error {
	if got := int64(dst.Len() - before); t.N >= 0 && got != t.N {
		return fault.Corruptf(PlaceOf(t.Page), "", "the page has %d entries, %d were declared", got, t.N)
	}
	return nil
}

func PlaceOf(p format.Page) fault.Span {
	if len(p.Spans) == 0 {
		return fault.Span{}
	}
	return p.Spans[0]
}
