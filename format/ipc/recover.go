package ipc

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/region"
)

// recoverFile opens a file whose footer is damaged or gone as the stream that it begins with: a footer only
// repeats what stands in front of every message. So is one whose footer is whole but for places that are wrong,
// and one whose beginning is overwritten, which its end says is a file. Streams, but for a body that their schema
// claims, and files with a footer are read as they are; which batches are lost shows when they are read.
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
	s.bodiless = true
	r := &reader{source: s, target: t, lost: true, partial: o.Opts["partial"] == "true"}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, nil, err
	}
	code := "arrow.footer"
	if !r.lost {
		code = "arrow.open"
	}
	return r, []region.Finding{finding(code, t.Name, [2]int64{-1, -1}, err)}, nil
}

// misled is an error if the footer leads to something that is no batch though the messages themselves, one behind
// the other, are whole. That it leads to all of them was seen in opening the file.
func (r *reader) misled(ctx context.Context) error {
	if !r.file {
		return nil
	}
	var first error
	for i := range r.foot.Batches {
		_, err := r.block(ctx, i)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		first = cmp.Or(first, err)
	}
	if first == nil {
		return nil
	}
	batches, err := r.chain(ctx)
	if len(batches) != len(r.foot.Batches) {
		return err // then the message is damaged, or both
	}
	return cmp.Or(err, first)
}

// unnamed is an error if the footer of a file, which begins at foot, leaves out batches that stand among the
// messages, and names no others instead. Messages are only looked at if those that are named leave room for more.
func (r *reader) unnamed(ctx context.Context, foot int64) error {
	const least = 64 // bytes of a message
	room, at := false, r.after-r.base
	for _, b := range append(slices.Clip(r.named), flat.Block{Off: foot - r.base}) {
		room = room || b.Off-at >= least
		at = max(at, b.End())
	}
	if !room {
		return nil
	}
	batches, err := r.chain(ctx)
	named, there := map[int64]bool{}, 0
	for _, b := range r.foot.Batches {
		named[r.base+b.Off] = true
	}
	for _, off := range batches {
		if named[off] {
			there++
		}
	}
	if err != nil || len(batches)-there <= len(named)-there {
		return err
	}
	return fault.Corruptf(r.span(r.base, r.size()), "footer.recordBatches",
		"%d are named, %d follow each other", len(named), len(batches))
}

// chain is where the record batches of a file begin, one message behind the other up to the end; none if one of
// them is damaged. All have a mark in front of their length, or none has: what is 4 bytes off is no message.
func (r *reader) chain(ctx context.Context) (batches []int64, err error) {
	prefix := int64(0)
	for off := r.after; ; {
		m, end, err := r.next(ctx, off, 0)
		if err == nil && m != nil {
			if prefix != 0 && m.off-off != prefix {
				return nil, nil
			}
			prefix = m.off - off
		}
		switch {
		case err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported):
			return nil, err
		case err != nil || m != nil && m.Kind != flat.RecordBatch && m.Kind != flat.Dictionary:
			return nil, ctx.Err()
		case m == nil:
			return batches, nil
		case m.Kind == flat.RecordBatch:
			batches = append(batches, off)
		}
		off = end
	}
}
