package wal

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
)

// SchemaOfLog gives a tablet whose superblock is lost the schema in the header of its last log segment, if that is
// intact.
func SchemaOfLog(ctx context.Context, f *fs.FS, t *meta.Tablet) {
	segments, err := f.LogSegments(ctx, t.ID)
	if err != nil || len(segments) == 0 {
		return
	}
	src, err := f.Tree.Open(ctx, segments[len(segments)-1].Name)
	if err != nil {
		return
	}
	defer src.Close()
	if r, _, err := Open(ctx, src, segments[len(segments)-1].Name, f.Options.Pbc(), cfile.LZ4); err == nil &&
		r.Head.TabletID == t.ID {
		t.Schema, t.SchemaVersion = r.Head.Schema, r.Head.SchemaVersion
	}
}

// QuickBytes is the size, in bytes, up to which QuickCheck reads a log completely. Tests lower it.
var QuickBytes int64 = 1 << 20

// QuickCheck reads the headers and footers of a tablet's segments, and as many batches from the end as it takes to find
// the last committed operation. Of the result only Missing, Empty, LastTime and Findings are meaningful.
func QuickCheck(ctx context.Context, f *fs.FS, t *meta.Tablet) (*Logged, error) {
	x := newReplay(t, nil)
	segments, err := f.LogSegments(ctx, t.ID)
	if err != nil || len(segments) == 0 {
		x.none(ctx, f)
		return x.Out, err
	}
	bytes := int64(0)
	for _, s := range segments {
		bytes += s.Size
	}
	if bytes <= QuickBytes {
		return x.replay(ctx, f, segments)
	}
	for i, s := range segments {
		r, err := x.open(ctx, f, s, i == 0, i == len(segments)-1)
		if err != nil {
			return nil, err
		}
		if r != nil {
			r.src.Close()
		}
	}
	committed := map[meta.OpID]bool{}
	for i, s := range slices.Backward(segments) {
		last, err := x.lastOf(ctx, f, s.Name, i == len(segments)-1, committed)
		if err != nil {
			return nil, err
		}
		if x.Out.LastTime = last; last > 0 {
			if x.later() != "" {
				x.Out.LastTime, x.Out.Lost, x.Out.Later = 0, true, true // Replay says more
			}
			return x.Out, nil
		}
	}
	x.Out.Empty = len(committed) == 0 && x.last == meta.OpID{}
	return x.Out, nil
}

// Nowhere is a KeyLookup that finds no key, for callers that do not need the rows of changes.
func Nowhere(context.Context, uint64, []byte) (int64, bool, error) { return 0, false, nil }

// lastOf is the hybrid time of the last operation in a segment that was committed there or in later segments, whose
// commits are in committed; 0 if there is none. It finds the batches by their headers.
func (x *Replayer) lastOf(ctx context.Context, f *fs.FS, name string, newest bool,
	committed map[meta.OpID]bool) (last uint64, err error) {
	src, err := f.Tree.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	r, _, err := Open(ctx, src, name, f.Options.Pbc(), cmp.Or(x.codec, cfile.LZ4))
	switch {
	case r == nil && errors.As(err, new(*fault.Error)):
		return 0, nil // open has reported it
	case r == nil:
		return 0, err
	case x.foreign(r):
		return 0, nil
	}
	r.step = 4 << 10 // only headers are read, and batches are large
	var batches []int64
	for {
		off := r.pos
		skipped, err := r.skip(ctx)
		if err == nil && !skipped {
			_, err = r.Next(ctx)
		}
		switch {
		case err == io.EOF:
			return x.lastIn(ctx, r, batches, committed)
		case err == nil:
			batches = append(batches, off)
		case pbc.IsTorn(err) && newest: // what a crash leaves
		case errors.Is(err, fault.Corrupt):
			x.Fault("kudu.wal.damaged", err)
		default:
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// skip moves past the next batch, if its header is intact.
func (r *Reader) skip(ctx context.Context) (ok bool, err error) {
	n := r.headSize()
	if r.end-r.pos < n {
		return false, nil
	}
	head, err := r.bytes(ctx, r.pos, n)
	if err != nil {
		return false, err
	}
	h, ok := r.plausible(head)
	if !ok || h.stored > r.end-r.pos-n {
		return false, nil
	}
	r.pos += n + h.stored
	return true, nil
}

// lastIn is lastOf for the batches at the given offsets. It reads them backwards: a commit comes after its operation.
func (x *Replayer) lastIn(ctx context.Context, r *Reader, batches []int64,
	committed map[meta.OpID]bool) (last uint64, err error) {
	for _, off := range slices.Backward(batches) {
		b, err := r.batch(ctx, off)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			return 0, err
		}
		if err != nil {
			continue
		}
		var ops []*replicateMsg
		ParseBatch(b.cursor, false, func(e Entry) {
			if e.commit != nil {
				x.named(e.commit)
				committed[e.commit.id] = true
			} else {
				ops = append(ops, e.replicate)
			}
		})
		for _, m := range slices.Backward(ops) {
			x.last = m.id
			if committed[m.id] {
				return m.time, nil
			}
		}
	}
	return 0, nil
}
