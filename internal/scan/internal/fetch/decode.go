package fetch

import (
	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// Decode calls the format's decoder and enforces its contract: exactly N entries, no trace of the page after an error
// (see vec.Vector.Rollback: not even in what the previous page shares with this one), and no panic. A panic is a bug of
// ours, and is reported as one with its place.
func Decode(c format.Chunk, t *format.Task, dst *vec.Vector) (err error) {
	before, mark := dst.Len(), dst.Mark()
	defer func() {
		if p := recover(); p != nil {
			e := *fault.Panicked(p, "decoding")
			e.At = PlaceOf(t.Page)
			err = &e
		}
		if err != nil {
			dst.Rollback(mark)
		}
	}()
	if err := c.Decode(t, dst); err != nil {
		return err
	}
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
