package ipc

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

// endMark is what ends the messages of a file, just before its footer.
const endMark = mark + "\x00\x00\x00\x00"

// moved is an error if bytes were put into the message b of a file, or taken out of it: it begins where the footer
// says, and of all that follows nothing does. One structure that is in its place shows that what is wrong between is
// damage of another kind.
func (r *reader) moved(ctx context.Context, b flat.Block) error {
	i, _ := slices.BinarySearchFunc(r.named, b.Off+1, func(x flat.Block, off int64) int { return cmp.Compare(x.Off, off) })
	behind, last := r.named[i:], b
	for _, x := range behind {
		if in, err := r.inPlace(ctx, x); in || err != nil {
			return err
		}
		last = x
	}
	moved, err := r.endMoved(ctx, last)
	if err != nil || !moved {
		return err
	}
	return fault.Corruptf(r.span(r.base+b.Off, b.End()-b.Off), "message", "bytes were put in or taken out: "+
		"none of what follows is where the footer says (%d messages, end mark)", len(behind))
}

// byPlace are the messages that a footer names, as they lie in the file.
func byPlace(f flat.Footer) []flat.Block {
	out := slices.Concat(f.Dictionaries, f.Batches)
	slices.SortFunc(out, func(a, b flat.Block) int { return cmp.Compare(a.Off, b.Off) })
	return out
}

// inPlace reports whether a message begins where the footer says. Of the two words in front of it one may be damaged.
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

// endMoved reports whether the end mark, which stands just before the footer, does not stand where the last message
// ends. A file without a mark there proves nothing.
func (r *reader) endMoved(ctx context.Context, last flat.Block) (bool, error) {
	foot, _, err := r.footerAt(ctx)
	if err != nil || r.base+last.End() == foot-int64(len(endMark)) {
		return false, err
	}
	var p [len(endMark)]byte
	err = r.must(ctx, p[:], foot-int64(len(endMark)), "footer")
	return err == nil && string(p[:]) == endMark, err
}
