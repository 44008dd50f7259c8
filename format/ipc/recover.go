package ipc

import (
	"cmp"
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/region"
)

// recoverFile opens a file whose footer is damaged or gone as the stream that it begins with: a footer only
// repeats what stands in front of every message. So is one whose footer is whole but for places that are wrong,
// and one whose beginning is overwritten, which its end says is a file. Streams, and files with a footer, are
// read as they are; which batches are lost shows when they are read.
func recoverFile(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	whole, err := open(ctx, t, o)
	if err == nil {
		err = whole.(*reader).misled(ctx)
		if err == nil {
			return whole, nil, nil
		}
		whole.Close()
	}
	if !errors.Is(err, fault.Corrupt) {
		return nil, nil, err
	}
	s, serr := openSource(ctx, t, o.Limits)
	if serr != nil {
		return nil, nil, serr
	}
	r := &reader{source: s, target: t, lost: true}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, nil, err
	}
	return r, []region.Finding{finding("arrow.footer", t.Name, [2]int64{-1, -1}, err)}, nil
}

// misled is an error if the footer leads to something that is no batch, or not to all, though the messages
// themselves, one behind the other, are whole; and if its schema is not the one in front of them: who reads the
// file without recovery has the footer's.
func (r *reader) misled(ctx context.Context) error {
	if !r.file {
		return nil
	}
	if r.differs != nil {
		return r.differs
	}
	var first error
	for i := range r.foot.Batches {
		_, err := r.block(ctx, i)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		first = cmp.Or(first, err)
	}
	batches := 0
	for off := r.after; ; {
		m, end, err := r.next(ctx, off, 0)
		switch {
		case err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported):
			return err
		case err != nil || m != nil && m.Kind != flat.RecordBatch && m.Kind != flat.Dictionary:
			return ctx.Err() // then the message is damaged, or both
		case m != nil && m.Kind == flat.RecordBatch:
			batches++
		case m == nil && batches > len(r.foot.Batches):
			return fault.Corruptf(r.span(r.base, r.size()), "footer.recordBatches",
				"%d are named, %d follow each other", len(r.foot.Batches), batches)
		case m == nil && batches == len(r.foot.Batches):
			return first
		case m == nil:
			return nil
		}
		off = end
	}
}
