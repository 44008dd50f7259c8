package ipc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

// endMark follows the last message of a file, right before its footer.
const endMark = mark + "\x00\x00\x00\x00"

// checkMoved returns an error if bytes were inserted into message b of a file, or removed from it: b begins where the
// footer states, and none of the structures after it does. If one of them is in place, the damage between is of another
// kind.
func (r *reader) checkMoved(ctx context.Context, b flat.Block) error {
	i, _ := slices.BinarySearchFunc(r.footerBlocks, b.Off+1,
		func(x flat.Block, off int64) int { return cmp.Compare(x.Off, off) })
	later, last := r.footerBlocks[i:], b
	for _, x := range later {
		if in, err := r.inPlace(ctx, x); in || err != nil {
			return err
		}
		last = x
	}
	moved, err := r.endMoved(ctx, last)
	if err != nil || !moved {
		return err
	}
	return fault.Corruptf(r.span(r.base+b.Off, b.End()-b.Off), "message", "bytes were inserted or removed: "+
		"nothing after it is where the footer has it (%d messages, end mark)", len(later))
}

// inPlace reports whether a message begins where the footer states. One of the two words of its prefix may be damaged.
func (r *reader) inPlace(ctx context.Context, b flat.Block) (bool, error) {
	var p [8]byte
	if n, err := r.fill(ctx, p[:], r.base+b.Off); n < len(p) {
		if err == errEnd {
			err = nil
		}
		return false, err
	}
	first, second := binary.LittleEndian.Uint32(p[:]), binary.LittleEndian.Uint32(p[4:])
	return string(p[:4]) == mark || second == uint32(b.Meta-8) || first == uint32(b.Meta-4), nil
}

// endMoved reports whether the end mark right before the footer is not where the last message ends. A file without an
// end mark there proves nothing.
func (r *reader) endMoved(ctx context.Context, last flat.Block) (bool, error) {
	foot, _, err := r.footerAt(ctx)
	if err != nil || r.base+last.End() == foot-int64(len(endMark)) {
		return false, err
	}
	var p [len(endMark)]byte
	err = r.readFull(ctx, p[:], foot-int64(len(endMark)), "footer")
	return err == nil && string(p[:]) == endMark, err
}

// chain returns the offsets of a file's record batches by walking from message to message up to the end; nil if a
// message is damaged. Either all prefixes have a mark, or none; any other bytes are no message.
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

// checkUnnamed returns an error if the footer of a file, which begins at foot, does not list all record batches among
// the messages.
func (r *reader) checkUnnamed(ctx context.Context, foot int64) error {
	const minMessage = 64 // bytes
	room, at := false, r.after-r.base
	for _, b := range append(slices.Clip(r.footerBlocks), flat.Block{Off: foot - r.base}) {
		room = room || b.Off-at >= minMessage
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
		"%d are named, the file has %d", len(named), len(batches))
}

// checkFooter returns an error if the footer lists something that is not a batch although the messages themselves are
// intact.
func (r *reader) checkFooter(ctx context.Context) error {
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
		return err // a message is damaged, or both are
	}
	return cmp.Or(err, first)
}
